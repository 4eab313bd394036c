// SPDX-License-Identifier: MIT
#include "scenarios/sweep.h"

#include "scenarios/fold.h"
#include "scenarios/journal.h"
#include "scenarios/pool.h"
#include "scenarios/progress.h"
#include "scenarios/sweep-private.h"
#include "sim/error.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#ifdef NJ_MPI
#include "scenarios/ranks.h"
#endif

#define SYNC_INTERVAL_S 1.0 // at most this much work is lost when the power fails

static double now_s(void)
{
    return (double)g_get_monotonic_time() * 1e-6;
}

// ---- What there is already

typedef struct {
    const NjGrid *grid;
    const NjEvaluator *evaluator;
    const NjSweepOptions *options;
    NjStoreInfo info;
    GArray *selected;   // guint, ascending
    NjJournal *journal; // NULL where nothing may be written
    NjStore *store;     // NULL where there is none yet
    GHashTable *in_journal, *in_store;
    GArray *todo; // guint, ascending
} Sweep;

static void sweep_clear(Sweep *sweep)
{
    nj_store_info_clear(&sweep->info);
    g_clear_pointer(&sweep->selected, g_array_unref);
    g_clear_pointer(&sweep->journal, nj_journal_free);
    g_clear_pointer(&sweep->store, nj_store_free);
    g_clear_pointer(&sweep->in_journal, g_hash_table_unref);
    g_clear_pointer(&sweep->in_store, g_hash_table_unref);
    g_clear_pointer(&sweep->todo, g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Sweep, sweep_clear)

static char *journal_path(const char *output)
{
    return g_strconcat(output, ".journal", NULL);
}

// What is there must be of this sweep.
static gboolean check_ours(const char *path, const NjStoreInfo *there, const NjStoreInfo *here,
                           GError **error)
{
    g_autoptr(GError) difference = NULL;
    if (nj_sweep_check_same(path, there, here, &difference))
        return TRUE;
    g_set_error(error, difference->domain, difference->code, "%s; give another output, or remove it",
                difference->message);
    return FALSE;
}

static gboolean find_stored(Sweep *sweep, GError **error)
{
    const char *path = sweep->options->output;
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        return TRUE;
    sweep->store = nj_store_open(path, error);
    if (sweep->store == NULL || !check_ours(path, nj_store_info(sweep->store), &sweep->info, error))
        return FALSE;
    g_autoptr(GArray) points =
        nj_fold_stored_points(sweep->store, path, sweep->grid, sweep->evaluator, error);
    for (guint i = 0; points != NULL && i < points->len; i++)
        g_hash_table_add(sweep->in_store, GUINT_TO_POINTER(g_array_index(points, guint, i)));
    return points != NULL;
}

static gboolean find_journalled(Sweep *sweep, GError **error)
{
    g_autofree char *path = journal_path(sweep->options->output);
    sweep->journal = nj_journal_open(path, error);
    if (sweep->journal == NULL)
        return FALSE;
    g_autoptr(GByteArray) header = nj_journal_header(sweep->journal);
    if (header == NULL)
        return TRUE;
    g_auto(NjStoreInfo) info = {0};
    if (!nj_sweep_header_decode(header, sweep->grid, sweep->evaluator, &info)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_FILE,
                    "%s: written by another version of nanojoule; remove it or give another output", path);
        return FALSE;
    }
    if (!check_ours(path, &info, &sweep->info, error))
        return FALSE;
    for (guint i = 0; i < nj_journal_n_records(sweep->journal); i++)
        g_hash_table_add(sweep->in_journal, GUINT_TO_POINTER(nj_journal_key(sweep->journal, i)));
    return TRUE;
}

static gboolean has_point(GHashTable *set, guint point)
{
    return g_hash_table_contains(set, GUINT_TO_POINTER(point));
}

// What is selected and not there. What is there and not selected would make a file that is neither of both.
static gboolean find_todo(Sweep *sweep, GError **error)
{
    g_autoptr(GHashTable) selected = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < sweep->selected->len; i++) {
        const guint point = g_array_index(sweep->selected, guint, i);
        g_hash_table_add(selected, GUINT_TO_POINTER(point));
        if (!has_point(sweep->in_store, point) && !has_point(sweep->in_journal, point))
            g_array_append_val(sweep->todo, point);
    }
    GHashTable *const sets[] = {sweep->in_store, sweep->in_journal};
    for (guint i = 0; i < G_N_ELEMENTS(sets); i++) {
        GHashTableIter iter;
        gpointer point;
        g_hash_table_iter_init(&iter, sets[i]);
        while (g_hash_table_iter_next(&iter, &point, NULL)) {
            if (g_hash_table_contains(selected, point))
                continue;
            g_set_error(
                error, NJ_ERROR, NJ_ERROR_INPUT,
                "%s: holds points that this --where, --limit or --shard leaves out; give another output",
                sweep->options->output);
            return FALSE;
        }
    }
    return TRUE;
}

// Everything before the first point is computed. With `write`, the journal is opened and locked.
static gboolean prepare(Sweep *sweep, gboolean write, GError **error)
{
    const NjSweepOptions *options = sweep->options;
    sweep->in_journal = g_hash_table_new(NULL, NULL);
    sweep->in_store = g_hash_table_new(NULL, NULL);
    sweep->todo = g_array_new(FALSE, FALSE, sizeof(guint));
    sweep->info = (NjStoreInfo){
        .text = g_strdup(options->scenario_text),
        .hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, options->scenario_text, -1),
        .version = g_strdup(NJ_VERSION),
        .inputs = g_strdup(options->inputs),
        .where = g_strdup(options->selection.where != NULL ? options->selection.where : ""),
        .limit = options->selection.limit,
        .shard = options->selection.shard,
        .n_shards = options->selection.n_shards,
        .n_points = sweep->grid->n_points,
    };
    sweep->selected = nj_grid_select(sweep->grid, &options->selection, error);
    if (sweep->selected == NULL ||
        !nj_result_check_axes(sweep->grid, sweep->evaluator, options->scenario_path, error))
        return FALSE;
    // A shard may be empty where there are more shards than points; its store says so to a merge.
    if (sweep->selected->len == 0 && options->selection.n_shards == 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "%s: no point of the grid is selected",
                    options->scenario_path);
        return FALSE;
    }
    if (!nj_store_check_writable(options->output, error))
        return FALSE;
    g_autofree char *journal = journal_path(options->output);
    // The store is read under the journal's lock: another sweep may be replacing it.
    if ((write || g_file_test(journal, G_FILE_TEST_EXISTS)) && !find_journalled(sweep, error))
        return FALSE;
    return find_stored(sweep, error) && find_todo(sweep, error);
}

static gboolean stored_as_selected(const Sweep *sweep)
{
    if (sweep->store == NULL || sweep->todo->len > 0 ||
        g_hash_table_size(sweep->in_store) != sweep->selected->len)
        return FALSE;
    const NjStoreInfo *info = nj_store_info(sweep->store);
    return g_str_equal(info->where, sweep->info.where) && info->limit == sweep->info.limit &&
           info->shard == sweep->info.shard && info->n_shards == sweep->info.n_shards;
}

// Brings all finished points into the journal, which is what is folded in the end.
static gboolean begin_journal(Sweep *sweep, GError **error)
{
    g_autoptr(GByteArray) header = nj_journal_header(sweep->journal);
    if (header == NULL) {
        header = nj_sweep_header_encode(&sweep->info, sweep->grid, sweep->evaluator);
        if (!nj_journal_start(sweep->journal, header, error))
            return FALSE;
    }
    return sweep->store == NULL || nj_unfold(sweep->store, sweep->options->output, sweep->grid,
                                             sweep->evaluator, sweep->in_journal, sweep->journal, error);
}

// ---- The run

typedef struct {
    NjJournal *journal;
    gint n_done;       // atomic
    gint n_impossible; // atomic
} Delivery;

static gboolean deliver(gpointer user, guint point, gboolean possible, const GByteArray *result,
                        GError **error)
{
    Delivery *delivery = (Delivery *)user;
    if (!nj_journal_append(delivery->journal, point, result, error))
        return FALSE;
    g_atomic_int_inc(&delivery->n_done);
    if (!possible)
        g_atomic_int_inc(&delivery->n_impossible);
    return TRUE;
}

// Waits up to a tick for SIGINT or SIGTERM, which every thread of the sweep blocks. A sweep that has just
// begun ticks fast, so that a short one ends when it is done.
static gboolean wait_for_signal(const sigset_t *signals, double elapsed_s)
{
    const double tick_s = CLAMP(elapsed_s / 50, 0.001, 0.05);
    const struct timespec tick = {.tv_nsec = (long)(tick_s * 1e9)};
    return sigtimedwait(signals, NULL, &tick) > 0;
}

typedef struct {
    Sweep *sweep;
    NjWorkQueue *queue;
    NjPool *pool;
    NjPoolSink sink;
    NjProgress progress;
    double start_s, synced_s;
    guint n_signals;
    GError *error; // of the main thread
} Run;

static void stop_with(Run *run, GError *error)
{
    if (run->error == NULL)
        run->error = error;
    else
        g_error_free(error);
    nj_work_queue_stop(run->queue);
}

static void take_signal(Run *run, const sigset_t *signals)
{
    if (++run->n_signals > 1) {
        signal(SIGTERM, SIG_DFL);
        sigprocmask(SIG_UNBLOCK, signals, NULL);
        raise(SIGTERM);
    }
    nj_work_queue_stop(run->queue);
    nj_progress_end(&run->progress);
    if (run->progress.out != NULL)
        fprintf(run->progress.out, "stopping: points in progress are finished first; again to end at once\n");
}

// One round of the main thread; FALSE once everything is done.
static gboolean tick(Run *run, const sigset_t *signals, const Delivery *delivery)
{
    NjRanks *ranks = run->sweep->options->ranks;
    GError *error = NULL;
#ifdef NJ_MPI
    if (ranks != NULL && !nj_ranks_serve(ranks, run->queue, &run->sink, &error))
        stop_with(run, g_steal_pointer(&error));
    const gboolean busy = ranks != NULL && nj_ranks_busy(ranks);
#else
    g_assert(ranks == NULL);
    const gboolean busy = FALSE;
#endif
    if (nj_pool_n_running(run->pool) == 0 && !busy)
        return FALSE;
    const double now = now_s();
    if (wait_for_signal(signals, ranks != NULL ? 0 : now - run->start_s))
        take_signal(run, signals);
    if (now - run->synced_s > SYNC_INTERVAL_S) {
        if (!nj_journal_sync(run->sweep->journal, &error))
            stop_with(run, g_steal_pointer(&error));
        run->synced_s = now_s();
    }
    if (run->n_signals == 0)
        nj_progress_show(&run->progress, run->progress.n_before + (guint)g_atomic_int_get(&delivery->n_done));
    return TRUE;
}

static gboolean compute(Sweep *sweep, NjSweepSummary *summary, GError **error)
{
    sigset_t signals, before;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, &before);

    Delivery delivery = {.journal = sweep->journal};
    Run run = {.sweep = sweep, .sink = {deliver, &delivery}};
    g_autoptr(NjWorkQueue) queue = nj_work_queue_new();
    run.queue = queue;
    nj_work_queue_add(queue, (const guint *)(gpointer)sweep->todo->data, sweep->todo->len);
    nj_work_queue_close(queue);
    nj_progress_init(&run.progress, sweep->options->progress, "points", summary->n_points, summary->n_before);
    run.start_s = run.synced_s = now_s();
    const guint n_threads = CLAMP(sweep->options->jobs, 1, MAX(sweep->todo->len, 1));
    run.pool = nj_pool_start(sweep->grid, sweep->evaluator, n_threads, queue, &run.sink);
    while (tick(&run, &signals, &delivery))
        ;
    nj_progress_end(&run.progress);
    GError *failure = NULL;
    if (!nj_pool_join(run.pool, &failure))
        stop_with(&run, failure);
    failure = NULL;
    if (run.error == NULL && !nj_journal_sync(sweep->journal, &failure))
        stop_with(&run, failure);
    pthread_sigmask(SIG_SETMASK, &before, NULL);

    summary->n_computed = (guint)delivery.n_done;
    summary->n_impossible = (guint)delivery.n_impossible;
    summary->elapsed_s = now_s() - run.start_s;
    const guint n_done = summary->n_before + summary->n_computed;
    if (run.error != NULL) {
        g_propagate_prefixed_error(
            error, run.error, "stopped after %u of %u points, which are kept: ", n_done, summary->n_points);
        return FALSE;
    }
    if (n_done < summary->n_points) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_STOPPED,
                    "stopped after %u of %u points, which are kept: the same command goes on from there",
                    n_done, summary->n_points);
        return FALSE;
    }
    return TRUE;
}

gboolean nj_sweep_run(const NjGrid *grid, const NjEvaluator *evaluator, const NjSweepOptions *options,
                      NjSweepSummary *summary, GError **error)
{
    *summary = (NjSweepSummary){0};
    g_auto(Sweep) sweep = {.grid = grid, .evaluator = evaluator, .options = options};
    if (!prepare(&sweep, TRUE, error))
        return FALSE;
    summary->n_points = sweep.selected->len;
    summary->n_before = summary->n_points - sweep.todo->len;
    summary->n_cut_bytes = nj_journal_n_cut_bytes(sweep.journal);
    if (stored_as_selected(&sweep)) {
        // A run that was killed between writing the store and removing its journal leaves both.
        nj_journal_remove(sweep.journal);
        return TRUE;
    }
    if (!begin_journal(&sweep, error) || !compute(&sweep, summary, error) ||
        !nj_fold(sweep.journal, grid, evaluator, &sweep.info, options->output, error))
        return FALSE;
    nj_journal_remove(sweep.journal);
    return TRUE;
}

gboolean nj_sweep_estimate(const NjGrid *grid, const NjEvaluator *evaluator, const NjSweepOptions *options,
                           NjSweepEstimate *estimate, GError **error)
{
    static const guint most = 20;
    static const double enough_s = 2;
    *estimate = (NjSweepEstimate){0};
    g_auto(Sweep) sweep = {.grid = grid, .evaluator = evaluator, .options = options};
    if (!prepare(&sweep, FALSE, error))
        return FALSE;
    const guint n_todo = sweep.todo->len;
    estimate->n_points = sweep.selected->len;
    estimate->n_before = estimate->n_points - n_todo;
    const guint n_sample = MIN(most, n_todo);
    g_autoptr(NjEvaluator) own = evaluator->clone(evaluator);
    g_auto(NjPointResult) result;
    nj_point_result_init(&result, own);
    const double start_s = now_s();
    // In strides of 7 of 20, so that a sample cut short still spreads over the grid.
    const guint stride = n_sample == most ? 7 : 1;
    for (guint i = 0; i < n_sample && estimate->sampled_s < enough_s; i++) {
        const guint position = (guint)((guint64)(i * stride % n_sample) * n_todo / n_sample);
        const guint point = g_array_index(sweep.todo, guint, position);
        nj_point_result_reset(&result);
        if (!own->evaluate(own, grid, point, &result, error)) {
            g_autofree char *where = nj_grid_describe(grid, point);
            g_prefix_error(error, "point %u (%s): ", point, where);
            return FALSE;
        }
        estimate->n_sampled++;
        estimate->sampled_s = now_s() - start_s;
    }
    if (estimate->n_sampled > 0)
        estimate->estimated_s =
            estimate->sampled_s / estimate->n_sampled * n_todo / MIN(options->jobs, MAX(n_todo, 1));
    return TRUE;
}
