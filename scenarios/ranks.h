// SPDX-License-Identifier: MIT
#pragma once
// A sweep spread over the processes of an MPI job. Rank 0 holds queue, journal and store and is the only one
// that writes; the others ask it for points and send back what they gave, each working with threads of its
// own. A rank that is faster asks more often. Only the main thread of a process speaks MPI.
//
// Built with -Dmpi=enabled only.

#include "scenarios/pool.h"
#include "scenarios/sweep.h"

G_BEGIN_DECLS

// Joins the MPI job this process was started in; NULL where it was not started by an MPI launcher. Transfer
// full.
NjRanks *nj_ranks_join(void);
// Leaves the job. On rank 0 it sends the others home first.
void nj_ranks_leave(NjRanks *ranks);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjRanks, nj_ranks_leave)

int nj_ranks_rank(const NjRanks *ranks);
int nj_ranks_size(const NjRanks *ranks);
// Processes of the job on this machine.
int nj_ranks_local_size(const NjRanks *ranks);

// On rank 0: answers what the other ranks have sent since the last call. Results go to the sink. Must be
// called often while points are left or out. FALSE and an error where the sink or another rank failed, or
// where a rank has another scenario; stop the queue then and go on calling.
gboolean nj_ranks_serve(NjRanks *ranks, NjWorkQueue *queue, const NjPoolSink *sink, GError **error);
// On rank 0: points that others have been given and not sent back, and ranks not yet sent home.
gboolean nj_ranks_busy(const NjRanks *ranks);

// On the others: works until rank 0 sends home. Failures are reported to rank 0. identity is a digest of what
// is swept, the same on all ranks (64 characters).
void nj_ranks_work(NjRanks *ranks, const char *identity, const NjGrid *grid, const NjEvaluator *evaluator,
                   guint n_threads);
// On the others: tells rank 0 that this one cannot work.
void nj_ranks_fail(NjRanks *ranks, const char *message);
// On rank 0, before the first serve.
void nj_ranks_set_identity(NjRanks *ranks, const char *identity);

G_END_DECLS
