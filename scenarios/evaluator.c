// SPDX-License-Identifier: MIT
#include "scenarios/evaluator.h"

#include "sim/error.h"

#include <string.h>

static const NjColumn point_column = {"point", NJ_COLUMN_INTEGER, 0, "1", "number of the point in the grid"};
static const NjColumn status_columns[] = {
    {"status", NJ_COLUMN_TEXT, 0, "", "ok, or impossible for a point that cannot exist"},
    {"reason", NJ_COLUMN_TEXT, 0, "", "why the point cannot exist, empty where it can"},
};

const char *nj_result_name(NjResultKind kind)
{
    static const char *const names[NJ_N_RESULTS] = {"points", "frontiers", "breakdown"};
    return names[kind];
}

const char *nj_result_title(NjResultKind kind)
{
    static const char *const titles[NJ_N_RESULTS] = {
        "One row a point of the grid",
        "Plans on the time-energy frontier of each point",
        "Time and energy of each point by kind of kernel",
    };
    return titles[kind];
}

void nj_point_result_init(NjPointResult *result, const NjEvaluator *evaluator)
{
    *result = (NjPointResult){0};
    for (guint kind = 0; kind < NJ_N_RESULTS; kind++)
        result->tables[kind] =
            nj_table_new(evaluator->results[kind].columns, evaluator->results[kind].n_columns);
    nj_point_result_reset(result);
}

void nj_point_result_clear(NjPointResult *result)
{
    g_clear_pointer(&result->reason, g_free);
    for (guint kind = 0; kind < NJ_N_RESULTS; kind++)
        g_clear_pointer(&result->tables[kind], nj_table_free);
}

static void empty(NjPointResult *result)
{
    g_clear_pointer(&result->reason, g_free);
    for (guint kind = 0; kind < NJ_N_RESULTS; kind++)
        nj_table_clear_rows(result->tables[kind]);
}

void nj_point_result_reset(NjPointResult *result)
{
    empty(result);
    nj_table_add_row(result->tables[NJ_RESULT_POINTS]);
}

// ---- Bytes. Numbers little-endian; a text is its length and bytes; a cell is a byte 0 for missing, or 1 and
// the value.

static void put_u32(GByteArray *bytes, gsize value)
{
    g_assert(value <= G_MAXUINT32);
    const guint32 little = GUINT32_TO_LE((guint32)value);
    g_byte_array_append(bytes, (const guint8 *)&little, sizeof little);
}

static void put_u64(GByteArray *bytes, guint64 value)
{
    value = GUINT64_TO_LE(value);
    g_byte_array_append(bytes, (const guint8 *)&value, sizeof value);
}

static void put_text(GByteArray *bytes, const char *text)
{
    const gsize length = strlen(text);
    put_u32(bytes, length);
    g_byte_array_append(bytes, (const guint8 *)text, (guint)length);
}

static void put_cell(GByteArray *bytes, const NjTable *table, guint row, guint column)
{
    const guint8 present = !nj_table_is_missing(table, row, column);
    g_byte_array_append(bytes, &present, 1);
    if (!present)
        return;
    switch (nj_table_column(table, column)->type) {
    case NJ_COLUMN_TEXT:
        put_text(bytes, nj_table_get_text(table, row, column));
        break;
    case NJ_COLUMN_INTEGER:
        put_u64(bytes, (guint64)nj_table_get_integer(table, row, column));
        break;
    case NJ_COLUMN_REAL: {
        const double value = nj_table_get_real(table, row, column);
        guint64 bits;
        memcpy(&bits, &value, sizeof bits);
        put_u64(bytes, bits);
        break;
    }
    }
}

void nj_point_result_encode(const NjPointResult *result, GByteArray *bytes)
{
    put_text(bytes, result->reason != NULL ? result->reason : "");
    for (guint kind = 0; kind < NJ_N_RESULTS; kind++) {
        const NjTable *table = result->tables[kind];
        put_u32(bytes, nj_table_n_rows(table));
        for (guint row = 0; row < nj_table_n_rows(table); row++)
            for (guint column = 0; column < nj_table_n_columns(table); column++)
                put_cell(bytes, table, row, column);
    }
}

typedef struct {
    const guint8 *at;
    gsize left;
} Reader;

static gboolean take(Reader *reader, gpointer to, gsize size)
{
    if (reader->left < size)
        return FALSE;
    memcpy(to, reader->at, size);
    reader->at += size;
    reader->left -= size;
    return TRUE;
}

static gboolean take_u32(Reader *reader, guint32 *value)
{
    const gboolean good = take(reader, value, sizeof *value);
    *value = good ? GUINT32_FROM_LE(*value) : 0;
    return good;
}

static char *take_text(Reader *reader)
{
    guint32 length;
    if (!take_u32(reader, &length) || reader->left < length)
        return NULL;
    char *text = g_strndup((const char *)reader->at, length);
    reader->at += length;
    reader->left -= length;
    return text;
}

static gboolean take_cell(Reader *reader, NjTable *table, guint column)
{
    guint8 present;
    if (!take(reader, &present, 1))
        return FALSE;
    if (!present)
        return TRUE;
    const NjColumnType type = nj_table_column(table, column)->type;
    if (type == NJ_COLUMN_TEXT) {
        g_autofree char *text = take_text(reader);
        nj_table_set_text(table, column, text);
        return text != NULL;
    }
    guint64 bits;
    if (!take(reader, &bits, sizeof bits))
        return FALSE;
    bits = GUINT64_FROM_LE(bits);
    if (type == NJ_COLUMN_INTEGER) {
        nj_table_set_integer(table, column, (gint64)bits);
    } else {
        double value;
        memcpy(&value, &bits, sizeof value);
        nj_table_set_real(table, column, value);
    }
    return TRUE;
}

gboolean nj_point_result_decode(NjPointResult *result, const guint8 *bytes, gsize size)
{
    Reader reader = {bytes, size};
    empty(result);
    result->reason = take_text(&reader);
    if (result->reason == NULL)
        return FALSE;
    if (*result->reason == '\0')
        g_clear_pointer(&result->reason, g_free);
    for (guint kind = 0; kind < NJ_N_RESULTS; kind++) {
        NjTable *table = result->tables[kind];
        guint32 n_rows;
        if (!take_u32(&reader, &n_rows) || n_rows > reader.left)
            return FALSE;
        for (guint row = 0; row < n_rows; row++) {
            nj_table_add_row(table);
            for (guint column = 0; column < nj_table_n_columns(table); column++)
                if (!take_cell(&reader, table, column))
                    return FALSE;
        }
    }
    return reader.left == 0 && nj_table_n_rows(result->tables[NJ_RESULT_POINTS]) == 1;
}

// ---- Rows of a store

// Columns before the evaluator's.
static guint n_leading(const NjGrid *grid, NjResultKind kind)
{
    return kind == NJ_RESULT_POINTS ? 1 + grid->n_axes + (guint)G_N_ELEMENTS(status_columns) : 1;
}

NjColumn *nj_result_columns(const NjGrid *grid, const NjEvaluator *evaluator, NjResultKind kind,
                            guint *n_columns)
{
    const NjResultColumns *own = &evaluator->results[kind];
    const guint leading = n_leading(grid, kind);
    NjColumn *columns = g_new0(NjColumn, leading + own->n_columns);
    columns[0] = point_column;
    if (kind == NJ_RESULT_POINTS) {
        nj_grid_columns(grid, columns + 1);
        memcpy(columns + 1 + grid->n_axes, status_columns, sizeof status_columns);
    }
    if (own->n_columns > 0)
        memcpy(columns + leading, own->columns, own->n_columns * sizeof *columns);
    *n_columns = leading + own->n_columns;
    return columns;
}

void nj_result_append_rows(const NjGrid *grid, guint point, const NjPointResult *result, NjResultKind kind,
                           NjTable *table)
{
    const NjTable *own = result->tables[kind];
    const guint leading = n_leading(grid, kind);
    for (guint row = 0; row < nj_table_n_rows(own); row++) {
        nj_table_add_row(table);
        nj_table_set_integer(table, 0, point);
        if (kind == NJ_RESULT_POINTS) {
            nj_grid_fill_row(grid, point, table, 1);
            nj_table_set_text(table, leading - 2, result->reason == NULL ? "ok" : "impossible");
            nj_table_set_text(table, leading - 1, result->reason);
        }
        for (guint column = 0; column < nj_table_n_columns(own); column++)
            nj_table_copy_cell(table, leading + column, own, row, column);
    }
}

void nj_result_take_row(const NjGrid *grid, NjPointResult *result, NjResultKind kind, const NjTable *table,
                        guint row)
{
    NjTable *own = result->tables[kind];
    const guint leading = n_leading(grid, kind);
    if (kind == NJ_RESULT_POINTS) {
        empty(result);
        result->reason = g_strdup(nj_table_get_text(table, row, leading - 1));
    }
    nj_table_add_row(own);
    for (guint column = 0; column < nj_table_n_columns(own); column++)
        nj_table_copy_cell(own, column, table, row, leading + column);
}

gboolean nj_result_check_axes(const NjGrid *grid, const NjEvaluator *evaluator, const char *path,
                              GError **error)
{
    guint n_columns;
    g_autofree NjColumn *columns = nj_result_columns(grid, evaluator, NJ_RESULT_POINTS, &n_columns);
    for (guint axis = 0; axis < grid->n_axes; axis++)
        for (guint column = 0; column < n_columns; column++)
            if (column != 1 + axis && g_str_equal(columns[column].name, grid->axes[axis].name)) {
                g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                            "%s: [%s] %s cannot be an axis: results have a column of that name", path,
                            grid->axes[axis].group, grid->axes[axis].key);
                return FALSE;
            }
    return TRUE;
}
