// SPDX-License-Identifier: MIT
#include "scenarios/ranks.h"

#include "sim/error.h"

#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

// Messages. To rank 0: an ask for points, with the number wanted and the sender's identity; a result, being
// the point's number, whether it can exist, and its bytes; a failure in words. From rank 0: points, none of
// them meaning "go home".
enum { TAG_ASK = 1, TAG_RESULT, TAG_FAILURE, TAG_WORK };

#define IDENTITY_SIZE 64 // hexadecimal SHA-256
#define MOST_POINTS 64   // in one message

typedef struct {
    guint wanted;
    char identity[IDENTITY_SIZE];
} Ask;

struct NjRanks {
    int rank, size, local_size;
    char identity[IDENTITY_SIZE];
    // Rank 0, of every rank:
    guint *n_out;   // [size] points given to it and not back
    gboolean *away; // [size] it was not sent home and has not failed
    // The others:
    gboolean reported; // rank 0 knows how this one ended
};

NjRanks *nj_ranks_join(void)
{
    // MPI_Init() without a launcher starts services of its own, or fails where it may not.
    static const char *const launchers[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
    gboolean launched = FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(launchers); i++)
        launched = launched || g_getenv(launchers[i]) != NULL;
    if (!launched)
        return NULL;
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    NjRanks *ranks = g_new0(NjRanks, 1);
    MPI_Comm local;
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks->size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
    MPI_Comm_size(local, &ranks->local_size);
    MPI_Comm_free(&local);
    ranks->n_out = g_new0(guint, ranks->size);
    ranks->away = g_new0(gboolean, ranks->size);
    for (int rank = 1; rank < ranks->size; rank++)
        ranks->away[rank] = ranks->rank == 0;
    return ranks;
}

int nj_ranks_rank(const NjRanks *ranks)
{
    return ranks->rank;
}

int nj_ranks_size(const NjRanks *ranks)
{
    return ranks->size;
}

int nj_ranks_local_size(const NjRanks *ranks)
{
    return ranks->local_size;
}

void nj_ranks_set_identity(NjRanks *ranks, const char *identity)
{
    g_assert(strlen(identity) == IDENTITY_SIZE);
    memcpy(ranks->identity, identity, IDENTITY_SIZE);
}

// ---- Rank 0

static void send_points(int to, const guint *points, guint n)
{
    MPI_Send(points, (int)n, MPI_UNSIGNED, to, TAG_WORK, MPI_COMM_WORLD);
}

static gboolean answer_ask(NjRanks *ranks, int from, NjWorkQueue *queue, GError **error)
{
    Ask ask;
    MPI_Recv(&ask, sizeof ask, MPI_BYTE, from, TAG_ASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const gboolean same = memcmp(ask.identity, ranks->identity, IDENTITY_SIZE) == 0;
    guint points[MOST_POINTS], n = 0;
    if (queue != NULL && same) {
        // Near the end, small helpings keep all ranks busy until the last point.
        const guint share = nj_work_queue_length(queue) / (4 * (guint)ranks->size);
        n = nj_work_queue_take_some(queue, points, CLAMP(share, ask.wanted, MOST_POINTS));
    }
    send_points(from, points, n);
    ranks->n_out[from] += n;
    ranks->away[from] = n > 0;
    if (queue != NULL && !same) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "rank %d has another scenario, data file or program than rank 0", from);
        return FALSE;
    }
    return TRUE;
}

static gboolean take_result(NjRanks *ranks, const MPI_Status *status, const NjPoolSink *sink, GError **error)
{
    int size;
    MPI_Get_count(status, MPI_BYTE, &size);
    g_autoptr(GByteArray) bytes = g_byte_array_sized_new((guint)size);
    g_byte_array_set_size(bytes, (guint)size);
    MPI_Recv(bytes->data, size, MPI_BYTE, status->MPI_SOURCE, TAG_RESULT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ranks->n_out[status->MPI_SOURCE]--;
    if (sink == NULL)
        return TRUE;
    guint32 head[2];
    memcpy(head, bytes->data, sizeof head);
    g_byte_array_remove_range(bytes, 0, sizeof head);
    return sink->deliver(sink->user, head[0], head[1] != 0, bytes, error);
}

static gboolean take_failure(NjRanks *ranks, const MPI_Status *status, GError **error)
{
    int size;
    MPI_Get_count(status, MPI_BYTE, &size);
    g_autofree char *message = g_malloc0((gsize)size + 1);
    MPI_Recv(message, size, MPI_BYTE, status->MPI_SOURCE, TAG_FAILURE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ranks->n_out[status->MPI_SOURCE] = 0; // what it still had is lost; the sweep ends anyway
    ranks->away[status->MPI_SOURCE] = FALSE;
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "rank %d: %s", status->MPI_SOURCE, message);
    return FALSE;
}

gboolean nj_ranks_serve(NjRanks *ranks, NjWorkQueue *queue, const NjPoolSink *sink, GError **error)
{
    for (;;) {
        int there;
        MPI_Status status;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status);
        if (!there)
            return TRUE;
        gboolean good = TRUE;
        if (status.MPI_TAG == TAG_ASK)
            good = answer_ask(ranks, status.MPI_SOURCE, queue, error);
        else if (status.MPI_TAG == TAG_RESULT)
            good = take_result(ranks, &status, sink, error);
        else
            good = take_failure(ranks, &status, error);
        if (!good)
            return FALSE;
    }
}

gboolean nj_ranks_busy(const NjRanks *ranks)
{
    for (int rank = 1; rank < ranks->size; rank++)
        if (ranks->away[rank] || ranks->n_out[rank] > 0)
            return TRUE;
    return FALSE;
}

void nj_ranks_fail(NjRanks *ranks, const char *message)
{
    g_assert(ranks->rank > 0);
    if (!ranks->reported)
        MPI_Send(message, (int)strlen(message), MPI_BYTE, 0, TAG_FAILURE, MPI_COMM_WORLD);
    ranks->reported = TRUE;
}

void nj_ranks_leave(NjRanks *ranks)
{
    if (ranks == NULL)
        return;
    // After an error before or during the run the others ask, or still send, and are sent home.
    while (ranks->rank == 0 && nj_ranks_busy(ranks)) {
        nj_ranks_serve(ranks, NULL, NULL, NULL);
        g_usleep(1000);
    }
    MPI_Finalize();
    g_free(ranks->n_out);
    g_free(ranks->away);
    g_free(ranks);
}

// ---- The others

typedef struct {
    GByteArray *bytes; // of TAG_RESULT
} Outgoing;

static void outgoing_free(gpointer data)
{
    Outgoing *outgoing = (Outgoing *)data;
    g_byte_array_unref(outgoing->bytes);
    g_free(outgoing);
}

// Called by the threads: the main thread sends.
static gboolean hand_over(gpointer user, guint point, gboolean possible, const GByteArray *result,
                          GError **error)
{
    (void)error;
    const guint32 head[2] = {point, possible};
    Outgoing *outgoing = g_new0(Outgoing, 1);
    outgoing->bytes = g_byte_array_sized_new((guint)sizeof head + result->len);
    g_byte_array_append(outgoing->bytes, (const guint8 *)head, sizeof head);
    g_byte_array_append(outgoing->bytes, result->data, result->len);
    g_async_queue_push((GAsyncQueue *)user, outgoing);
    return TRUE;
}

static void send_results(GAsyncQueue *results, guint64 wait_us)
{
    Outgoing *outgoing = (Outgoing *)g_async_queue_timeout_pop(results, wait_us);
    while (outgoing != NULL) {
        MPI_Send(outgoing->bytes->data, (int)outgoing->bytes->len, MPI_BYTE, 0, TAG_RESULT, MPI_COMM_WORLD);
        outgoing_free(outgoing);
        outgoing = (Outgoing *)g_async_queue_try_pop(results);
    }
}

static void ask_for_points(const char *identity, guint n_threads)
{
    Ask ask = {.wanted = MIN(n_threads, MOST_POINTS)};
    memcpy(ask.identity, identity, IDENTITY_SIZE);
    MPI_Send(&ask, sizeof ask, MPI_BYTE, 0, TAG_ASK, MPI_COMM_WORLD);
}

// Takes an answer, waiting for it or only if it has come. FALSE where there is none yet; *n is 0 where it
// says to go home.
static gboolean take_answer(NjWorkQueue *queue, gboolean wait, int *n)
{
    int there = 1;
    MPI_Status status;
    if (!wait)
        MPI_Iprobe(0, TAG_WORK, MPI_COMM_WORLD, &there, &status);
    if (!there)
        return FALSE;
    guint points[MOST_POINTS];
    MPI_Recv(points, MOST_POINTS, MPI_UNSIGNED, 0, TAG_WORK, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_UNSIGNED, n);
    nj_work_queue_add(queue, points, (guint)*n);
    return TRUE;
}

void nj_ranks_work(NjRanks *ranks, const char *identity, const NjGrid *grid, const NjEvaluator *evaluator,
                   guint n_threads)
{
    g_assert(ranks->rank > 0);
    // Rank 0 decides when to stop, and the others go home with it.
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);

    g_autoptr(NjWorkQueue) queue = nj_work_queue_new();
    g_autoptr(GAsyncQueue) results = g_async_queue_new_full(outgoing_free);
    const NjPoolSink sink = {hand_over, results};
    NjPool *pool = nj_pool_start(grid, evaluator, n_threads, queue, &sink);
    gboolean asked = FALSE, at_home = FALSE;
    int n;
    while (nj_pool_n_running(pool) > 0) {
        // One helping in hand beyond what the threads are at, so that none waits for an answer.
        if (!asked && !at_home && nj_work_queue_length(queue) < n_threads) {
            ask_for_points(identity, n_threads);
            asked = TRUE;
        }
        if (asked && take_answer(queue, FALSE, &n)) {
            asked = FALSE;
            at_home = n == 0;
            if (at_home)
                nj_work_queue_close(queue);
        }
        send_results(results, 500);
    }
    send_results(results, 0);
    g_autoptr(GError) failure = NULL;
    if (!nj_pool_join(pool, &failure))
        nj_ranks_fail(ranks, failure->message);
    ranks->reported = TRUE;
    if (asked) // after a failure: the answer is on its way
        take_answer(queue, TRUE, &n);
}
