// SPDX-License-Identifier: MIT
#include "scenarios/comparison.h"

#include <math.h>

static const NjComparisonCell *cell_at(const NjComparison *comparison, guint i)
{
    return &g_array_index(comparison->cells, NjComparisonCell, i);
}

// A number, "none", or nothing.
static char *format_cell(const NjCellValue *cell, const char *empty)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];
    switch (cell->state) {
    case NJ_CELL_EMPTY:
        return g_strdup(empty);
    case NJ_CELL_NONE:
        return g_strdup("none");
    case NJ_CELL_VALUE:
        return g_strdup(g_ascii_formatd(buffer, sizeof buffer, "%.1f", cell->value));
    }
    g_assert_not_reached();
}

NjTable *nj_comparison_table(const NjComparison *comparison)
{
    static const NjColumn columns[] = {
        {"table", NJ_COLUMN_TEXT, 0, "", "published table"},
        {"model", NJ_COLUMN_TEXT, 0, "", "architecture"},
        {"parallelism", NJ_COLUMN_TEXT, 0, "", "inside a stage"},
        {"microbatch_size", NJ_COLUMN_INTEGER, 0, "1", "sequences of a microbatch"},
        {"seq_len", NJ_COLUMN_INTEGER, 0, "1", "tokens of a sequence"},
        {"method", NJ_COLUMN_TEXT, 0, "", "method"},
        {"metric", NJ_COLUMN_TEXT, 0, "", "what is reduced"},
        {"simulated_pct", NJ_COLUMN_TEXT, 0, "%", "simulated reduction, or none"},
        {"published_pct", NJ_COLUMN_TEXT, 0, "%", "published reduction, none, or empty"},
    };
    NjTable *table = nj_table_new(columns, G_N_ELEMENTS(columns));
    for (guint i = 0; i < comparison->cells->len; i++) {
        const NjComparisonCell *cell = cell_at(comparison, i);
        const NjComparisonConfiguration *c = comparison->configurations->pdata[cell->configuration];
        const NjWorkload *w = &c->workload;
        g_autofree char *parallelism = nj_parallelism_format(&w->parallelism, FALSE);
        g_autofree char *published = format_cell(&cell->published, "");
        g_autofree char *simulated = NULL;
        if (cell->simulated.state == NJ_CELL_VALUE) {
            char buffer[G_ASCII_DTOSTR_BUF_SIZE];
            simulated = g_strdup(g_ascii_formatd(buffer, sizeof buffer, "%.4f", cell->simulated.value));
        } else {
            simulated = format_cell(&cell->simulated, "");
        }
        nj_table_add_row(table);
        nj_table_set_text(table, 0, g_array_index(comparison->tables, NjComparisonTable, cell->table).name);
        nj_table_set_text(table, 1, w->arch.name);
        nj_table_set_text(table, 2, parallelism);
        nj_table_set_integer(table, 3, w->microbatch_size);
        nj_table_set_integer(table, 4, w->seq_len);
        nj_table_set_text(table, 5, nj_method_name(cell->method));
        nj_table_set_text(table, 6, nj_metric_name(cell->metric));
        nj_table_set_text(table, 7, simulated);
        nj_table_set_text(table, 8, published);
    }
    return table;
}

guint nj_comparison_differences(const NjComparison *comparison, gboolean rerun, double *mean_abs,
                                double *max_abs)
{
    guint n = 0;
    *mean_abs = *max_abs = 0;
    for (guint i = 0; i < comparison->cells->len; i++) {
        const NjComparisonCell *cell = cell_at(comparison, i);
        const NjCellValue *value = rerun ? &cell->rerun : &cell->simulated;
        if (value->state != NJ_CELL_VALUE || cell->published.state != NJ_CELL_VALUE)
            continue;
        const double difference = fabs(value->value - cell->published.value);
        n++;
        *mean_abs += (difference - *mean_abs) / n;
        *max_abs = fmax(*max_abs, difference);
    }
    return n;
}

// "12.3 (paper 12.5, -0.2; rerun 13.7)"
static char *describe_cell(const NjComparisonCell *cell)
{
    g_autofree char *simulated = format_cell(&cell->simulated, "-");
    if (cell->published.state == NJ_CELL_EMPTY)
        return g_strdup_printf("%s (prediction)", simulated);
    g_autofree char *published = format_cell(&cell->published, "-");
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_printf(text, "%s (published %s", simulated, published);
    if (cell->simulated.state == NJ_CELL_VALUE && cell->published.state == NJ_CELL_VALUE)
        g_string_append_printf(text, ", %+.1f", cell->simulated.value - cell->published.value);
    if (cell->rerun.state != NJ_CELL_EMPTY) {
        g_autofree char *rerun = format_cell(&cell->rerun, "-");
        g_string_append_printf(text, "; rerun %s", rerun);
    }
    g_string_append_c(text, ')');
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void add_configuration_columns(NjTable *table, const NjWorkload *w)
{
    g_autofree char *parallelism = nj_parallelism_format(&w->parallelism, FALSE);
    g_autofree char *model = w->arch.alias != NULL
                                 ? g_strdup_printf("%s (table: \"%s\")", w->arch.title, w->arch.alias)
                                 : g_strdup(w->arch.title);
    nj_table_set_text(table, 0, model);
    nj_table_set_text(table, 1, parallelism);
    nj_table_set_integer(table, 2, w->microbatch_size);
    nj_table_set_integer(table, 3, w->seq_len);
}

// One published table: a row a configuration and method, a column a metric.
static void print_table(const NjComparison *comparison, guint which, FILE *out)
{
    NjColumn columns[5 + NJ_N_METRICS] = {
        {"model", NJ_COLUMN_TEXT, 0, "", ""},
        {"parallelism", NJ_COLUMN_TEXT, 0, "", ""},
        {"microbatch size", NJ_COLUMN_INTEGER, 0, "", ""},
        {"seq len", NJ_COLUMN_INTEGER, 0, "", ""},
        {"method", NJ_COLUMN_TEXT, 0, "", ""},
    };
    guint n_columns = 5;
    guint column_of[NJ_N_METRICS] = {0};
    const NjComparisonTable *table_info = &g_array_index(comparison->tables, NjComparisonTable, which);
    for (guint i = 0; i < comparison->cells->len; i++) {
        const NjComparisonCell *cell = cell_at(comparison, i);
        if (cell->table != which || column_of[cell->metric] != 0)
            continue;
        column_of[cell->metric] = n_columns;
        columns[n_columns++] = (NjColumn){nj_metric_name(cell->metric), NJ_COLUMN_TEXT, 0, "%", ""};
    }
    g_autoptr(NjTable) table = nj_table_new(columns, n_columns);
    const NjComparisonCell *previous = NULL;
    for (guint i = 0; i < comparison->cells->len; i++) {
        const NjComparisonCell *cell = cell_at(comparison, i);
        if (cell->table != which)
            continue;
        const NjComparisonConfiguration *c = comparison->configurations->pdata[cell->configuration];
        if (previous == NULL || previous->configuration != cell->configuration ||
            previous->method != cell->method) {
            nj_table_add_row(table);
            add_configuration_columns(table, &c->workload);
            nj_table_set_text(table, 4, nj_method_name(cell->method));
        }
        g_autofree char *text = describe_cell(cell);
        nj_table_set_text(table, column_of[cell->metric], text);
        previous = cell;
    }
    fprintf(out, "%s (%%)\n", table_info->title);
    if (table_info->source != NULL)
        fprintf(out, "Published: %s\n", table_info->source);
    fputc('\n', out);
    nj_table_print(table, NJ_FORMAT_TEXT, out);
    fputc('\n', out);
}

// How far execution is from what the planner expected, over all plans that were executed.
static void print_planner_differences(const NjComparison *comparison, FILE *out)
{
    double time = 0, energy = 0, gap = 0;
    guint n = 0;
    for (guint i = 0; i < comparison->configurations->len; i++) {
        const NjComparisonConfiguration *c = comparison->configurations->pdata[i];
        for (guint m = 0; m < NJ_N_METHODS; m++) {
            const GArray *plans = c->frontiers[m].plans;
            for (guint k = 0; plans != NULL && m != NJ_METHOD_MEGATRON && k < plans->len; k++) {
                const NjExecutedPlan *plan = &g_array_index(plans, NjExecutedPlan, k);
                n++;
                time += 100 * (plan->time_s / plan->planned_time_s - 1);
                energy += 100 * (plan->energy_j / plan->planned_energy_j - 1);
                gap = fmax(gap, 100 * (plan->planned_energy_j / plan->bound_energy_j - 1));
            }
        }
    }
    if (n > 0)
        fprintf(out,
                "Execution against the planner, %u plans: time %+.2f %%, energy %+.2f %% on average "
                "(transfers between "
                "stages); plans are at most %.2f %% above the convex bound of energy.\n",
                n, time / n, energy / n, gap);
}

// Says of every GPU once that its constants are carried over, where they are.
static void print_notes(const NjComparison *comparison, FILE *out)
{
    g_autoptr(GHashTable) said = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < comparison->configurations->len; i++) {
        const NjComparisonConfiguration *c = comparison->configurations->pdata[i];
        g_autofree char *note = nj_gpu_note(&c->workload.gpu);
        if (note == NULL || g_hash_table_contains(said, note))
            continue;
        fprintf(out, "Note: %s.\n", note);
        g_hash_table_add(said, g_steal_pointer(&note));
    }
}

// Methods that cannot run, once a configuration.
static void print_failures(const NjComparison *comparison, FILE *out)
{
    for (guint i = 0; i < comparison->configurations->len; i++) {
        const NjComparisonConfiguration *c = comparison->configurations->pdata[i];
        const NjWorkload *w = &c->workload;
        g_autofree char *parallelism = nj_parallelism_format(&w->parallelism, FALSE);
        for (guint m = 0; m < NJ_N_METHODS; m++)
            if (c->failures[m] != NULL)
                fprintf(out, "%s %s %d x %d, %s cannot run: %s\n", w->arch.name, parallelism,
                        w->microbatch_size, w->seq_len, nj_method_name((NjMethod)m), c->failures[m]);
    }
}

// Published cells that have a value on one side and none on the other.
static guint count_disagreements(const NjComparison *comparison)
{
    guint n = 0;
    for (guint i = 0; i < comparison->cells->len; i++) {
        const NjComparisonCell *cell = &g_array_index(comparison->cells, NjComparisonCell, i);
        n += (cell->published.state == NJ_CELL_VALUE && cell->simulated.state == NJ_CELL_NONE) ||
             (cell->published.state == NJ_CELL_NONE && cell->simulated.state == NJ_CELL_VALUE);
    }
    return n;
}

void nj_comparison_print(const NjComparison *comparison, FILE *out)
{
    double mean_abs, max_abs;
    for (guint i = 0; i < comparison->tables->len; i++)
        print_table(comparison, i, out);
    print_failures(comparison, out);
    const guint n = nj_comparison_differences(comparison, FALSE, &mean_abs, &max_abs);
    if (n > 0)
        fprintf(
            out,
            "Simulated against published, %u cells: mean absolute difference %.2f points, largest %.2f.\n", n,
            mean_abs, max_abs);
    const guint n_disagreements = count_disagreements(comparison);
    if (n_disagreements > 0)
        fprintf(out, "Not among these: %u where only one of the two has a plan that qualifies.\n",
                n_disagreements);
    const guint n_rerun = nj_comparison_differences(comparison, TRUE, &mean_abs, &max_abs);
    if (n_rerun > 0)
        fprintf(out, "The authors' second run against published, %u cells: %.2f points, largest %.2f.\n",
                n_rerun, mean_abs, max_abs);
    print_planner_differences(comparison, out);
    print_notes(comparison, out);
}
