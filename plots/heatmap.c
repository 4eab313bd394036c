// SPDX-License-Identifier: MIT
// A column of a sweep over two of its axes. A point that cannot exist is a hatched cell with a letter; the
// letters' reasons stand beneath.
#include "plots/plot.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

#define MAX_REASONS 6

typedef struct {
    const NjTable *table;
    guint column;
    GPtrArray *values; // char *, ascending where they are numbers
} Axis;

static char *cell_text(const NjTable *table, guint row, guint column)
{
    if (nj_table_is_missing(table, row, column))
        return g_strdup("");
    if (nj_table_column(table, column)->type == NJ_COLUMN_TEXT)
        return g_strdup(nj_table_get_text(table, row, column));
    return g_strdup_printf("%g", nj_plot_number(table, row, column));
}

static int find_value(const GPtrArray *values, const char *text)
{
    for (guint i = 0; i < values->len; i++)
        if (g_str_equal(values->pdata[i], text))
            return (int)i;
    return -1;
}

static int compare_numbers(gconstpointer a, gconstpointer b)
{
    const double x = g_ascii_strtod(*(char *const *)a, NULL), y = g_ascii_strtod(*(char *const *)b, NULL);
    return (x > y) - (x < y);
}

static GPtrArray *distinct_values(const NjTable *table, guint column)
{
    GPtrArray *values = g_ptr_array_new_with_free_func(g_free);
    for (guint row = 0; row < nj_table_n_rows(table); row++) {
        g_autofree char *text = cell_text(table, row, column);
        if (find_value(values, text) < 0)
            g_ptr_array_add(values, g_steal_pointer(&text));
    }
    if (nj_table_column(table, column)->type != NJ_COLUMN_TEXT)
        g_ptr_array_sort(values, compare_numbers);
    return values;
}

// A sweep's axes stand between point and status; a plain table has no such marks: all its columns may be
// axes.
static guint axes_end(const NjTable *table)
{
    const int status = nj_table_find_column(table, "status");
    return status >= 0 ? (guint)status : nj_table_n_columns(table);
}

static int choose_axis(const NjTable *table, const char *option, const char *name, int other, GError **error)
{
    const guint end = axes_end(table);
    g_autoptr(GString) known = g_string_new(NULL);
    for (guint c = 0; c < end; c++) {
        const char *column = nj_table_column(table, c)->name;
        if (g_str_equal(column, "point"))
            continue;
        if (name != NULL && g_str_equal(column, name))
            return (int)c;
        if (name == NULL && (int)c != other) {
            g_autoptr(GPtrArray) values = distinct_values(table, c);
            if (values->len > 1)
                return (int)c;
        }
        g_string_append_printf(known, "%s%s", known->len > 0 ? ", " : "", column);
    }
    if (name != NULL)
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "%s %s: no such axis; there are %s", option, name,
                    known->str);
    else
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE,
                    "heatmap: two axes of more than one value are needed; there are %s", known->str);
    return -1;
}

static int choose_value(const NjTable *table, const char *name, GError **error)
{
    const char *wanted = name != NULL ? name : "energy_per_token_j";
    const int column = nj_table_find_column(table, wanted);
    if (column >= 0 && nj_table_column(table, (guint)column)->type != NJ_COLUMN_TEXT)
        return column;
    g_autoptr(GString) known = g_string_new(NULL);
    for (guint c = 0; c < nj_table_n_columns(table); c++)
        if (nj_table_column(table, c)->type != NJ_COLUMN_TEXT)
            g_string_append_printf(known, "%s%s", known->len > 0 ? ", " : "",
                                   nj_table_column(table, c)->name);
    g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "--value %s: not a column of numbers; there are %s", wanted,
                known->str);
    return -1;
}

// Two rows in a cell: another axis varies.
static gboolean fail_ambiguous(const NjTable *table, guint x, guint y, GError **error)
{
    g_autoptr(GString) others = g_string_new(NULL);
    for (guint c = 0; c < axes_end(table); c++) {
        if (c == x || c == y || g_str_equal(nj_table_column(table, c)->name, "point"))
            continue;
        g_autoptr(GPtrArray) values = distinct_values(table, c);
        if (values->len > 1)
            g_string_append_printf(others, "%s%s=%s", others->len > 0 ? " and " : "",
                                   nj_table_column(table, c)->name, (char *)values->pdata[0]);
    }
    g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE,
                "heatmap: several points for a cell of %s and %s; choose with --where, such as '%s'",
                nj_table_column(table, x)->name, nj_table_column(table, y)->name, others->str);
    return FALSE;
}

// The number of a reason, which is added where it is new; beyond the letters there are, the last stands for
// "other reasons".
static guint reason_number(GPtrArray *reasons, const char *text)
{
    const int known = find_value(reasons, text);
    if (known >= 0)
        return (guint)known;
    if (reasons->len < MAX_REASONS)
        g_ptr_array_add(reasons, g_strdup(text));
    else if (find_value(reasons, "other reasons") < 0)
        g_ptr_array_add(reasons, g_strdup("other reasons"));
    return reasons->len - 1;
}

// What differs from point to point (sizes of memory, say) would give each cell a reason of its own: digits
// behind a decimal point are dropped, and numbers of GiB with them.
static char *general_reason(const char *reason)
{
    g_autoptr(GRegex) regex = g_regex_new("[0-9]+(\\.[0-9]+)? GiB", 0, 0, NULL);
    return g_regex_replace_literal(regex, reason, -1, 0, "... GiB", 0, NULL);
}

static int digits_for(double largest)
{
    return largest >= 1000 ? 0 : largest >= 100 ? 1 : largest >= 1 ? 2 : 4;
}

static void add_cell(NjFigure *figure, guint x, guint y, double value, const char *label, gboolean bright)
{
    nj_figure_add_integer(figure, (int)x);
    nj_figure_add_integer(figure, (int)y);
    nj_figure_add_real(figure, value);
    nj_figure_add_text(figure, label);
    nj_figure_add_integer(figure, bright);
    nj_figure_add_integer(figure, isfinite(value));
    nj_figure_end_row(figure);
}

static void set_axis(NjFigure *figure, char letter, const Axis *axis)
{
    const NjColumn *column = nj_table_column(axis->table, axis->column);
    const gboolean unit = *column->unit != '\0' && !g_str_equal(column->unit, "1");
    g_autofree char *block = g_strdup_printf("%c_values", letter);
    g_autofree char *title = g_strdup_printf("%c_title", letter);
    g_autofree char *count = g_strdup_printf("n_%c", letter);
    g_autofree char *text =
        unit ? g_strdup_printf("%s (%s)", column->name, column->unit) : g_strdup(column->name);
    nj_figure_set_text(figure, title, text);
    nj_figure_set_integer(figure, count, (int)axis->values->len);
    nj_figure_begin_block(figure, block, "number value");
    for (guint i = 0; i < axis->values->len; i++) {
        nj_figure_add_integer(figure, (int)i);
        nj_figure_add_text(figure, axis->values->pdata[i]);
        nj_figure_end_row(figure);
    }
    nj_figure_end_block(figure);
}

static gboolean fill(const NjTable *rows, const Axis *x, const Axis *y, guint value, NjFigure *figure,
                     GError **error)
{
    const int reason_column = nj_table_find_column(rows, "reason");
    g_autoptr(GPtrArray) reasons = g_ptr_array_new_with_free_func(g_free);
    g_autofree gboolean *taken = g_new0(gboolean, x->values->len * y->values->len);
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (guint row = 0; row < nj_table_n_rows(rows); row++) {
        const double number = nj_plot_number(rows, row, value);
        low = isfinite(number) ? fmin(low, number) : low;
        high = isfinite(number) ? fmax(high, number) : high;
    }
    if (!(high > low)) {
        low = isfinite(low) ? low - 0.5 : 0;
        high = low + 1;
    }
    nj_figure_begin_block(figure, "cells", "x y value label bright possible");
    for (guint row = 0; row < nj_table_n_rows(rows); row++) {
        g_autofree char *x_text = cell_text(rows, row, x->column);
        g_autofree char *y_text = cell_text(rows, row, y->column);
        const guint i = (guint)find_value(x->values, x_text), j = (guint)find_value(y->values, y_text);
        if (taken[j * x->values->len + i])
            return fail_ambiguous(rows, x->column, y->column, error);
        taken[j * x->values->len + i] = TRUE;
        const double number = nj_plot_number(rows, row, value);
        g_autofree char *label = NULL;
        if (isfinite(number)) {
            label = g_strdup_printf("%.*f", digits_for(high), number);
        } else {
            const char *reason =
                reason_column >= 0 && nj_table_column(rows, (guint)reason_column)->type == NJ_COLUMN_TEXT
                    ? nj_table_get_text(rows, row, (guint)reason_column)
                    : NULL;
            g_autofree char *general = general_reason(reason != NULL ? reason : "no value");
            label = g_strdup_printf("%c", 'a' + (char)reason_number(reasons, general));
        }
        add_cell(figure, i, j, number, label, isfinite(number) && (number - low) / (high - low) > 0.5);
    }
    nj_figure_end_block(figure);
    nj_figure_begin_block(figure, "reasons", "number text");
    for (guint i = 0; i < reasons->len; i++) {
        g_autofree char *text = g_strdup_printf("%c: %s", 'a' + (char)i, (char *)reasons->pdata[i]);
        nj_figure_add_integer(figure, (int)i);
        nj_figure_add_text(figure, text);
        nj_figure_end_row(figure);
    }
    nj_figure_end_block(figure);
    nj_figure_set_integer(figure, "n_reasons", (int)reasons->len);
    nj_figure_set_real(figure, "value_low", low);
    nj_figure_set_real(figure, "value_high", high);
    figure->height = 150 + 40 * (int)y->values->len + 20 * (int)reasons->len;
    nj_figure_set_real(figure, "below", 66 + 20 * (double)reasons->len);
    return TRUE;
}

static gboolean build(NjPlotInput *input, const NjPlotOptions *options, NjFigure *figure, GError **error)
{
    g_autoptr(NjTable) rows = nj_plot_rows(input, "points", options, error);
    if (rows == NULL)
        return FALSE;
    if (nj_table_n_rows(rows) == 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: no points%s", input->path,
                    options->where != NULL ? " meet --where" : "");
        return FALSE;
    }
    // y is sought among what x leaves, and the other way round where only y is given.
    const int given_y = options->y != NULL ? choose_axis(rows, "--y", options->y, -1, error) : -1;
    if (options->y != NULL && given_y < 0)
        return FALSE;
    const int x = choose_axis(rows, "--x", options->x, given_y, error);
    const int y = x < 0 ? -1 : given_y >= 0 ? given_y : choose_axis(rows, "--y", NULL, x, error);
    const int value = y < 0 ? -1 : choose_value(rows, options->value, error);
    if (value < 0)
        return FALSE;
    g_autoptr(GPtrArray) x_values = distinct_values(rows, (guint)x);
    g_autoptr(GPtrArray) y_values = distinct_values(rows, (guint)y);
    const Axis x_axis = {rows, (guint)x, x_values}, y_axis = {rows, (guint)y, y_values};
    const NjColumn *column = nj_table_column(rows, (guint)value);
    const gboolean unit = *column->unit != '\0' && !g_str_equal(column->unit, "1");
    g_autofree char *title =
        unit ? g_strdup_printf("%s (%s)", column->name, column->unit) : g_strdup(column->name);
    g_autofree char *full =
        options->where != NULL ? g_strdup_printf("%s where %s", title, options->where) : g_strdup(title);
    nj_figure_set_text(figure, "plot_title", full);
    nj_figure_set_text(figure, "value_title", title);
    set_axis(figure, 'x', &x_axis);
    set_axis(figure, 'y', &y_axis);
    return fill(rows, &x_axis, &y_axis, (guint)value, figure, error);
}

const NjPlotKind nj_plot_heatmap = {
    .name = "heatmap",
    .summary = "a column of a sweep over two axes, impossible points hatched",
    .reads = {[NJ_INPUT_STORE] = TRUE, [NJ_INPUT_TABLE] = TRUE},
    .build = build,
};
