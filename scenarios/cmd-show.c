// SPDX-License-Identifier: MIT
#include "scenarios/command.h"
#include "scenarios/query.h"
#include "sim/error.h"

#include <string.h>

typedef struct {
    char *where, *sort, *columns, *format;
    gboolean descending, describe;
    int limit;
} Options;

static void options_clear(Options *options)
{
    g_free(options->where);
    g_free(options->sort);
    g_free(options->columns);
    g_free(options->format);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, options_clear)

static void print_about(const NjStoreInfo *info)
{
    printf("computed by nanojoule %s\n", info->version);
    printf("points of the grid: %" G_GINT64_FORMAT "\n", info->n_points);
    if (*info->where != '\0')
        printf("selected with --where \"%s\"\n", info->where);
    if (info->limit > 0)
        printf("selected with --limit %" G_GINT64_FORMAT "\n", info->limit);
    if (info->n_shards > 0)
        printf("shard %" G_GINT64_FORMAT "/%" G_GINT64_FORMAT "\n", info->shard, info->n_shards);
    printf("\n%s", info->text);
    if (!g_str_has_suffix(info->text, "\n"))
        putchar('\n');
}

// Columns of a table as a table.
static NjTable *describe(const NjStore *store, guint table)
{
    static const NjColumn columns[] = {
        {"column", NJ_COLUMN_TEXT, 0, "", "name of a column"},
        {"type", NJ_COLUMN_TEXT, 0, "", "text, integer or real"},
        {"unit", NJ_COLUMN_TEXT, 0, "", "its unit"},
        {"description", NJ_COLUMN_TEXT, 0, "", "what it tells"},
    };
    static const char *const types[] = {
        [NJ_COLUMN_TEXT] = "text", [NJ_COLUMN_INTEGER] = "integer", [NJ_COLUMN_REAL] = "real"};
    NjTable *result = nj_table_new(columns, G_N_ELEMENTS(columns));
    for (guint c = 0; c < nj_store_n_columns(store, table); c++) {
        const NjColumn *column = &nj_store_columns(store, table)[c];
        nj_table_add_row(result);
        nj_table_set_text(result, 0, column->name);
        nj_table_set_text(result, 1, types[column->type]);
        nj_table_set_text(result, 2, *column->unit != '\0' ? column->unit : NULL);
        nj_table_set_text(result, 3, column->description);
    }
    return result;
}

static GArray *all_columns(const NjTable *table)
{
    GArray *columns = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint c = 0; c < nj_table_n_columns(table); c++)
        g_array_append_val(columns, c);
    return columns;
}

static gboolean show(NjStore *store, const char *name, const Options *options, GError **error)
{
    NjFormat format;
    if (!nj_format_parse(options->format != NULL ? options->format : "table", &format, error))
        return FALSE;
    if (options->limit < 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "--limit %d: a number of rows is needed",
                    options->limit);
        return FALSE;
    }
    const int index = nj_store_find_table(store, name, error);
    if (index < 0)
        return FALSE;
    if (options->describe) {
        g_autoptr(NjTable) description = describe(store, (guint)index);
        nj_table_print(description, format, stdout);
        return TRUE;
    }
    if (g_str_equal(name, "scenario") && format == NJ_FORMAT_TEXT) {
        print_about(nj_store_info(store));
        return TRUE;
    }
    g_autoptr(NjTable) table = nj_query_read(store, (guint)index, options->where, error);
    if (table == NULL)
        return FALSE;
    const int key = options->sort != NULL ? nj_query_column(table, "--sort", options->sort, error) : 0;
    g_autoptr(GArray) columns = key < 0 ? NULL
                                : options->columns != NULL
                                    ? nj_query_columns(table, "--columns", options->columns, error)
                                    : all_columns(table);
    if (columns == NULL)
        return FALSE;
    g_autoptr(GArray) rows = nj_query_sort(table, (guint)key, options->descending);
    g_autoptr(NjTable) picked = nj_query_pick(table, rows, columns, (guint)options->limit);
    nj_table_print(picked, format, stdout);
    return TRUE;
}

static int run(int argc, char **argv)
{
    g_auto(Options) options = {0};
    const GOptionEntry entries[] = {
        {"where", 'w', 0, G_OPTION_ARG_STRING, &options.where,
         "Only rows that meet a condition: column OP value, joined by 'and'", "CONDITION"},
        {"sort", 's', 0, G_OPTION_ARG_STRING, &options.sort, "Sort by a column (default: the first)",
         "COLUMN"},
        {"descending", 'r', 0, G_OPTION_ARG_NONE, &options.descending, "Sort from the largest down", NULL},
        {"columns", 'c', 0, G_OPTION_ARG_STRING, &options.columns, "Only these columns: a,b,c", "COLUMNS"},
        {"limit", 'n', 0, G_OPTION_ARG_INT, &options.limit, "Only the first N rows", "N"},
        {"describe", 'd', 0, G_OPTION_ARG_NONE, &options.describe, "Show what the columns are instead", NULL},
        {"format", 'f', 0, G_OPTION_ARG_STRING, &options.format, "table, csv or json (default table)",
         "FORMAT"},
        {NULL},
    };
    g_auto(GStrv) arguments = NULL;
    int status;
    if (!nj_command_parse(
            &nj_command_show, entries,
            "Tables: points (default), frontiers, breakdown, scenario.\n"
            "Example: nanojoule show grid.h5 --where 'seq_len=4096 and status=ok' --sort energy_j",
            argc, argv, 1, 2, &arguments, &status))
        return status;
    g_autoptr(GError) error = NULL;
    g_autoptr(NjStore) store = nj_store_open(arguments[0], &error);
    if (store == NULL || !show(store, arguments[1] != NULL ? arguments[1] : "points", &options, &error))
        return nj_command_fail(error);
    return 0;
}

const NjCommand nj_command_show = {
    .name = "show",
    .arguments = "STORE [TABLE]",
    .summary = "rows of a sweep's results",
    .run = run,
};
