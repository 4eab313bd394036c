// SPDX-License-Identifier: MIT
#pragma once
// Threads that evaluate points. They share one queue: each takes the next point when it is done with its
// last, so cheap and expensive points even out. What a point gave is handed on as bytes in the order of
// completion.

#include "scenarios/evaluator.h"

#include <glib.h>

G_BEGIN_DECLS

// ---- A queue of points; any thread may use it.

typedef struct NjWorkQueue NjWorkQueue;

NjWorkQueue *nj_work_queue_new(void); // empty and open. Transfer full
void nj_work_queue_free(NjWorkQueue *queue);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjWorkQueue, nj_work_queue_free)

void nj_work_queue_add(NjWorkQueue *queue, const guint *points, guint n);
// Nothing will be added any more: takers go home once it is empty.
void nj_work_queue_close(NjWorkQueue *queue);
// Closes, and forgets what was not taken.
void nj_work_queue_stop(NjWorkQueue *queue);
// Waits for a point; FALSE once the queue is closed and empty.
gboolean nj_work_queue_take(NjWorkQueue *queue, guint *point);
// Takes up to maximum points without waiting; gives how many.
guint nj_work_queue_take_some(NjWorkQueue *queue, guint *points, guint maximum);
guint nj_work_queue_length(NjWorkQueue *queue);

// ---- The threads

// Receives a finished point; called by the pool's threads, concurrently. FALSE and an error end the pool.
typedef struct {
    gboolean (*deliver)(gpointer user, guint point, gboolean possible, const GByteArray *result,
                        GError **error);
    gpointer user;
} NjPoolSink;

typedef struct NjPool NjPool;

// Starts threads, each with a clone of the evaluator. grid, evaluator, queue and what the sink points to must
// outlive the pool. Transfer full.
NjPool *nj_pool_start(const NjGrid *grid, const NjEvaluator *evaluator, guint n_threads, NjWorkQueue *queue,
                      const NjPoolSink *sink);
guint nj_pool_n_running(NjPool *pool); // threads that have not gone home
// Waits for all threads and frees. FALSE where one of them failed, with the error of the first; the queue was
// stopped then.
gboolean nj_pool_join(NjPool *pool, GError **error);

G_END_DECLS
