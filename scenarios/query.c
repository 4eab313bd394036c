// SPDX-License-Identifier: MIT
#include "scenarios/query.h"

#include "scenarios/where.h"
#include "sim/error.h"

#include <string.h>

#define BLOCK_ROWS 4096

static void copy_row(NjTable *to, const NjTable *from, guint row)
{
    nj_table_add_row(to);
    for (guint c = 0; c < nj_table_n_columns(from); c++)
        nj_table_copy_cell(to, c, from, row, c);
}

NjTable *nj_query_read(NjStore *store, guint table, const char *where, GError **error)
{
    g_autoptr(NjWhere) condition = NULL;
    if (where != NULL) {
        condition =
            nj_where_new(where, nj_store_columns(store, table), nj_store_n_columns(store, table), error);
        if (condition == NULL)
            return NULL;
    }
    g_autoptr(NjTable) found = nj_store_new_table(store, table);
    g_autoptr(NjTable) block = nj_store_new_table(store, table);
    const guint n_rows = nj_store_n_rows(store, table);
    for (guint first = 0; first < n_rows; first += BLOCK_ROWS) {
        nj_table_clear_rows(block);
        if (!nj_store_read(store, table, first, MIN(BLOCK_ROWS, n_rows - first), block, error))
            return NULL;
        for (guint row = 0; row < nj_table_n_rows(block); row++)
            if (condition == NULL || nj_where_match(condition, block, row))
                copy_row(found, block, row);
    }
    return g_steal_pointer(&found);
}

// The axes of /points that a table with those columns lacks: they stand between point and status.
static GArray *lacking_axes(const NjTable *points, const NjTable *table)
{
    GArray *axes = g_array_new(FALSE, FALSE, sizeof(guint));
    const int status = nj_table_find_column(points, "status");
    for (guint c = 1; (int)c < status; c++)
        if (nj_table_find_column(table, nj_table_column(points, c)->name) < 0)
            g_array_append_val(axes, c);
    return axes;
}

// Rows of /points by their number.
static GHashTable *rows_by_point(const NjTable *points)
{
    GHashTable *rows = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    for (guint row = 0; row < nj_table_n_rows(points); row++) {
        const gint64 point = nj_table_get_integer(points, row, 0);
        g_hash_table_insert(rows, g_memdup2(&point, sizeof point), GUINT_TO_POINTER(row));
    }
    return rows;
}

static NjTable *join(const NjTable *points, const NjTable *table)
{
    g_autoptr(GArray) axes = lacking_axes(points, table);
    g_autoptr(GHashTable) rows = rows_by_point(points);
    const guint n = nj_table_n_columns(table);
    g_autofree NjColumn *columns = g_new0(NjColumn, n + axes->len);
    columns[0] = *nj_table_column(table, 0);
    for (guint a = 0; a < axes->len; a++)
        columns[1 + a] = *nj_table_column(points, g_array_index(axes, guint, a));
    for (guint c = 1; c < n; c++)
        columns[axes->len + c] = *nj_table_column(table, c);
    NjTable *joined = nj_table_new(columns, n + axes->len);
    for (guint row = 0; row < nj_table_n_rows(table); row++) {
        const gint64 point = nj_table_get_integer(table, row, 0);
        gpointer at;
        nj_table_add_row(joined);
        for (guint c = 0; c < n; c++)
            nj_table_copy_cell(joined, c == 0 ? 0 : axes->len + c, table, row, c);
        if (!g_hash_table_lookup_extended(rows, &point, NULL, &at))
            continue;
        for (guint a = 0; a < axes->len; a++)
            nj_table_copy_cell(joined, 1 + a, points, GPOINTER_TO_UINT(at), g_array_index(axes, guint, a));
    }
    return joined;
}

NjTable *nj_query_read_with_axes(NjStore *store, guint table, const char *where, GError **error)
{
    const int points_index = nj_store_find_table(store, "points", error);
    if (points_index < 0)
        return NULL;
    if ((int)table == points_index)
        return nj_query_read(store, table, where, error);
    g_autoptr(NjTable) points = nj_query_read(store, (guint)points_index, NULL, error);
    g_autoptr(NjTable) own = points != NULL ? nj_query_read(store, table, NULL, error) : NULL;
    if (own == NULL)
        return NULL;
    if (nj_table_find_column(own, "point") != 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE,
                    "a table with a row for points is needed: points or frontiers");
        return NULL;
    }
    g_autoptr(NjTable) joined = join(points, own);
    if (where == NULL)
        return g_steal_pointer(&joined);
    const guint n = nj_table_n_columns(joined);
    g_autofree NjColumn *columns = g_new0(NjColumn, n);
    for (guint c = 0; c < n; c++)
        columns[c] = *nj_table_column(joined, c);
    g_autoptr(NjWhere) condition = nj_where_new(where, columns, n, error);
    if (condition == NULL)
        return NULL;
    NjTable *found = nj_table_new(columns, n);
    for (guint row = 0; row < nj_table_n_rows(joined); row++)
        if (nj_where_match(condition, joined, row))
            copy_row(found, joined, row);
    return found;
}

int nj_query_column(const NjTable *table, const char *option, const char *name, GError **error)
{
    const int column = nj_table_find_column(table, name);
    if (column >= 0)
        return column;
    g_autoptr(GString) known = g_string_new(NULL);
    for (guint c = 0; c < nj_table_n_columns(table); c++)
        g_string_append_printf(known, "%s%s", c == 0 ? "" : ", ", nj_table_column(table, c)->name);
    g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "%s %s: no such column; there are: %s", option, name,
                known->str);
    return -1;
}

GArray *nj_query_columns(const NjTable *table, const char *option, const char *names, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(names, ",", -1);
    g_autoptr(GArray) columns = g_array_new(FALSE, FALSE, sizeof(guint));
    for (char **part = parts; *part != NULL; part++) {
        const int column = nj_query_column(table, option, g_strstrip(*part), error);
        if (column < 0)
            return NULL;
        const guint index = (guint)column;
        g_array_append_val(columns, index);
    }
    return g_steal_pointer(&columns);
}

// Negative, zero or positive as the cell of row a comes before, with or behind that of row b.
static int compare_cells(const NjTable *table, guint column, guint a, guint b)
{
    switch (nj_table_column(table, column)->type) {
    case NJ_COLUMN_TEXT:
        return strcmp(nj_table_get_text(table, a, column), nj_table_get_text(table, b, column));
    case NJ_COLUMN_INTEGER: {
        const gint64 x = nj_table_get_integer(table, a, column), y = nj_table_get_integer(table, b, column);
        return (x > y) - (x < y);
    }
    case NJ_COLUMN_REAL: {
        const double x = nj_table_get_real(table, a, column), y = nj_table_get_real(table, b, column);
        return (x > y) - (x < y);
    }
    }
    g_assert_not_reached();
}

typedef struct {
    const NjTable *table;
    guint column;
    gboolean descending;
} Order;

static int compare_rows(gconstpointer a, gconstpointer b, gpointer data)
{
    const Order *order = (const Order *)data;
    const guint x = *(const guint *)a, y = *(const guint *)b;
    const gboolean x_missing = nj_table_is_missing(order->table, x, order->column);
    const gboolean y_missing = nj_table_is_missing(order->table, y, order->column);
    if (x_missing || y_missing)
        return x_missing == y_missing ? (x > y) - (x < y) : x_missing - y_missing;
    const int difference = compare_cells(order->table, order->column, x, y);
    if (difference == 0)
        return (x > y) - (x < y);
    return order->descending ? -difference : difference;
}

GArray *nj_query_sort(const NjTable *table, guint column, gboolean descending)
{
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint row = 0; row < nj_table_n_rows(table); row++)
        g_array_append_val(rows, row);
    Order order = {table, column, descending};
    g_array_sort_with_data(rows, compare_rows, &order);
    return rows;
}

static char *group_of(const NjTable *table, guint row, const GArray *by)
{
    GString *key = g_string_new(NULL);
    for (guint i = 0; i < by->len; i++) {
        const guint column = g_array_index(by, guint, i);
        if (nj_table_is_missing(table, row, column)) {
            g_string_append_c(key, '\n');
            continue;
        }
        switch (nj_table_column(table, column)->type) {
        case NJ_COLUMN_TEXT:
            g_string_append_printf(key, "\t%s\n", nj_table_get_text(table, row, column));
            break;
        case NJ_COLUMN_INTEGER:
            g_string_append_printf(key, "%" G_GINT64_FORMAT "\n", nj_table_get_integer(table, row, column));
            break;
        case NJ_COLUMN_REAL:
            g_string_append_printf(key, "%.17g\n", nj_table_get_real(table, row, column));
            break;
        }
    }
    return g_string_free(key, FALSE);
}

GArray *nj_query_first_of_groups(const NjTable *table, const GArray *order, const GArray *by, guint present)
{
    g_autoptr(GHashTable) best = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < order->len; i++) {
        const guint row = g_array_index(order, guint, i);
        char *group = group_of(table, row, by);
        if (nj_table_is_missing(table, row, present) || g_hash_table_contains(best, group))
            g_free(group);
        else
            g_hash_table_insert(best, group, GUINT_TO_POINTER(row));
    }
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint row = 0; row < nj_table_n_rows(table); row++) {
        g_autofree char *group = group_of(table, row, by);
        gpointer first;
        if (!g_hash_table_lookup_extended(best, group, NULL, &first))
            continue;
        const guint winner = GPOINTER_TO_UINT(first);
        g_array_append_val(rows, winner);
        g_hash_table_remove(best, group);
    }
    return rows;
}

NjTable *nj_query_pick(const NjTable *table, const GArray *rows, const GArray *columns, guint limit)
{
    g_autofree NjColumn *infos = g_new0(NjColumn, columns->len);
    for (guint c = 0; c < columns->len; c++)
        infos[c] = *nj_table_column(table, g_array_index(columns, guint, c));
    NjTable *picked = nj_table_new(infos, columns->len);
    const guint n = limit > 0 ? MIN(limit, rows->len) : rows->len;
    for (guint i = 0; i < n; i++) {
        nj_table_add_row(picked);
        for (guint c = 0; c < columns->len; c++)
            nj_table_copy_cell(picked, c, table, g_array_index(rows, guint, i),
                               g_array_index(columns, guint, c));
    }
    return picked;
}
