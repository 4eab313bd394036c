// SPDX-License-Identifier: MIT
#include "scenarios/store-private.h"
#include "scenarios/store.h"
#include "sim/error.h"

#include <string.h>

typedef struct {
    char *name;
    hid_t dataset;
    NjStoreLayout layout;
    NjColumn *columns;  // [layout.n_columns]
    GPtrArray *strings; // what the columns point to
    guint n_rows;
} StoredTable;

struct NjStore {
    char *path;
    hid_t file;
    GPtrArray *tables; // StoredTable
    NjStoreInfo info;
};

static void stored_table_free(gpointer data)
{
    StoredTable *table = (StoredTable *)data;
    if (table->dataset >= 0)
        H5Dclose(table->dataset);
    nj_store_layout_clear(&table->layout);
    g_free(table->columns);
    g_ptr_array_unref(table->strings);
    g_free(table->name);
    g_free(table);
}

void nj_store_free(NjStore *store)
{
    if (store == NULL)
        return;
    g_ptr_array_unref(store->tables);
    if (store->file >= 0)
        H5Fclose(store->file);
    nj_store_info_clear(&store->info);
    g_free(store->path);
    g_free(store);
}

// A text attribute of fixed size; "" where it is absent.
static char *read_text_attribute(hid_t object, const char *name)
{
    if (H5Aexists(object, name) <= 0)
        return g_strdup("");
    const hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    const hid_t type = attribute >= 0 ? H5Aget_type(attribute) : H5I_INVALID_HID;
    char *text = NULL;
    if (type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0) {
        text = g_malloc0(H5Tget_size(type) + 1);
        if (H5Aread(attribute, type, text) < 0)
            g_clear_pointer(&text, g_free);
    }
    if (type >= 0)
        H5Tclose(type);
    if (attribute >= 0)
        H5Aclose(attribute);
    return text != NULL ? text : g_strdup("");
}

static int read_integer_attribute(hid_t object, const char *name, int absent)
{
    if (H5Aexists(object, name) <= 0)
        return absent;
    const hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    int value;
    if (attribute < 0 || H5Aread(attribute, H5T_NATIVE_INT, &value) < 0)
        value = absent;
    if (attribute >= 0)
        H5Aclose(attribute);
    return value;
}

static const char *keep(StoredTable *table, char *text)
{
    g_ptr_array_add(table->strings, text);
    return text;
}

static gboolean read_column(StoredTable *table, hid_t type, guint c, gsize *text_size)
{
    NjColumn *column = &table->columns[c];
    char *name = H5Tget_member_name(type, c);
    column->name = keep(table, g_strdup(name));
    H5free_memory(name);
    const hid_t member = H5Tget_member_type(type, c);
    const H5T_class_t class = member >= 0 ? H5Tget_class(member) : H5T_NO_CLASS;
    if (class == H5T_STRING) {
        column->type = NJ_COLUMN_TEXT;
        *text_size = H5Tget_size(member);
    } else {
        column->type = class == H5T_INTEGER ? NJ_COLUMN_INTEGER : NJ_COLUMN_REAL;
    }
    if (member >= 0)
        H5Tclose(member);
    g_autofree char *unit = g_strdup_printf("FIELD_%u_UNIT", c);
    g_autofree char *description = g_strdup_printf("FIELD_%u_DESCRIPTION", c);
    column->unit = keep(table, read_text_attribute(table->dataset, unit));
    column->description = keep(table, read_text_attribute(table->dataset, description));
    g_autofree char *digits = g_strdup_printf("FIELD_%u_DIGITS", c);
    column->digits = read_integer_attribute(table->dataset, digits, 6);
    return class == H5T_STRING || class == H5T_INTEGER || class == H5T_FLOAT;
}

static gboolean open_columns(StoredTable *table)
{
    const hid_t type = H5Dget_type(table->dataset);
    if (type < 0)
        return FALSE;
    gboolean good = H5Tget_class(type) == H5T_COMPOUND;
    const int n = good ? H5Tget_nmembers(type) : 0;
    g_autofree gsize *sizes = g_new0(gsize, MAX(n, 1));
    table->columns = g_new0(NjColumn, MAX(n, 1));
    for (int c = 0; good && c < n; c++)
        good = read_column(table, type, (guint)c, &sizes[c]);
    H5Tclose(type);
    return good && nj_store_layout_init(&table->layout, table->columns, (guint)n, sizes);
}

static gboolean open_table(NjStore *store, const char *name, GError **error)
{
    StoredTable *table = g_new0(StoredTable, 1);
    g_ptr_array_add(store->tables, table);
    table->name = g_strdup(name);
    table->strings = g_ptr_array_new_with_free_func(g_free);
    table->layout.type = H5I_INVALID_HID;
    table->dataset = H5Dopen2(store->file, name, H5P_DEFAULT);
    gboolean good = table->dataset >= 0 && open_columns(table);
    if (good) {
        const hid_t space = H5Dget_space(table->dataset);
        const hssize_t n_rows = H5Sget_simple_extent_npoints(space);
        H5Sclose(space);
        good = n_rows >= 0 && n_rows <= G_MAXUINT;
        table->n_rows = good ? (guint)n_rows : 0;
    }
    if (good)
        return TRUE;
    g_autofree char *what = g_strdup_printf("/%s is not a table of this schema", name);
    return nj_store_hdf5_error(store->path, what, error);
}

static herr_t collect_name(hid_t group, const char *name, const H5L_info_t *info, void *data)
{
    (void)group;
    (void)info;
    g_ptr_array_add((GPtrArray *)data, g_strdup(name));
    return 0;
}

static gboolean read_info(NjStore *store, GError **error)
{
    GError *missing = NULL;
    const int table = nj_store_find_table(store, "scenario", &missing);
    const NjColumn *expected = nj_store_info_columns();
    gboolean good = table >= 0 && nj_store_n_rows(store, (guint)table) == 1 &&
                    nj_store_n_columns(store, (guint)table) == NJ_STORE_INFO_COLUMNS;
    for (guint c = 0; good && c < NJ_STORE_INFO_COLUMNS; c++) {
        const NjColumn *column = &nj_store_columns(store, (guint)table)[c];
        good = g_str_equal(column->name, expected[c].name) && column->type == expected[c].type;
    }
    g_clear_error(&missing);
    if (!good) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: /scenario is not a table of schema %d", store->path,
                    NJ_STORE_SCHEMA);
        return FALSE;
    }
    g_autoptr(NjTable) row = nj_store_new_table(store, (guint)table);
    if (!nj_store_read(store, (guint)table, 0, 1, row, error))
        return FALSE;
    nj_store_info_from_table(row, &store->info);
    return TRUE;
}

NjStore *nj_store_open(const char *path, GError **error)
{
    if (!nj_store_check_seal(path, error))
        return NULL;
    nj_store_hdf5_init();
    g_autoptr(NjStore) store = g_new0(NjStore, 1);
    store->path = g_strdup(path);
    store->tables = g_ptr_array_new_with_free_func(stored_table_free);
    store->file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    if (store->file < 0 ||
        H5Literate(store->file, H5_INDEX_NAME, H5_ITER_INC, NULL, collect_name, names) < 0) {
        nj_store_hdf5_error(path, "cannot be read", error);
        return NULL;
    }
    for (guint i = 0; i < names->len; i++)
        if (!open_table(store, (const char *)names->pdata[i], error))
            return NULL;
    return read_info(store, error) ? g_steal_pointer(&store) : NULL;
}

const NjStoreInfo *nj_store_info(const NjStore *store)
{
    return &store->info;
}

static const StoredTable *table_at(const NjStore *store, guint table)
{
    g_assert(table < store->tables->len);
    return (const StoredTable *)store->tables->pdata[table];
}

guint nj_store_n_tables(const NjStore *store)
{
    return store->tables->len;
}

const char *nj_store_table_name(const NjStore *store, guint table)
{
    return table_at(store, table)->name;
}

int nj_store_find_table(const NjStore *store, const char *name, GError **error)
{
    g_autoptr(GString) known = g_string_new(NULL);
    for (guint i = 0; i < store->tables->len; i++) {
        if (g_str_equal(table_at(store, i)->name, name))
            return (int)i;
        g_string_append_printf(known, "%s%s", i == 0 ? "" : ", ", table_at(store, i)->name);
    }
    g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "%s: no table '%s'; there are: %s", store->path, name,
                known->str);
    return -1;
}

guint nj_store_n_rows(const NjStore *store, guint table)
{
    return table_at(store, table)->n_rows;
}

guint nj_store_n_columns(const NjStore *store, guint table)
{
    return table_at(store, table)->layout.n_columns;
}

const NjColumn *nj_store_columns(const NjStore *store, guint table)
{
    return table_at(store, table)->columns;
}

NjTable *nj_store_new_table(const NjStore *store, guint table)
{
    return nj_table_new(nj_store_columns(store, table), nj_store_n_columns(store, table));
}

static void unpack_row(const StoredTable *table, const guint8 *from, NjTable *into)
{
    nj_table_add_row(into);
    for (guint c = 0; c < table->layout.n_columns; c++) {
        const guint8 *cell = from + table->layout.offsets[c];
        switch (table->columns[c].type) {
        case NJ_COLUMN_TEXT:
            if (cell[0] != '\0') {
                g_autofree char *text = g_strndup((const char *)cell, table->layout.sizes[c]);
                nj_table_set_text(into, c, text);
            }
            break;
        case NJ_COLUMN_INTEGER: {
            gint64 value;
            memcpy(&value, cell, sizeof value);
            if (value != NJ_STORE_MISSING_INTEGER)
                nj_table_set_integer(into, c, value);
            break;
        }
        case NJ_COLUMN_REAL: {
            double value;
            memcpy(&value, cell, sizeof value);
            nj_table_set_real(into, c, value);
            break;
        }
        }
    }
}

gboolean nj_store_read(NjStore *store, guint index, guint first, guint n, NjTable *into, GError **error)
{
    const StoredTable *table = table_at(store, index);
    g_assert(first <= table->n_rows && n <= table->n_rows - first);
    if (n == 0)
        return TRUE;
    g_autofree guint8 *rows = g_malloc(n * table->layout.row_size);
    const hsize_t start = first, count = n;
    const hid_t memory = H5Screate_simple(1, &count, NULL);
    const hid_t file = H5Dget_space(table->dataset);
    const gboolean good = H5Sselect_hyperslab(file, H5S_SELECT_SET, &start, NULL, &count, NULL) >= 0 &&
                          H5Dread(table->dataset, table->layout.type, memory, file, H5P_DEFAULT, rows) >= 0;
    g_autofree char *what = good ? NULL : g_strdup_printf("cannot read /%s", table->name);
    if (!good)
        nj_store_hdf5_error(store->path, what, error);
    H5Sclose(memory);
    H5Sclose(file);
    for (guint i = 0; good && i < n; i++)
        unpack_row(table, rows + i * table->layout.row_size, into);
    return good;
}
