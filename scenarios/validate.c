// SPDX-License-Identifier: MIT
#include "scenarios/validate.h"

#include "scenarios/validate-private.h"
#include "sim/error.h"

#include <math.h>

static const NjValidateForm *const forms[] = {&nj_validate_gemm,
                                              &nj_validate_attention,
                                              &nj_validate_collective,
                                              &nj_validate_iterations_node,
                                              &nj_validate_iterations_nodes,
                                              NULL};

const NjValidateForm *const *nj_validate_forms(void)
{
    return forms;
}

typedef struct {
    char *kind, *value;
    guint kind_order; // of the kind's first use
    double order;
    GArray *errors_pct; // double
} Group;

struct NjValidation {
    char *path;
    const NjValidateForm *form;
    char *note;
    GArray *predicted, *measured, *errors_pct; // double
    GPtrArray *groups;                         // Group, in report order once the file is done
    guint n_kinds;
};

static void group_free(gpointer data)
{
    Group *group = data;
    g_free(group->kind);
    g_free(group->value);
    g_array_unref(group->errors_pct);
    g_free(group);
}

static GArray *new_doubles(void)
{
    return g_array_new(FALSE, FALSE, sizeof(double));
}

void nj_validation_free(NjValidation *validation)
{
    if (validation == NULL)
        return;
    g_free(validation->path);
    g_free(validation->note);
    g_array_unref(validation->predicted);
    g_array_unref(validation->measured);
    g_array_unref(validation->errors_pct);
    g_ptr_array_unref(validation->groups);
    g_free(validation);
}

void nj_validation_add_row(NjValidation *validation, double predicted, double measured)
{
    g_assert(measured > 0 && isfinite(predicted));
    const double error_pct = 100 * (predicted / measured - 1);
    g_array_append_val(validation->predicted, predicted);
    g_array_append_val(validation->measured, measured);
    g_array_append_val(validation->errors_pct, error_pct);
}

static Group *find_group(const NjValidation *validation, const char *kind, const char *value)
{
    for (guint i = 0; i < validation->groups->len; i++) {
        Group *group = validation->groups->pdata[i];
        if (g_str_equal(group->kind, kind) && g_str_equal(group->value, value))
            return group;
    }
    return NULL;
}

static guint kind_order(NjValidation *validation, const char *kind)
{
    for (guint i = 0; i < validation->groups->len; i++) {
        const Group *group = validation->groups->pdata[i];
        if (g_str_equal(group->kind, kind))
            return group->kind_order;
    }
    return validation->n_kinds++;
}

void nj_validation_add_to_group(NjValidation *validation, const char *kind, const char *value, double order)
{
    g_assert(validation->errors_pct->len > 0);
    Group *group = find_group(validation, kind, value);
    if (group == NULL) {
        group = g_new0(Group, 1);
        *group = (Group){g_strdup(kind), g_strdup(value), kind_order(validation, kind), order, new_doubles()};
        g_ptr_array_add(validation->groups, group);
    }
    g_array_append_val(group->errors_pct,
                       g_array_index(validation->errors_pct, double, validation->errors_pct->len - 1));
}

void nj_validation_set_note(NjValidation *validation, const char *note)
{
    g_free(validation->note);
    validation->note = g_strdup(note);
}

const char *nj_validation_note(const NjValidation *validation)
{
    return validation->note;
}

const char *nj_validation_path(const NjValidation *validation)
{
    return validation->path;
}

const NjValidateForm *nj_validation_form(const NjValidation *validation)
{
    return validation->form;
}

static int compare_groups(gconstpointer a, gconstpointer b)
{
    const Group *left = *(const Group *const *)a, *right = *(const Group *const *)b;
    if (left->kind_order != right->kind_order)
        return left->kind_order < right->kind_order ? -1 : 1;
    if (left->order < right->order || left->order > right->order)
        return left->order < right->order ? -1 : 1;
    return g_strcmp0(left->value, right->value);
}

static gboolean has_header(const NjValidateForm *form, const NjCsv *csv)
{
    guint n = 0;
    for (; form->header[n] != NULL; n++)
        if (nj_csv_column(csv, form->header[n]) < 0)
            return FALSE;
    return n == csv->n_columns;
}

static const NjValidateForm *find_form(const NjCsv *csv, GError **error)
{
    for (guint i = 0; forms[i] != NULL; i++)
        if (has_header(forms[i], csv))
            return forms[i];
    g_autofree char *have = g_strjoinv(",", csv->columns);
    g_autoptr(GString) known = g_string_new(NULL);
    for (guint i = 0; forms[i] != NULL; i++) {
        g_autofree char *header = g_strjoinv(",", (char **)forms[i]->header);
        g_string_append_printf(known, "%s%s (%s)", i > 0 ? "; " : "", header, forms[i]->name);
    }
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:1: unknown header %s; known: %s", csv->path, have,
                known->str);
    return NULL;
}

NjValidation *nj_validation_new(const char *path, const NjValidateOptions *options, GError **error)
{
    g_autoptr(NjCsv) csv = nj_csv_read(path, error);
    if (csv == NULL)
        return NULL;
    const NjValidateForm *form = find_form(csv, error);
    if (form == NULL)
        return NULL;
    if (csv->n_rows == 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: no rows behind the header", csv->path);
        return NULL;
    }
    g_autoptr(NjValidation) validation = g_new0(NjValidation, 1);
    validation->path = g_strdup(csv->path);
    validation->form = form;
    validation->predicted = new_doubles();
    validation->measured = new_doubles();
    validation->errors_pct = new_doubles();
    validation->groups = g_ptr_array_new_with_free_func(group_free);
    if (!form->predict(csv, options, validation, error))
        return NULL;
    g_assert(validation->errors_pct->len == csv->n_rows);
    g_ptr_array_sort(validation->groups, compare_groups);
    return g_steal_pointer(&validation);
}

static int compare_doubles(gconstpointer a, gconstpointer b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double percentile(const GArray *sorted, double share)
{
    const double place = share * (sorted->len - 1);
    const guint below = (guint)place, above = MIN(below + 1, sorted->len - 1);
    const double low = g_array_index(sorted, double, below), high = g_array_index(sorted, double, above);
    return low + (place - below) * (high - low);
}

static NjErrorSummary summarize(const GArray *errors_pct)
{
    NjErrorSummary summary = {.n_rows = errors_pct->len};
    g_autoptr(GArray) sorted = new_doubles();
    for (guint i = 0; i < errors_pct->len; i++) {
        const double error = g_array_index(errors_pct, double, i), magnitude = fabs(error);
        summary.mean_pct += error / errors_pct->len;
        summary.mean_abs_pct += magnitude / errors_pct->len;
        g_array_append_val(sorted, magnitude);
    }
    g_array_sort(sorted, compare_doubles);
    summary.median_abs_pct = percentile(sorted, 0.5);
    summary.p90_abs_pct = percentile(sorted, 0.9);
    summary.p99_abs_pct = percentile(sorted, 0.99);
    summary.max_abs_pct = percentile(sorted, 1);
    return summary;
}

NjErrorSummary nj_validation_summary(const NjValidation *validation, const char *kind, const char *value)
{
    if (kind == NULL)
        return summarize(validation->errors_pct);
    const Group *group = find_group(validation, kind, value);
    return group != NULL ? summarize(group->errors_pct) : (NjErrorSummary){0};
}

static const NjColumn summary_columns[] = {
    {"file", NJ_COLUMN_TEXT, 0, "", "file, as given"},
    {"form", NJ_COLUMN_TEXT, 0, "", "what the file holds"},
    {"group", NJ_COLUMN_TEXT, 0, "", "what the rows are divided by"},
    {"value", NJ_COLUMN_TEXT, 0, "", "its value in these rows"},
    {"rows", NJ_COLUMN_INTEGER, 0, "1", "number of rows"},
    {"mean_pct", NJ_COLUMN_REAL, 2, "%", "mean of predicted over measured minus 1"},
    {"mean_abs_pct", NJ_COLUMN_REAL, 2, "%", "mean of its magnitude"},
    {"median_abs_pct", NJ_COLUMN_REAL, 2, "%", "median of its magnitude"},
    {"p90_abs_pct", NJ_COLUMN_REAL, 2, "%", "90th percentile of its magnitude"},
    {"p99_abs_pct", NJ_COLUMN_REAL, 2, "%", "99th percentile of its magnitude"},
    {"max_abs_pct", NJ_COLUMN_REAL, 2, "%", "largest magnitude"},
};

#define N_FILE_COLUMNS 2

NjTable *nj_validation_summary_table(gboolean with_file)
{
    const guint skipped = with_file ? 0 : N_FILE_COLUMNS;
    return nj_table_new(summary_columns + skipped, G_N_ELEMENTS(summary_columns) - skipped);
}

static void add_group_cells(NjTable *table, guint column, const char *kind, const char *value,
                            const GArray *errors_pct)
{
    const NjErrorSummary summary = summarize(errors_pct);
    const double figures[] = {summary.mean_pct,    summary.mean_abs_pct, summary.median_abs_pct,
                              summary.p90_abs_pct, summary.p99_abs_pct,  summary.max_abs_pct};
    nj_table_set_text(table, column, kind);
    nj_table_set_text(table, column + 1, value);
    nj_table_set_integer(table, column + 2, summary.n_rows);
    for (guint i = 0; i < G_N_ELEMENTS(figures); i++)
        nj_table_set_real(table, column + 3 + i, figures[i]);
}

// The next row and the column its group starts at.
static guint add_row(const NjValidation *validation, NjTable *table, gboolean with_file)
{
    nj_table_add_row(table);
    if (!with_file)
        return 0;
    nj_table_set_text(table, 0, validation->path);
    nj_table_set_text(table, 1, validation->form->name);
    return N_FILE_COLUMNS;
}

void nj_validation_add_summary(const NjValidation *validation, NjTable *table, gboolean with_file)
{
    add_group_cells(table, add_row(validation, table, with_file), "overall", NULL, validation->errors_pct);
    for (guint i = 0; i < validation->groups->len; i++) {
        const Group *group = validation->groups->pdata[i];
        add_group_cells(table, add_row(validation, table, with_file), group->kind, group->value,
                        group->errors_pct);
    }
}

NjTable *nj_validation_row_table(const NjValidation *validation)
{
    const NjColumn columns[] = {
        {"row", NJ_COLUMN_INTEGER, 0, "1", "data row of the file, from 1"},
        {validation->form->column, NJ_COLUMN_REAL, 6, validation->form->unit, "predicted"},
        {validation->form->ref_column, NJ_COLUMN_REAL, 6, validation->form->unit, "measured"},
    };
    NjTable *table = nj_table_new(columns, G_N_ELEMENTS(columns));
    for (guint i = 0; i < validation->predicted->len; i++) {
        nj_table_add_row(table);
        nj_table_set_integer(table, 0, i + 1);
        nj_table_set_real(table, 1, g_array_index(validation->predicted, double, i));
        nj_table_set_real(table, 2, g_array_index(validation->measured, double, i));
    }
    return table;
}

gboolean nj_validate_positive(const NjCsv *csv, guint row, int column, double *value, GError **error)
{
    if (!nj_csv_number(csv, row, column, 0, value, error))
        return FALSE;
    if (*value > 0)
        return TRUE;
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: %s = '%s': a number above 0 is needed", csv->path,
                csv->line_numbers[row], csv->columns[column], csv->rows[row][column]);
    return FALSE;
}
