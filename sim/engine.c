// SPDX-License-Identifier: MIT
#include "sim/engine.h"

#define ARITY 4u
#define PRIORITY_SHIFT 56

// Time and order as one number: no time is below 0.
__extension__ typedef unsigned __int128 Key;

static inline Key key_of(const NjHeapEntry *entry)
{
    return (Key)(guint64)entry->time << 64 | entry->order;
}

static inline guint before(const NjHeapEntry *a, const NjHeapEntry *b)
{
    // Without branches: which of two events is earlier cannot be predicted.
    return key_of(a) < key_of(b);
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
        if (first >= engine->n_heap)
            break;
        guint least = first;
        if (first + ARITY <= engine->n_heap) {
            const guint left = first + before(&engine->heap[first + 1], &engine->heap[first]);
            const guint right = first + 2 + before(&engine->heap[first + 3], &engine->heap[first + 2]);
            least = left + (right - left) * before(&engine->heap[right], &engine->heap[left]);
        } else {
            for (guint child = first + 1; child < engine->n_heap; child++)
                if (before(&engine->heap[child], &engine->heap[least]))
                    least = child;
        }
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
    engine->n_heap = 0;
    engine->hole = FALSE;
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
    const NjHeapEntry entry = {time, order, slot};
    if (engine->hole) {
        engine->hole = FALSE;
        sift_down(engine, 0, entry);
    } else {
        sift_up(engine, engine->n_heap++, entry);
    }
    return slot;
}

// Fills the hole at the root from the bottom.
static void fill_hole(NjEngine *engine)
{
    if (!engine->hole)
        return;
    engine->hole = FALSE;
    const NjHeapEntry last = engine->heap[--engine->n_heap];
    if (engine->n_heap > 0)
        sift_down(engine, 0, last);
}

void nj_engine_reschedule(NjEngine *engine, NjEventId id, NjTime time)
{
    fill_hole(engine);
    g_assert(time >= engine->now && id < engine->capacity);
    const guint place = engine->slots[id].place;
    g_assert(place < engine->n_heap && engine->heap[place].slot == id);
    NjHeapEntry entry = engine->heap[place];
    const NjTime old = entry.time;
    entry.time = time;
    entry.order = (entry.order >> PRIORITY_SHIFT << PRIORITY_SHIFT) | engine->sequence++;
    if (time < old)
        sift_up(engine, place, entry);
    else
        sift_down(engine, place, entry);
}

static void free_slot(NjEngine *engine, guint32 slot)
{
    engine->slots[slot].place = engine->first_free;
    engine->first_free = slot;
}

void nj_engine_cancel(NjEngine *engine, NjEventId id)
{
    fill_hole(engine);
    g_assert(id < engine->capacity);
    const guint place = engine->slots[id].place;
    g_assert(place < engine->n_heap && engine->heap[place].slot == id);
    const NjHeapEntry last = engine->heap[--engine->n_heap];
    if (place < engine->n_heap) {
        if (place > 0 && before(&last, &engine->heap[(place - 1) / ARITY]))
            sift_up(engine, place, last);
        else
            sift_down(engine, place, last);
    }
    free_slot(engine, id);
}

gboolean nj_engine_next(NjEngine *engine, NjEvent *event)
{
    fill_hole(engine);
    if (engine->n_heap == 0)
        return FALSE;
    const NjHeapEntry first = engine->heap[0];
    const NjEventSlot *slot = &engine->slots[first.slot];
    *event = (NjEvent){first.time, slot->kind, slot->subject};
    engine->now = first.time;
    engine->n_taken++;
    engine->hole = TRUE;
    free_slot(engine, first.slot);
    return TRUE;
}

void nj_engine_verify(const NjEngine *engine)
{
    for (guint i = engine->hole ? 1 : 0; i < engine->n_heap; i++) {
        g_assert(engine->heap[i].time >= engine->now);
        g_assert(engine->slots[engine->heap[i].slot].place == i);
        const guint parent = i > 0 ? (i - 1) / ARITY : 0;
        if (i > 0 && !(engine->hole && parent == 0))
            g_assert(!before(&engine->heap[i], &engine->heap[parent]));
    }
    guint n_free = 0;
    for (guint32 slot = engine->first_free; slot != NJ_NO_EVENT; slot = engine->slots[slot].place)
        n_free++;
    g_assert(n_free + nj_engine_n_pending(engine) == engine->capacity);
}
