// SPDX-License-Identifier: MIT
#pragma once
// A discrete-event queue. Time is an integer number of picoseconds, so that no comparison ever depends on
// rounding. The order of events is total and deterministic: (time, priority, sequence of scheduling); ties in
// time go to the lower priority number, then to the event scheduled first. Events are small values: the queue
// knows neither what a kind means nor what its subject is. A pending event has a handle with which it is
// moved or cancelled; the handle dies when the event is taken. Scheduling in the past is a bug (assert).
// Nothing is allocated as long as no more events are pending than were reserved; beyond that the queue
// doubles.
//
// Inside: a 4-ary heap of 24-byte entries, and per slot its place in the heap. Taking an event leaves a hole
// at the root, which the next one scheduled mostly fills: one walk down the heap where removing and inserting
// would be two.

#include <glib.h>

G_BEGIN_DECLS

typedef gint64 NjTime; // picoseconds

#define NJ_PS_PER_S 1e12
#define NJ_TIME_MAX G_MAXINT64
#define NJ_NO_EVENT G_MAXUINT32

typedef guint32 NjEventId;

typedef struct {
    NjTime time;
    guint32 kind;    // the user's enum
    guint32 subject; // the user's index
} NjEvent;

typedef struct {
    NjTime time;
    guint64 order; // priority in the top 8 bits, then the sequence number
    guint32 slot;
} NjHeapEntry;

typedef struct {
    guint32 kind;
    guint32 subject;
    guint32 place; // index in the heap while pending; next free slot otherwise
} NjEventSlot;

typedef struct {
    NjTime now;
    guint64 sequence;
    guint64 n_taken; // events handed out so far
    guint n_heap;    // entries in the heap, with the hole
    gboolean hole;   // entry 0 has been taken
    guint capacity;
    guint32 first_free;
    NjHeapEntry *heap;  // [capacity]
    NjEventSlot *slots; // [capacity]
} NjEngine;

// Reserves room for the given number of pending events; time starts at 0.
void nj_engine_init(NjEngine *engine, guint reserve);
void nj_engine_clear(NjEngine *engine);
// Forgets all events and sets time to 0; memory is kept.
void nj_engine_reset(NjEngine *engine);

NjEventId nj_engine_schedule(NjEngine *engine, NjTime time, guint8 priority, guint32 kind, guint32 subject);
// Moves a pending event; among events of equal time and priority it now counts as scheduled last.
void nj_engine_reschedule(NjEngine *engine, NjEventId id, NjTime time);
void nj_engine_cancel(NjEngine *engine, NjEventId id);

// Events scheduled and not yet taken.
static inline guint nj_engine_n_pending(const NjEngine *engine)
{
    return engine->n_heap - (engine->hole ? 1 : 0);
}

// Takes the next event and moves time to it; FALSE when none is pending.
gboolean nj_engine_next(NjEngine *engine, NjEvent *event);

// Walks all invariants (heap order, places, free list) and asserts them. For tests.
void nj_engine_verify(const NjEngine *engine);

G_END_DECLS
