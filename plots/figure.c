// SPDX-License-Identifier: MIT
#include "plots/figure.h"

#include "models/data.h"
#include "scenarios/store.h"
#include "sim/error.h"

#include <gio/gio.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

void nj_figure_init(NjFigure *figure)
{
    *figure = (NjFigure){720, 420, g_string_new(NULL)};
}

void nj_figure_clear(NjFigure *figure)
{
    if (figure->head != NULL)
        g_string_free(figure->head, TRUE);
    figure->head = NULL;
}

// gnuplot knows escapes inside "...", and a data block ends at a line: what could be either is replaced.
static void append_quoted(GString *out, const char *value)
{
    g_string_append_c(out, '"');
    for (const char *c = value; *c != '\0'; c++)
        g_string_append_c(out, *c == '"' ? '\'' : *c == '\\' ? '/' : *c == '\n' || *c == '\r' ? ' ' : *c);
    g_string_append_c(out, '"');
}

void nj_figure_set_integer(NjFigure *figure, const char *name, int value)
{
    g_string_append_printf(figure->head, "%s = %d\n", name, value);
}

void nj_figure_set_real(NjFigure *figure, const char *name, double value)
{
    // A product with 1.0 stays real: gnuplot divides integers as C does.
    if (isfinite(value))
        g_string_append_printf(figure->head, "%s = 1.0 * %.9g\n", name, value);
    else
        g_string_append_printf(figure->head, "%s = NaN\n", name);
}

void nj_figure_set_text(NjFigure *figure, const char *name, const char *value)
{
    g_string_append_printf(figure->head, "%s = ", name);
    append_quoted(figure->head, value);
    g_string_append_c(figure->head, '\n');
}

void nj_figure_begin_block(NjFigure *figure, const char *name, const char *columns)
{
    g_string_append_printf(figure->head, "$%s << END_OF_DATA\n# %s\n", name, columns);
}

static void separate(NjFigure *figure)
{
    if (figure->head->str[figure->head->len - 1] != '\n')
        g_string_append_c(figure->head, ' ');
}

void nj_figure_add_integer(NjFigure *figure, int value)
{
    separate(figure);
    g_string_append_printf(figure->head, "%d", value);
}

void nj_figure_add_real(NjFigure *figure, double value)
{
    separate(figure);
    if (isfinite(value))
        g_string_append_printf(figure->head, "%.9g", value);
    else
        g_string_append(figure->head, "NaN");
}

void nj_figure_add_text(NjFigure *figure, const char *value)
{
    separate(figure);
    append_quoted(figure->head, value);
}

void nj_figure_end_row(NjFigure *figure)
{
    g_string_append_c(figure->head, '\n');
}

void nj_figure_end_block(NjFigure *figure)
{
    g_string_append(figure->head, "END_OF_DATA\n");
}

// $NANOJOULE_PLOTS is a folder of scripts; else they are shipped files.
static gboolean append_script(GString *out, const char *name, GError **error)
{
    const char *folder = g_getenv("NANOJOULE_PLOTS");
    g_autofree char *file = g_strconcat(name, ".gp", NULL);
    g_autofree char *shipped = g_strconcat("plots/", file, NULL);
    g_autofree char *path = folder != NULL ? g_build_filename(folder, file, NULL) : nj_data_find(shipped);
    g_autofree char *text = NULL;
    if (path == NULL) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_FILE,
                    "%s: not found; $NANOJOULE_PLOTS may name the folder of plot scripts", shipped);
        return FALSE;
    }
    g_autoptr(GError) reason = NULL;
    if (!g_file_get_contents(path, &text, NULL, &reason)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "%s: cannot be read: %s", path, reason->message);
        return FALSE;
    }
    g_string_append(out, text);
    return TRUE;
}

static gboolean append_terminal(const NjFigure *figure, const char *output, const char *written, GString *out,
                                GError **error)
{
    const int w = figure->width, h = figure->height;
    if (g_str_has_suffix(output, ".svg"))
        g_string_append_printf(
            out, "set terminal svg size %d,%d noenhanced font 'Helvetica,14' background '#ffffff'\n", w, h);
    else if (g_str_has_suffix(output, ".png"))
        g_string_append_printf(out,
                               "set terminal pngcairo size %d,%d noenhanced font 'Helvetica,11' fontscale 2 "
                               "linewidth 2 pointscale 3\n",
                               2 * w, 2 * h);
    else if (g_str_has_suffix(output, ".pdf"))
        g_string_append_printf(
            out, "set terminal pdfcairo size %.3fin,%.3fin noenhanced font 'Helvetica,11' pointscale 1.5\n",
            w / 96.0, h / 96.0);
    else {
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "%s: a name that ends in .svg, .png or .pdf is needed",
                    output);
        return FALSE;
    }
    g_string_append(out, "set output ");
    append_quoted(out, written);
    g_string_append_c(out, '\n');
    return TRUE;
}

char *nj_figure_script(const NjFigure *figure, const char *kind, const char *output, const char *written,
                       GError **error)
{
    g_autoptr(GString) script = g_string_new(NULL);
    if (!append_terminal(figure, output, written, script, error))
        return NULL;
    g_string_append_printf(script, "width = %d\nheight = %d\nsvg = %d\n%s", figure->width, figure->height,
                           g_str_has_suffix(output, ".svg"), figure->head->str);
    if (!append_script(script, "common", error) || !append_script(script, kind, error))
        return NULL;
    g_string_append(script, "set output\n");
    return g_string_free(g_steal_pointer(&script), FALSE);
}

static gboolean run_gnuplot(const char *script, GError **error)
{
    g_autoptr(GError) reason = NULL;
    g_autofree char *complaints = NULL;
    g_autoptr(GSubprocess) gnuplot = g_subprocess_new(
        G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE | G_SUBPROCESS_FLAGS_STDOUT_SILENCE,
        &reason, "gnuplot", "-", NULL);
    if (gnuplot == NULL) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_FILE,
                    "gnuplot cannot be run: %s; Debian has it in the package gnuplot-nox", reason->message);
        return FALSE;
    }
    const gboolean spoken = g_subprocess_communicate_utf8(gnuplot, script, NULL, NULL, &complaints, &reason);
    if (!spoken || !g_subprocess_get_successful(gnuplot)) {
        // gnuplot shows the place in the script over several lines, then what is wrong.
        const char *last = spoken ? strrchr(g_strchomp(complaints), '\n') : NULL;
        const char *text = !spoken ? reason->message : last != NULL ? g_strchug((char *)last) : complaints;
        g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "gnuplot failed: %s", text);
        return FALSE;
    }
    return TRUE;
}

gboolean nj_figure_draw(const NjFigure *figure, const char *kind, const char *output, GError **error)
{
    g_autofree char *part = g_strconcat(output, ".part", NULL);
    g_autofree char *script = nj_figure_script(figure, kind, output, part, error);
    if (script == NULL || !nj_store_check_writable(output, error))
        return FALSE;
    gboolean ok = run_gnuplot(script, error);
    if (ok && g_rename(part, output) != 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "%s: cannot be written", output);
        ok = FALSE;
    }
    if (!ok)
        g_unlink(part);
    return ok;
}

char *nj_figure_draw_svg(const NjFigure *figure, const char *kind, GError **error)
{
    g_autofree char *folder = g_dir_make_tmp("nanojoule-XXXXXX", error);
    if (folder == NULL)
        return NULL;
    g_autofree char *path = g_build_filename(folder, "figure.svg", NULL);
    char *svg = NULL;
    if (nj_figure_draw(figure, kind, path, error))
        g_file_get_contents(path, &svg, NULL, error);
    g_unlink(path);
    g_rmdir(folder);
    return svg;
}
