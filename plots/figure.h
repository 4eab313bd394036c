// SPDX-License-Identifier: MIT
#pragma once
// A figure: a gnuplot script that stands on its own. It has a terminal, variables, data blocks (the numbers
// as text, which tests compare with their source), then plots/common.gp and plots/KIND.gp, which are data
// files and hold all that is about looks. What is drawn is decided in C, how it looks in the scripts.

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
    int width, height; // pixels of an SVG; a kind sets them by what it has to show
    GString *head;     // variables and data blocks
} NjFigure;

void nj_figure_init(NjFigure *figure);
void nj_figure_clear(NjFigure *figure);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjFigure, nj_figure_clear)

// Defines variables of the script.
void nj_figure_set_integer(NjFigure *figure, const char *name, int value);
void nj_figure_set_real(NjFigure *figure, const char *name, double value);
void nj_figure_set_text(NjFigure *figure, const char *name, const char *value);

// A data block $NAME with a comment line that names its columns. Rows are added value by value.
void nj_figure_begin_block(NjFigure *figure, const char *name, const char *columns);
void nj_figure_add_integer(NjFigure *figure, int value);
void nj_figure_add_real(NjFigure *figure, double value); // NaN: gnuplot leaves it out
void nj_figure_add_text(NjFigure *figure, const char *value);
void nj_figure_end_row(NjFigure *figure);
void nj_figure_end_block(NjFigure *figure);

// The whole script of a figure for an output file; its suffix (.svg, .png or .pdf) decides the terminal, any
// other is an error of NJ_ERROR_USAGE. written: what gnuplot writes to. Transfer full.
char *nj_figure_script(const NjFigure *figure, const char *kind, const char *output, const char *written,
                       GError **error);

// Draws into a file: gnuplot writes aside, the result is renamed. The error says which package to install
// where there is no gnuplot.
gboolean nj_figure_draw(const NjFigure *figure, const char *kind, const char *output, GError **error);

// Draws an SVG into memory. Transfer full.
char *nj_figure_draw_svg(const NjFigure *figure, const char *kind, GError **error);

G_END_DECLS
