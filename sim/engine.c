// SPDX-License-Identifier: MIT
#include "sim/engine.h"

#define ARITY 4u
#define PRIORITY_SHIFT 56

static inline gboolean before(const NjHeapEntry *a, const NjHeapEntry *b)
{
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static inline void put(NjEngine *engine, guint place, NjHeapEntry entry)
{
    engine->heap[place] = entry;
    engine->slots[entry.slot].place = place;
}

static void sift_up(NjEngine *engine, guint place, NjHeapEntry entry)
{
    while (place > 0) {
        const guint parent = (place - 1) / ARITY;
        if (!before(&entry, &engine->heap[parent]))
            break;
        put(engine, place, engine->heap[parent]);
        place = parent;
    }
    put(engine, place, entry);
}

static void sift_down(NjEngine *engine, guint place, NjHeapEntry entry)
{
    for (;;) {
        const guint first = place * ARITY + 1;
        if (first >= engine->n_pending)
            break;
        const guint end = MIN(first + ARITY, engine->n_pending);
        guint least = first;
        for (guint child = first + 1; child < end; child++)
            if (before(&engine->heap[child], &engine->heap[least]))
                least = child;
        if (!before(&engine->heap[least], &entry))
            break;
        put(engine, place, engine->heap[least]);
        place = least;
    }
    put(engine, place, entry);
}

// Chains slots [from, capacity) into the free list.
static void chain_free(NjEngine *engine, guint from)
{
    for (guint i = from; i < engine->capacity; i++)
        engine->slots[i].place = i + 1 < engine->capacity ? i + 1 : NJ_NO_EVENT;
    engine->first_free = from;
}

static void grow(NjEngine *engine)
{
    const guint old = engine->capacity;
    engine->capacity = old * 2;
    engine->heap = g_renew(NjHeapEntry, engine->heap, engine->capacity);
    engine->slots = g_renew(NjEventSlot, engine->slots, engine->capacity);
    chain_free(engine, old);
}

void nj_engine_init(NjEngine *engine, guint reserve)
{
    *engine = (NjEngine){.capacity = MAX(reserve, 1)};
    engine->heap = g_new(NjHeapEntry, engine->capacity);
    engine->slots = g_new(NjEventSlot, engine->capacity);
    chain_free(engine, 0);
}

void nj_engine_clear(NjEngine *engine)
{
    g_free(engine->heap);
    g_free(engine->slots);
    *engine = (NjEngine){0};
}

void nj_engine_reset(NjEngine *engine)
{
    engine->now = 0;
    engine->sequence = 0;
    engine->n_taken = 0;
    engine->n_pending = 0;
    chain_free(engine, 0);
}

NjEventId nj_engine_schedule(NjEngine *engine, NjTime time, guint8 priority, guint32 kind, guint32 subject)
{
    g_assert(time >= engine->now);
    if (engine->first_free == NJ_NO_EVENT)
        grow(engine);
    const guint32 slot = engine->first_free;
    engine->first_free = engine->slots[slot].place;
    engine->slots[slot].kind = kind;
    engine->slots[slot].subject = subject;
    const guint64 order = ((guint64)priority << PRIORITY_SHIFT) | engine->sequence++;
    sift_up(engine, engine->n_pending++, (NjHeapEntry){time, order, slot});
    return slot;
}

void nj_engine_reschedule(NjEngine *engine, NjEventId id, NjTime time)
{
    g_assert(time >= engine->now && id < engine->capacity);
    const guint place = engine->slots[id].place;
    g_assert(place < engine->n_pending && engine->heap[place].slot == id);
    NjHeapEntry entry = engine->heap[place];
    const NjTime old = entry.time;
    entry.time = time;
    entry.order = (entry.order >> PRIORITY_SHIFT << PRIORITY_SHIFT) | engine->sequence++;
    if (time < old)
        sift_up(engine, place, entry);
    else
        sift_down(engine, place, entry);
}

static void remove_at(NjEngine *engine, guint place)
{
    const guint32 slot = engine->heap[place].slot;
    const NjHeapEntry last = engine->heap[--engine->n_pending];
    if (place < engine->n_pending) {
        if (place > 0 && before(&last, &engine->heap[(place - 1) / ARITY]))
            sift_up(engine, place, last);
        else
            sift_down(engine, place, last);
    }
    engine->slots[slot].place = engine->first_free;
    engine->first_free = slot;
}

void nj_engine_cancel(NjEngine *engine, NjEventId id)
{
    g_assert(id < engine->capacity);
    const guint place = engine->slots[id].place;
    g_assert(place < engine->n_pending && engine->heap[place].slot == id);
    remove_at(engine, place);
}

gboolean nj_engine_next(NjEngine *engine, NjEvent *event)
{
    if (engine->n_pending == 0)
        return FALSE;
    const NjHeapEntry first = engine->heap[0];
    const NjEventSlot *slot = &engine->slots[first.slot];
    *event = (NjEvent){first.time, slot->kind, slot->subject};
    engine->now = first.time;
    engine->n_taken++;
    remove_at(engine, 0);
    return TRUE;
}

void nj_engine_verify(const NjEngine *engine)
{
    for (guint i = 0; i < engine->n_pending; i++) {
        g_assert(engine->heap[i].time >= engine->now);
        g_assert(engine->slots[engine->heap[i].slot].place == i);
        if (i > 0)
            g_assert(!before(&engine->heap[i], &engine->heap[(i - 1) / ARITY]));
    }
    guint n_free = 0;
    for (guint32 slot = engine->first_free; slot != NJ_NO_EVENT; slot = engine->slots[slot].place)
        n_free++;
    g_assert(n_free + engine->n_pending == engine->capacity);
}
