// SPDX-License-Identifier: MIT
#include "schedules/csv.h"

#include "sim/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Splits one record that starts at *cursor; moves *cursor behind its line end and counts the lines it spans.
static GPtrArray *parse_record(const char *path, const char **cursor, guint *line, GError **error)
{
    g_autoptr(GPtrArray) fields = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GString) field = g_string_new(NULL);
    const guint first_line = *line;
    const char *p = *cursor;
    gboolean quoted = FALSE;

    for (;; p++) {
        if (quoted) {
            if (*p == '\0') {
                g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: a quoted field is not closed", path,
                            first_line);
                return NULL;
            }
            if (*p == '"' && p[1] == '"') {
                g_string_append_c(field, *p++);
            } else if (*p == '"') {
                quoted = FALSE;
            } else {
                *line += *p == '\n';
                g_string_append_c(field, *p);
            }
            continue;
        }
        if (*p == '"') {
            quoted = TRUE;
        } else if (*p == ',' || *p == '\n' || *p == '\0') {
            if (*p != ',' && field->len > 0 && field->str[field->len - 1] == '\r')
                g_string_truncate(field, field->len - 1);
            g_ptr_array_add(fields, g_strdup(field->str));
            g_string_truncate(field, 0);
            if (*p != ',')
                break;
        } else {
            g_string_append_c(field, *p);
        }
    }
    if (*p == '\n') {
        p++;
        (*line)++;
    }
    *cursor = p;
    return g_steal_pointer(&fields);
}

static char **take_strings(GPtrArray *fields)
{
    g_ptr_array_add(fields, NULL);
    return (char **)g_ptr_array_steal(fields, NULL);
}

NjCsv *nj_csv_parse(const char *path, const char *text, GError **error)
{
    g_autoptr(NjCsv) csv = g_new0(NjCsv, 1);
    g_autoptr(GPtrArray) rows = g_ptr_array_new();
    g_autoptr(GArray) lines = g_array_new(FALSE, FALSE, sizeof(guint));
    guint line = 1;
    gboolean failed = FALSE;

    csv->path = g_strdup(path);
    if (g_str_has_prefix(text, "\xef\xbb\xbf"))
        text += 3;
    while (*text != '\0' && !failed) {
        const guint record_line = line;
        g_autoptr(GPtrArray) fields = parse_record(path, &text, &line, error);
        if (fields == NULL) {
            failed = TRUE;
        } else if (fields->len == 1 && *(char *)fields->pdata[0] == '\0') {
            continue;
        } else if (csv->columns == NULL) {
            csv->n_columns = fields->len;
            csv->columns = take_strings(fields);
        } else if (fields->len != csv->n_columns) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: %u fields where the header has %u", path,
                        record_line, fields->len, csv->n_columns);
            failed = TRUE;
        } else {
            g_ptr_array_add(rows, take_strings(fields));
            g_array_append_val(lines, record_line);
        }
    }
    csv->n_rows = rows->len;
    csv->rows = (char ***)g_ptr_array_free(g_steal_pointer(&rows), FALSE);
    csv->line_numbers = (guint *)(void *)g_array_free(g_steal_pointer(&lines), FALSE);
    if (failed)
        return NULL;
    if (csv->columns == NULL) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: empty: a header line with column names is needed",
                    path);
        return NULL;
    }
    return g_steal_pointer(&csv);
}

static gboolean read_stdin(char **text, gsize *length, GError **error)
{
    g_autoptr(GString) all = g_string_new(NULL);
    char buffer[65536];
    gsize n;
    while ((n = fread(buffer, 1, sizeof buffer, stdin)) > 0)
        g_string_append_len(all, buffer, (gssize)n);
    if (ferror(stdin)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "standard input: cannot be read");
        return FALSE;
    }
    *length = all->len;
    *text = g_string_free(g_steal_pointer(&all), FALSE);
    return TRUE;
}

NjCsv *nj_csv_read(const char *path, GError **error)
{
    g_autofree char *text = NULL;
    const gboolean from_stdin = g_str_equal(path, "-");
    const char *name = from_stdin ? "standard input" : path;
    gsize length = 0;
    if (from_stdin ? !read_stdin(&text, &length, error) : !g_file_get_contents(path, &text, &length, error))
        return NULL;
    const gsize n_read = strlen(text);
    if (n_read < length) { // what follows would be lost without a word
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: not a text: byte %" G_GSIZE_FORMAT " is 0", name,
                    n_read);
        return NULL;
    }
    return nj_csv_parse(name, text, error);
}

void nj_csv_free(NjCsv *csv)
{
    if (csv == NULL)
        return;
    for (guint i = 0; i < csv->n_rows; i++)
        g_strfreev(csv->rows[i]);
    g_free(csv->rows);
    g_free(csv->line_numbers);
    g_strfreev(csv->columns);
    g_free(csv->path);
    g_free(csv);
}

int nj_csv_column(const NjCsv *csv, const char *name)
{
    for (guint i = 0; i < csv->n_columns; i++)
        if (g_str_equal(csv->columns[i], name))
            return (int)i;
    return -1;
}

int nj_csv_require(const NjCsv *csv, const char *name, GError **error)
{
    const int column = nj_csv_column(csv, name);
    if (column < 0) {
        g_autofree char *have = g_strjoinv(",", csv->columns);
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:1: no column '%s'; the header has %s", csv->path,
                    name, have);
    }
    return column;
}

gboolean nj_csv_number(const NjCsv *csv, guint row, int column, double minimum, double *value, GError **error)
{
    const char *text = csv->rows[row][column];
    char *end = NULL;
    const double number = g_ascii_strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(number) || number < minimum) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: %s = '%s': a number of at least %g is needed",
                    csv->path, csv->line_numbers[row], csv->columns[column], text, minimum);
        return FALSE;
    }
    *value = number;
    return TRUE;
}

gboolean nj_csv_integer(const NjCsv *csv, guint row, int column, gint64 minimum, gint64 maximum,
                        gint64 *value, GError **error)
{
    if (!g_ascii_string_to_signed(csv->rows[row][column], 10, minimum, maximum, value, NULL)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s:%u: %s = '%s': an integer from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT
                    " is needed",
                    csv->path, csv->line_numbers[row], csv->columns[column], csv->rows[row][column], minimum,
                    maximum);
        return FALSE;
    }
    return TRUE;
}
