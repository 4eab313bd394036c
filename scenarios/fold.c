// SPDX-License-Identifier: MIT
#include "scenarios/fold.h"

#include "sim/error.h"

#include <string.h>

#define BLOCK_ROWS 4096

// ---- Journal to store

static gboolean read_result(const NjJournal *journal, guint record, const NjGrid *grid, GByteArray *bytes,
                            NjPointResult *result, GError **error)
{
    if (!nj_journal_read(journal, record, bytes, error))
        return FALSE;
    if (nj_journal_key(journal, record) < grid->n_points &&
        nj_point_result_decode(result, bytes->data, bytes->len))
        return TRUE;
    g_set_error(error, NJ_ERROR, NJ_ERROR_FILE,
                "the journal's record of point %u is not of this sweep: remove the journal and sweep again",
                nj_journal_key(journal, record));
    return FALSE;
}

typedef struct {
    const NjJournal *journal;
    const NjGrid *grid;
    NjPointResult result;
    GByteArray *bytes;
    NjColumn *columns[NJ_N_RESULTS];
    guint n_columns[NJ_N_RESULTS];
    gsize *text_sizes[NJ_N_RESULTS]; // longest text of each column, bytes
} Fold;

static void fold_clear(Fold *fold)
{
    nj_point_result_clear(&fold->result);
    g_byte_array_unref(fold->bytes);
    for (guint kind = 0; kind < NJ_N_RESULTS; kind++) {
        g_free(fold->columns[kind]);
        g_free(fold->text_sizes[kind]);
    }
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fold, fold_clear)

static void measure_texts(const NjTable *rows, gsize *sizes)
{
    for (guint c = 0; c < nj_table_n_columns(rows); c++)
        for (guint r = 0; nj_table_column(rows, c)->type == NJ_COLUMN_TEXT && r < nj_table_n_rows(rows); r++)
            if (!nj_table_is_missing(rows, r, c))
                sizes[c] = MAX(sizes[c], strlen(nj_table_get_text(rows, r, c)));
}

// The first pass: how wide the text columns are.
static gboolean measure(Fold *fold, GError **error)
{
    NjTable *rows[NJ_N_RESULTS];
    for (guint kind = 0; kind < NJ_N_RESULTS; kind++)
        rows[kind] = nj_table_new(fold->columns[kind], fold->n_columns[kind]);
    gboolean good = TRUE;
    for (guint i = 0; good && i < nj_journal_n_records(fold->journal); i++) {
        good = read_result(fold->journal, i, fold->grid, fold->bytes, &fold->result, error);
        for (guint kind = 0; good && kind < NJ_N_RESULTS; kind++) {
            nj_table_clear_rows(rows[kind]);
            nj_result_append_rows(fold->grid, nj_journal_key(fold->journal, i), &fold->result,
                                  (NjResultKind)kind, rows[kind]);
            measure_texts(rows[kind], fold->text_sizes[kind]);
        }
    }
    for (guint kind = 0; kind < NJ_N_RESULTS; kind++)
        nj_table_free(rows[kind]);
    return good;
}

static gboolean fold_table(Fold *fold, NjResultKind kind, NjStoreWriter *writer, GError **error)
{
    if (!nj_store_writer_begin(writer, nj_result_name(kind), nj_result_title(kind), fold->columns[kind],
                               fold->n_columns[kind], fold->text_sizes[kind], error))
        return FALSE;
    g_autoptr(NjTable) block = nj_table_new(fold->columns[kind], fold->n_columns[kind]);
    const guint n_records = nj_journal_n_records(fold->journal);
    for (guint i = 0; i < n_records; i++) {
        if (!read_result(fold->journal, i, fold->grid, fold->bytes, &fold->result, error))
            return FALSE;
        nj_result_append_rows(fold->grid, nj_journal_key(fold->journal, i), &fold->result, kind, block);
        if (nj_table_n_rows(block) < BLOCK_ROWS && i + 1 < n_records)
            continue;
        if (!nj_store_writer_append(writer, block, error))
            return FALSE;
        nj_table_clear_rows(block);
    }
    return TRUE;
}

gboolean nj_fold(NjJournal *journal, const NjGrid *grid, const NjEvaluator *evaluator,
                 const NjStoreInfo *info, const char *path, GError **error)
{
    nj_journal_sort(journal);
    g_auto(Fold) fold = {.journal = journal, .grid = grid, .bytes = g_byte_array_new()};
    nj_point_result_init(&fold.result, evaluator);
    for (guint kind = 0; kind < NJ_N_RESULTS; kind++) {
        fold.columns[kind] = nj_result_columns(grid, evaluator, (NjResultKind)kind, &fold.n_columns[kind]);
        fold.text_sizes[kind] = g_new0(gsize, fold.n_columns[kind]);
    }
    if (!measure(&fold, error))
        return FALSE;
    g_autoptr(NjStoreWriter) writer = nj_store_writer_new(path, info, error);
    if (writer == NULL)
        return FALSE;
    for (guint kind = 0; kind < NJ_N_RESULTS; kind++)
        if (!fold_table(&fold, (NjResultKind)kind, writer, error))
            return FALSE;
    return nj_store_writer_finish(writer, error);
}

// ---- Store to journal

// A place in a stored table; rows are read a block at a time.
typedef struct {
    NjStore *store;
    guint table;
    guint next; // first row not yet in a block
    guint row;  // in the block
    NjTable *block;
} Cursor;

// Moves to a row; FALSE without an error at the end.
static gboolean cursor_peek(Cursor *cursor, GError **error)
{
    if (cursor->row < nj_table_n_rows(cursor->block))
        return TRUE;
    const guint n = MIN(BLOCK_ROWS, nj_store_n_rows(cursor->store, cursor->table) - cursor->next);
    nj_table_clear_rows(cursor->block);
    cursor->row = 0;
    if (n == 0 || !nj_store_read(cursor->store, cursor->table, cursor->next, n, cursor->block, error))
        return FALSE;
    cursor->next += n;
    return TRUE;
}

static gboolean wrong_table(const char *path, NjResultKind kind, GError **error)
{
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: /%s is not that of this grid", path,
                nj_result_name(kind));
    return FALSE;
}

static gboolean cursor_init(Cursor *cursor, NjStore *store, const char *path, const NjGrid *grid,
                            const NjEvaluator *evaluator, NjResultKind kind, GError **error)
{
    const int table = nj_store_find_table(store, nj_result_name(kind), NULL);
    if (table < 0)
        return wrong_table(path, kind, error);
    guint n_columns;
    g_autofree NjColumn *columns = nj_result_columns(grid, evaluator, kind, &n_columns);
    const NjColumn *stored = nj_store_columns(store, (guint)table);
    gboolean same = n_columns == nj_store_n_columns(store, (guint)table);
    for (guint c = 0; same && c < n_columns; c++)
        same = columns[c].type == stored[c].type && g_str_equal(columns[c].name, stored[c].name);
    if (!same)
        return wrong_table(path, kind, error);
    *cursor = (Cursor){.store = store, .table = (guint)table};
    cursor->block = nj_store_new_table(store, (guint)table);
    return TRUE;
}

GArray *nj_fold_stored_points(NjStore *store, const char *path, const NjGrid *grid,
                              const NjEvaluator *evaluator, GError **error)
{
    Cursor cursor = {0};
    if (!cursor_init(&cursor, store, path, grid, evaluator, NJ_RESULT_POINTS, error))
        return NULL;
    g_autoptr(GArray) points = g_array_new(FALSE, FALSE, sizeof(guint));
    GError *failure = NULL;
    gint64 last = -1;
    while (failure == NULL && cursor_peek(&cursor, &failure)) {
        const gint64 point = nj_table_get_integer(cursor.block, cursor.row++, 0);
        if (point <= last || point >= grid->n_points) {
            wrong_table(path, NJ_RESULT_POINTS, &failure);
            break;
        }
        last = point;
        const guint number = (guint)point;
        g_array_append_val(points, number);
    }
    nj_table_free(cursor.block);
    if (failure != NULL) {
        g_propagate_error(error, failure);
        return NULL;
    }
    return g_steal_pointer(&points);
}

gboolean nj_unfold(NjStore *store, const char *path, const NjGrid *grid, const NjEvaluator *evaluator,
                   GHashTable *skip, NjJournal *journal, GError **error)
{
    Cursor cursors[NJ_N_RESULTS] = {0};
    g_auto(NjPointResult) result;
    nj_point_result_init(&result, evaluator);
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    GError *failure = NULL;
    gboolean good = TRUE;
    for (guint kind = 0; good && kind < NJ_N_RESULTS; kind++)
        good = cursor_init(&cursors[kind], store, path, grid, evaluator, (NjResultKind)kind, &failure);
    Cursor *points = &cursors[NJ_RESULT_POINTS];
    while (good && cursor_peek(points, &failure)) {
        const gint64 point = nj_table_get_integer(points->block, points->row, 0);
        // Rows of the other tables stand in the order of the points too.
        for (guint kind = 0; kind < NJ_N_RESULTS; kind++)
            while (failure == NULL && cursor_peek(&cursors[kind], &failure) &&
                   nj_table_get_integer(cursors[kind].block, cursors[kind].row, 0) == point)
                nj_result_take_row(grid, &result, (NjResultKind)kind, cursors[kind].block,
                                   cursors[kind].row++);
        good = failure == NULL;
        if (!good || (skip != NULL && g_hash_table_contains(skip, GUINT_TO_POINTER((guint)point))))
            continue;
        g_byte_array_set_size(bytes, 0);
        nj_point_result_encode(&result, bytes);
        good = nj_journal_append(journal, (guint32)point, bytes, &failure);
    }
    for (guint kind = 0; kind < NJ_N_RESULTS; kind++)
        g_clear_pointer(&cursors[kind].block, nj_table_free);
    if (failure != NULL)
        g_propagate_error(error, failure);
    return failure == NULL;
}
