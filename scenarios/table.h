// SPDX-License-Identifier: MIT
#pragma once
// A result table: named, typed columns with unit and description, filled row by row, printed as aligned text,
// CSV or JSON. It is the one shape in which commands hand over results: what is printed, stored and plotted
// comes from it. A missing value (NULL text, NaN number) prints as an empty CSV field, JSON null, and "-" in
// aligned text.

#include <glib.h>
#include <stdio.h>

G_BEGIN_DECLS

typedef enum { NJ_COLUMN_TEXT, NJ_COLUMN_INTEGER, NJ_COLUMN_REAL } NjColumnType;

typedef struct {
    const char
        *name; // machine name; carries the unit as a suffix (time_s). Static storage or owned by caller
    NjColumnType type;
    int digits;       // digits behind the point in aligned text (REAL); CSV and JSON keep 9 significant ones
    const char *unit; // "s", "J", "1" for ratios, "" for text
    const char *description; // one line
} NjColumn;

typedef enum { NJ_FORMAT_TEXT, NJ_FORMAT_CSV, NJ_FORMAT_JSON } NjFormat;

typedef struct NjTable NjTable;

// Columns are copied; the strings they point to must outlive the table. Transfer full.
NjTable *nj_table_new(const NjColumn *columns, guint n_columns);
void nj_table_free(NjTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjTable, nj_table_free)

// Appends a row of missing values; the setters below fill its cells.
void nj_table_add_row(NjTable *table);
// Set a cell of the last row. The column's type must match: a mismatch is a bug (assert).
void nj_table_set_text(NjTable *table, guint column, const char *value); // copied; may be NULL
void nj_table_set_integer(NjTable *table, guint column, gint64 value);
void nj_table_set_real(NjTable *table, guint column, double value);

// Removes all rows; what was reserved stays, so that a table can be filled again and again.
void nj_table_clear_rows(NjTable *table);
// Sets a cell of to's last row to from's cell (row, column), missing or not. The types must match (assert).
void nj_table_copy_cell(NjTable *to, guint to_column, const NjTable *from, guint row, guint column);
// Index of the column of that name, or -1.
int nj_table_find_column(const NjTable *table, const char *name);

guint nj_table_n_rows(const NjTable *table);
guint nj_table_n_columns(const NjTable *table);
const NjColumn *nj_table_column(const NjTable *table, guint column);
gboolean nj_table_is_missing(const NjTable *table, guint row, guint column);
const char *nj_table_get_text(const NjTable *table, guint row, guint column);
gint64 nj_table_get_integer(const NjTable *table, guint row, guint column);
double nj_table_get_real(const NjTable *table, guint row, guint column);

// Prints all rows. Text: header, right-aligned numbers. CSV: header line, RFC 4180 quoting, LF. JSON: an
// array of objects. Numbers never depend on the locale.
void nj_table_print(const NjTable *table, NjFormat format, FILE *out);

// "text" (or "table"), "csv" or "json"; FALSE and an error of NJ_ERROR_USAGE otherwise.
gboolean nj_format_parse(const char *name, NjFormat *format, GError **error);

G_END_DECLS
