// SPDX-License-Identifier: MIT
#include "scenarios/command.h"
#include "scenarios/query.h"
#include "sim/error.h"

#include <string.h>

typedef struct {
    char *metric, *by, *where, *columns, *format;
    double deadline_s;
    gboolean largest;
} Options;

static void options_clear(Options *options)
{
    g_free(options->metric);
    g_free(options->by);
    g_free(options->where);
    g_free(options->columns);
    g_free(options->format);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, options_clear)

// Metrics of which more is better.
static gboolean more_is_better(const char *metric)
{
    static const char *const names[] = {"tokens_per_s", "mfu", NULL};
    return g_strv_contains(names, metric);
}

// --where and --deadline in one; NULL for neither. Transfer full.
static char *condition_of(const Options *options)
{
    if (options->deadline_s <= 0)
        return g_strdup(options->where);
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(number, sizeof number, "%.12g", options->deadline_s);
    if (options->where == NULL)
        return g_strdup_printf("time_s <= %s", number);
    return g_strdup_printf("%s and time_s <= %s", options->where, number);
}

// Without --by: a group for each model, where models are an axis. Energies of different models do not
// compare.
static GArray *groups_of(const NjTable *table, const Options *options, GError **error)
{
    if (options->by != NULL)
        return nj_query_columns(table, "--by", options->by, error);
    GArray *by = g_array_new(FALSE, FALSE, sizeof(guint));
    const int model = nj_table_find_column(table, "model");
    if (model >= 0) {
        const guint column = (guint)model;
        g_array_append_val(by, column);
    }
    return by;
}

// Without --columns: the axes, which stand between point and status, then time, energy and the metric.
static GArray *columns_of(const NjTable *table, const Options *options, guint metric, GError **error)
{
    if (options->columns != NULL)
        return nj_query_columns(table, "--columns", options->columns, error);
    GArray *columns = g_array_new(FALSE, FALSE, sizeof(guint));
    // Of /frontiers, the method and the plan's number belong to what a row is.
    const int status = nj_table_find_column(table, "status"), time_s = nj_table_find_column(table, "time_s");
    for (guint c = 0; (int)c < (status >= 0 ? status : time_s); c++)
        g_array_append_val(columns, c);
    const int others[] = {time_s, nj_table_find_column(table, "energy_j"), (int)metric};
    for (guint i = 0; i < G_N_ELEMENTS(others); i++) {
        gboolean listed = others[i] < 0;
        for (guint c = 0; c < columns->len; c++)
            listed = listed || (int)g_array_index(columns, guint, c) == others[i];
        const guint column = (guint)others[i];
        if (!listed)
            g_array_append_val(columns, column);
    }
    return columns;
}

static gboolean best(NjStore *store, const char *path, const char *table_name, const Options *options,
                     GError **error)
{
    NjFormat format;
    const char *name = options->metric != NULL ? options->metric : "energy_j";
    if (!nj_format_parse(options->format != NULL ? options->format : "table", &format, error))
        return FALSE;
    if (options->deadline_s < 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "--deadline %g: a time above 0 in seconds is needed",
                    options->deadline_s);
        return FALSE;
    }
    const int index = nj_store_find_table(store, table_name, error);
    if (index < 0)
        return FALSE;
    g_autofree char *condition = condition_of(options);
    g_autoptr(NjTable) table = nj_query_read_with_axes(store, (guint)index, condition, error);
    if (table == NULL)
        return FALSE;
    const int metric = nj_query_column(table, "--metric", name, error);
    if (metric < 0)
        return FALSE;
    if (nj_table_column(table, (guint)metric)->type == NJ_COLUMN_TEXT) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "--metric %s: a column of numbers is needed", name);
        return FALSE;
    }
    g_autoptr(GArray) by = groups_of(table, options, error);
    g_autoptr(GArray) columns = by != NULL ? columns_of(table, options, (guint)metric, error) : NULL;
    if (columns == NULL)
        return FALSE;
    g_autoptr(GArray) order = nj_query_sort(table, (guint)metric, options->largest || more_is_better(name));
    g_autoptr(GArray) rows = nj_query_first_of_groups(table, order, by, (guint)metric);
    if (rows->len == 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: no %s has %s%s%s", path,
                    g_str_equal(table_name, "points") ? "point" : "row", name,
                    condition != NULL ? " and meets " : "", condition != NULL ? condition : "");
        return FALSE;
    }
    g_autoptr(NjTable) picked = nj_query_pick(table, rows, columns, 0);
    nj_table_print(picked, format, stdout);
    return TRUE;
}

static int run(int argc, char **argv)
{
    g_auto(Options) options = {0};
    const GOptionEntry entries[] = {
        {"metric", 'm', 0, G_OPTION_ARG_STRING, &options.metric, "Column to be best in (default energy_j)",
         "COLUMN"},
        {"deadline", 'd', 0, G_OPTION_ARG_DOUBLE, &options.deadline_s, "Only iterations of at most this time",
         "SECONDS"},
        {"by", 'b', 0, G_OPTION_ARG_STRING, &options.by,
         "One best point for each combination of these columns: a,b (default: model, where it is an axis)",
         "COLUMNS"},
        {"where", 'w', 0, G_OPTION_ARG_STRING, &options.where, "Only rows that meet a condition, as in show",
         "CONDITION"},
        {"largest", 0, 0, G_OPTION_ARG_NONE, &options.largest,
         "The largest is best (default: the smallest, but for tokens_per_s and mfu)", NULL},
        {"columns", 'c', 0, G_OPTION_ARG_STRING, &options.columns,
         "Columns to show (default: the axes, time, energy and the metric)", "COLUMNS"},
        {"format", 'f', 0, G_OPTION_ARG_STRING, &options.format, "table, csv or json (default table)",
         "FORMAT"},
        {NULL},
    };
    g_auto(GStrv) arguments = NULL;
    int status;
    if (!nj_command_parse(
            &nj_command_best, entries,
            "Tables: points (default), frontiers (its rows with the axes of their points).\n"
            "Examples: nanojoule best grid.h5 --metric energy_per_token_j --deadline 10 --by seq_len\n"
            "          nanojoule best grid.h5 frontiers --deadline 5 --by model,seq_len,method",
            argc, argv, 1, 2, &arguments, &status))
        return status;
    g_autoptr(GError) error = NULL;
    g_autoptr(NjStore) store = nj_store_open(arguments[0], &error);
    if (store == NULL ||
        !best(store, arguments[0], arguments[1] != NULL ? arguments[1] : "points", &options, &error))
        return nj_command_fail(error);
    return 0;
}

const NjCommand nj_command_best = {
    .name = "best",
    .arguments = "STORE [TABLE]",
    .summary = "the best point of a sweep, in each group",
    .run = run,
};
