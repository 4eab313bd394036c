// SPDX-License-Identifier: MIT
#include "scenarios/pool.h"

struct NjWorkQueue {
    GMutex mutex;
    GCond changed;
    GArray *points; // guint
    guint next;     // first not taken
    gboolean closed;
};

NjWorkQueue *nj_work_queue_new(void)
{
    NjWorkQueue *queue = g_new0(NjWorkQueue, 1);
    g_mutex_init(&queue->mutex);
    g_cond_init(&queue->changed);
    queue->points = g_array_new(FALSE, FALSE, sizeof(guint));
    return queue;
}

void nj_work_queue_free(NjWorkQueue *queue)
{
    if (queue == NULL)
        return;
    g_array_free(queue->points, TRUE);
    g_cond_clear(&queue->changed);
    g_mutex_clear(&queue->mutex);
    g_free(queue);
}

void nj_work_queue_add(NjWorkQueue *queue, const guint *points, guint n)
{
    g_mutex_lock(&queue->mutex);
    if (!queue->closed)
        g_array_append_vals(queue->points, points, n);
    g_cond_broadcast(&queue->changed);
    g_mutex_unlock(&queue->mutex);
}

void nj_work_queue_close(NjWorkQueue *queue)
{
    g_mutex_lock(&queue->mutex);
    queue->closed = TRUE;
    g_cond_broadcast(&queue->changed);
    g_mutex_unlock(&queue->mutex);
}

void nj_work_queue_stop(NjWorkQueue *queue)
{
    g_mutex_lock(&queue->mutex);
    queue->closed = TRUE;
    queue->next = queue->points->len;
    g_cond_broadcast(&queue->changed);
    g_mutex_unlock(&queue->mutex);
}

gboolean nj_work_queue_take(NjWorkQueue *queue, guint *point)
{
    g_mutex_lock(&queue->mutex);
    while (queue->next == queue->points->len && !queue->closed)
        g_cond_wait(&queue->changed, &queue->mutex);
    const gboolean found = queue->next < queue->points->len;
    if (found)
        *point = g_array_index(queue->points, guint, queue->next++);
    g_mutex_unlock(&queue->mutex);
    return found;
}

guint nj_work_queue_take_some(NjWorkQueue *queue, guint *points, guint maximum)
{
    g_mutex_lock(&queue->mutex);
    const guint n = MIN(maximum, queue->points->len - queue->next);
    for (guint i = 0; i < n; i++)
        points[i] = g_array_index(queue->points, guint, queue->next++);
    g_mutex_unlock(&queue->mutex);
    return n;
}

guint nj_work_queue_length(NjWorkQueue *queue)
{
    g_mutex_lock(&queue->mutex);
    const guint n = queue->points->len - queue->next;
    g_mutex_unlock(&queue->mutex);
    return n;
}

struct NjPool {
    const NjGrid *grid;
    NjWorkQueue *queue;
    NjPoolSink sink;
    guint n_threads;
    GThread **threads;        // [n_threads]
    NjEvaluator **evaluators; // [n_threads]
    gint n_started;           // atomic: threads that have found their evaluator
    gint n_running;           // atomic
    GMutex mutex;             // guards error
    GError *error;            // of the first thread that failed
};

static void keep_error(NjPool *pool, GError *error)
{
    g_mutex_lock(&pool->mutex);
    if (pool->error == NULL)
        pool->error = error;
    else
        g_error_free(error);
    g_mutex_unlock(&pool->mutex);
    nj_work_queue_stop(pool->queue);
}

static gboolean evaluate_point(NjPool *pool, NjEvaluator *evaluator, guint point, NjPointResult *result,
                               GByteArray *bytes, GError **error)
{
    nj_point_result_reset(result);
    g_byte_array_set_size(bytes, 0);
    if (!evaluator->evaluate(evaluator, pool->grid, point, result, error)) {
        g_autofree char *where = nj_grid_describe(pool->grid, point);
        g_prefix_error(error, "point %u (%s): ", point, where);
        return FALSE;
    }
    nj_point_result_encode(result, bytes);
    return pool->sink.deliver(pool->sink.user, point, result->reason == NULL, bytes, error);
}

static gpointer work(gpointer data)
{
    NjPool *pool = (NjPool *)data;
    NjEvaluator *evaluator = pool->evaluators[g_atomic_int_add(&pool->n_started, 1)];
    g_auto(NjPointResult) result;
    nj_point_result_init(&result, evaluator);
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    guint point;
    while (nj_work_queue_take(pool->queue, &point)) {
        GError *error = NULL;
        if (!evaluate_point(pool, evaluator, point, &result, bytes, &error)) {
            keep_error(pool, error);
            break;
        }
    }
    g_atomic_int_add(&pool->n_running, -1);
    return NULL;
}

NjPool *nj_pool_start(const NjGrid *grid, const NjEvaluator *evaluator, guint n_threads, NjWorkQueue *queue,
                      const NjPoolSink *sink)
{
    NjPool *pool = g_new0(NjPool, 1);
    pool->grid = grid;
    pool->queue = queue;
    pool->sink = *sink;
    pool->n_threads = n_threads;
    pool->n_running = (gint)n_threads;
    pool->threads = g_new0(GThread *, n_threads);
    pool->evaluators = g_new0(NjEvaluator *, n_threads);
    g_mutex_init(&pool->mutex);
    for (guint i = 0; i < n_threads; i++)
        pool->evaluators[i] = evaluator->clone(evaluator);
    for (guint i = 0; i < n_threads; i++)
        pool->threads[i] = g_thread_new("sweep", work, pool);
    return pool;
}

guint nj_pool_n_running(NjPool *pool)
{
    return (guint)g_atomic_int_get(&pool->n_running);
}

gboolean nj_pool_join(NjPool *pool, GError **error)
{
    for (guint i = 0; i < pool->n_threads; i++) {
        g_thread_join(pool->threads[i]);
        nj_evaluator_free(pool->evaluators[i]);
    }
    const gboolean good = pool->error == NULL;
    if (!good)
        g_propagate_error(error, pool->error);
    g_mutex_clear(&pool->mutex);
    g_free(pool->threads);
    g_free(pool->evaluators);
    g_free(pool);
    return good;
}
