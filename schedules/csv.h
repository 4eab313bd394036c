// SPDX-License-Identifier: MIT
#pragma once
// Comma-separated tables with a header line, as reference plans and profiles are written: fields may be
// quoted with "...", a doubled quote inside is one quote, lines end with LF or CRLF. Every error names file
// and line.

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
    char *path;          // as given, for messages
    guint n_columns;     // columns of the header
    char **columns;      // [n_columns] names, NULL-terminated
    guint n_rows;        // data rows
    char ***rows;        // [n_rows][n_columns] fields, each row NULL-terminated
    guint *line_numbers; // [n_rows] line of the file, from 1
} NjCsv;

// Reads a whole file ("-": standard input). Blank lines are skipped; a row with another number of fields than
// the header is an error. Transfer full; free with nj_csv_free().
NjCsv *nj_csv_read(const char *path, GError **error);

// Same from text already in memory; path is used in messages only.
NjCsv *nj_csv_parse(const char *path, const char *text, GError **error);

void nj_csv_free(NjCsv *csv);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjCsv, nj_csv_free)

// Index of a column, or -1.
int nj_csv_column(const NjCsv *csv, const char *name);

// Index of a column that must be there, -1 and an error otherwise.
int nj_csv_require(const NjCsv *csv, const char *name, GError **error);

// A field as a finite number of at least minimum, or as an integer in [minimum, maximum]; the error names
// file, line, column, value and what would be right.
gboolean nj_csv_number(const NjCsv *csv, guint row, int column, double minimum, double *value,
                       GError **error);
gboolean nj_csv_integer(const NjCsv *csv, guint row, int column, gint64 minimum, gint64 maximum,
                        gint64 *value, GError **error);

G_END_DECLS
