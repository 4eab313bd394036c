// SPDX-License-Identifier: MIT
#include "scenarios/fold.h"
#include "scenarios/sweep-private.h"
#include "sim/error.h"

#include <string.h>

typedef struct {
    const char *const *paths;
    NjStore **stores; // [n]
    guint n;
} Shards;

static void shards_clear(Shards *shards)
{
    for (guint i = 0; i < shards->n; i++)
        nj_store_free(shards->stores[i]);
    g_free(shards->stores);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Shards, shards_clear)

static gboolean fail(const char *path, GError **error, const char *format, ...) G_GNUC_PRINTF(3, 4);

static gboolean fail(const char *path, GError **error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: %s", path, what);
    return FALSE;
}

// All shards are of one sweep and selection, and each is there once.
static gboolean check_together(const Shards *shards, GError **error)
{
    const NjStoreInfo *first = nj_store_info(shards->stores[0]);
    if (first->n_shards == 0)
        return fail(shards->paths[0], error, "not a shard: a sweep with --shard writes one");
    g_autofree const char **owners = g_new0(const char *, first->n_shards);
    for (guint i = 0; i < shards->n; i++) {
        const char *path = shards->paths[i];
        const NjStoreInfo *info = nj_store_info(shards->stores[i]);
        if (i > 0 && !nj_sweep_check_same(path, info, first, error))
            return FALSE;
        if (info->n_shards != first->n_shards)
            return fail(path, error, "one of %d shards, but %s is one of %d", (int)info->n_shards,
                        shards->paths[0], (int)first->n_shards);
        if (!g_str_equal(info->where, first->where) || info->limit != first->limit)
            return fail(path, error, "another --where or --limit than %s", shards->paths[0]);
        if (owners[info->shard] != NULL)
            return fail(path, error, "the same shard %d/%d as %s", (int)info->shard, (int)info->n_shards,
                        owners[info->shard]);
        owners[info->shard] = path;
    }
    g_autoptr(GString) missing = g_string_new(NULL);
    for (gint64 shard = 0; shard < first->n_shards; shard++)
        if (owners[shard] == NULL)
            g_string_append_printf(missing, "%s%d/%d", missing->len > 0 ? ", " : "", (int)shard,
                                   (int)first->n_shards);
    if (missing->len > 0)
        return fail(shards->paths[0], error, "belongs to a sweep of which these shards are missing: %s",
                    missing->str);
    return TRUE;
}

// A shard has the points it should have.
static gboolean check_complete(NjStore *store, const char *path, const NjGrid *grid,
                               const NjEvaluator *evaluator, GError **error)
{
    const NjStoreInfo *info = nj_store_info(store);
    const NjSelection selection = {*info->where != '\0' ? info->where : NULL, (guint)info->limit,
                                   (guint)info->shard, (guint)info->n_shards};
    g_autoptr(GArray) expected = nj_grid_select(grid, &selection, error);
    g_autoptr(GArray) points =
        expected != NULL ? nj_fold_stored_points(store, path, grid, evaluator, error) : NULL;
    if (points == NULL)
        return FALSE;
    if (points->len == expected->len &&
        (points->len == 0 || memcmp(points->data, expected->data, points->len * sizeof(guint)) == 0))
        return TRUE;
    return fail(path, error, "holds %u points where shard %d/%d has %u", points->len, (int)info->shard,
                (int)info->n_shards, expected->len);
}

gboolean nj_sweep_merge(const char *const *paths, guint n_paths, const NjGrid *grid,
                        const NjEvaluator *evaluator, const char *output, GError **error)
{
    g_auto(Shards) shards = {.paths = paths, .stores = g_new0(NjStore *, n_paths), .n = n_paths};
    for (guint i = 0; i < n_paths; i++)
        if ((shards.stores[i] = nj_store_open(paths[i], error)) == NULL)
            return FALSE;
    if (!check_together(&shards, error))
        return FALSE;
    for (guint i = 0; i < n_paths; i++)
        if (!check_complete(shards.stores[i], paths[i], grid, evaluator, error))
            return FALSE;
    if (!nj_store_check_writable(output, error))
        return FALSE;
    if (g_file_test(output, G_FILE_TEST_EXISTS))
        return fail(output, error, "exists already");

    g_auto(NjStoreInfo) info = {0};
    nj_store_info_copy(&info, nj_store_info(shards.stores[0]));
    info.shard = info.n_shards = 0;
    g_autofree char *path = g_strconcat(output, ".journal", NULL);
    g_autoptr(NjJournal) journal = nj_journal_open(path, error);
    if (journal == NULL)
        return FALSE;
    g_autoptr(GByteArray) left = nj_journal_header(journal);
    if (left != NULL)
        return fail(path, error, "is of a sweep that is not finished; give another output");
    g_autoptr(GByteArray) header = nj_sweep_header_encode(&info, grid, evaluator);
    gboolean good = nj_journal_start(journal, header, error);
    for (guint i = 0; good && i < n_paths; i++)
        good = nj_unfold(shards.stores[i], paths[i], grid, evaluator, NULL, journal, error);
    good = good && nj_fold(journal, grid, evaluator, &info, output, error);
    nj_journal_remove(journal); // the shards still hold everything
    return good;
}
