// SPDX-License-Identifier: MIT
#include "sim/engine.h"
#include "tests/aborts.h"
#include "tests/counting-malloc.h"
#include "tests/testing.h"

START_TEST(order)
{
    static const struct {
        NjTime time;
        guint8 priority;
        guint32 subject;
    } scheduled[] = {
        {20, 0, 5}, {10, 1, 2}, {10, 0, 0}, {10, 1, 3}, {10, 0, 1}, {20, 0, 6}, {15, 9, 4},
    };
    NjEngine engine;
    NjEvent event;
    nj_engine_init(&engine, 1); // grows
    for (guint i = 0; i < G_N_ELEMENTS(scheduled); i++)
        nj_engine_schedule(&engine, scheduled[i].time, scheduled[i].priority, 7, scheduled[i].subject);
    for (guint i = 0; i < G_N_ELEMENTS(scheduled); i++) {
        nj_engine_verify(&engine);
        ck_assert(nj_engine_next(&engine, &event));
        ck_assert_uint_eq(event.subject, i); // by time, priority, sequence
        ck_assert_uint_eq(event.kind, 7);
        ck_assert_int_eq(event.time, engine.now);
    }
    ck_assert(!nj_engine_next(&engine, &event));
    ck_assert_uint_eq(engine.n_taken, G_N_ELEMENTS(scheduled));
    nj_engine_clear(&engine);
}
END_TEST

START_TEST(moves_and_cancels)
{
    NjEngine engine;
    NjEvent event;
    nj_engine_init(&engine, 8);
    const NjEventId a = nj_engine_schedule(&engine, 10, 0, 0, 0);
    const NjEventId b = nj_engine_schedule(&engine, 20, 0, 0, 1);
    const NjEventId c = nj_engine_schedule(&engine, 30, 0, 0, 2);
    nj_engine_reschedule(&engine, c, 10); // now behind a, which was scheduled for 10 before
    nj_engine_reschedule(&engine, b, 40);
    nj_engine_verify(&engine);
    ck_assert(nj_engine_next(&engine, &event));
    ck_assert_uint_eq(event.subject, 0);
    nj_engine_cancel(&engine, c);
    nj_engine_verify(&engine);
    ck_assert_uint_eq(nj_engine_n_pending(&engine), 1);
    ck_assert(nj_engine_next(&engine, &event));
    ck_assert_uint_eq(event.subject, 1);
    ck_assert_int_eq(event.time, 40);
    (void)a;
    nj_engine_reset(&engine);
    ck_assert_int_eq(engine.now, 0);
    nj_engine_verify(&engine);
    nj_engine_clear(&engine);
}
END_TEST

static void schedule_in_the_past(void)
{
    NjEngine engine;
    NjEvent event;
    nj_engine_init(&engine, 2);
    nj_engine_schedule(&engine, 10, 0, 0, 0);
    nj_engine_next(&engine, &event);
    nj_engine_schedule(&engine, 9, 0, 0, 0);
}

static void cancel_what_was_taken(void)
{
    NjEngine engine;
    NjEvent event;
    nj_engine_init(&engine, 2);
    const NjEventId id = nj_engine_schedule(&engine, 10, 0, 0, 0);
    nj_engine_schedule(&engine, 20, 0, 0, 0);
    nj_engine_next(&engine, &event);
    nj_engine_cancel(&engine, id);
}

static void move_into_the_past(void)
{
    NjEngine engine;
    NjEvent event;
    nj_engine_init(&engine, 2);
    nj_engine_schedule(&engine, 10, 0, 0, 0);
    const NjEventId id = nj_engine_schedule(&engine, 20, 0, 0, 0);
    nj_engine_next(&engine, &event);
    nj_engine_reschedule(&engine, id, 9);
}

static void cancel_twice(void)
{
    NjEngine engine;
    nj_engine_init(&engine, 2);
    const NjEventId id = nj_engine_schedule(&engine, 10, 0, 0, 0);
    nj_engine_cancel(&engine, id);
    nj_engine_cancel(&engine, id);
}

static void move_what_never_was(void)
{
    NjEngine engine;
    nj_engine_init(&engine, 2);
    nj_engine_reschedule(&engine, 7, 10);
}

// A broken heap and a lost slot, for nj_engine_verify() to find.
static void verify_heap_out_of_order(void)
{
    NjEngine engine;
    nj_engine_init(&engine, 4);
    for (guint i = 0; i < 4; i++)
        nj_engine_schedule(&engine, 10 + i, 0, 0, i);
    engine.heap[0].time = 12;
    nj_engine_verify(&engine);
}

static void verify_wrong_place(void)
{
    NjEngine engine;
    nj_engine_init(&engine, 4);
    nj_engine_schedule(&engine, 10, 0, 0, 0);
    engine.slots[engine.heap[0].slot].place = 3;
    nj_engine_verify(&engine);
}

static void verify_lost_slot(void)
{
    NjEngine engine;
    nj_engine_init(&engine, 4);
    engine.first_free = engine.slots[engine.first_free].place;
    nj_engine_verify(&engine);
}

static void verify_event_in_the_past(void)
{
    NjEngine engine;
    nj_engine_init(&engine, 4);
    nj_engine_schedule(&engine, 10, 0, 0, 0);
    engine.now = 11;
    nj_engine_verify(&engine);
}

START_TEST(misuse_trips_asserts)
{
    static const struct {
        const char *label;
        void (*misuse)(void);
    } rows[] = {
        {"schedule in the past", schedule_in_the_past},
        {"cancel what was taken", cancel_what_was_taken},
        {"cancel twice", cancel_twice},
        {"move into the past", move_into_the_past},
        {"move what never was", move_what_never_was},
        {"verify: heap out of order", verify_heap_out_of_order},
        {"verify: wrong place", verify_wrong_place},
        {"verify: lost slot", verify_lost_slot},
        {"verify: event in the past", verify_event_in_the_past},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        ck_assert_msg(nj_test_aborts(rows[i].misuse), "%s", rows[i].label);
}
END_TEST

#define N_PENDING 200
#define N_STEPS 20000

// What is pending, in a plain list.
typedef struct {
    NjTime time;
    guint8 priority;
    guint64 sequence;
    NjEventId id;
    gboolean pending;
} Reference;

static guint earliest(const Reference *list)
{
    guint best = N_PENDING;
    for (guint i = 0; i < N_PENDING; i++) {
        if (!list[i].pending)
            continue;
        const Reference *a = &list[i], *b = best < N_PENDING ? &list[best] : NULL;
        if (b == NULL || a->time < b->time ||
            (a->time == b->time &&
             (a->priority < b->priority || (a->priority == b->priority && a->sequence < b->sequence))))
            best = i;
    }
    return best;
}

// Random taking, scheduling, moving and cancelling against the list, with few distinct times, so that ties
// abound.
START_TEST(random_against_a_list)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(1);
    Reference list[N_PENDING] = {{0}};
    guint64 sequence = 0;
    guint n_pending = 0;
    NjEngine engine;
    nj_engine_init(&engine, 4);
    for (guint step = 0; step < N_STEPS; step++) {
        const guint i = (guint)g_rand_int_range(random, 0, N_PENDING);
        const NjTime time = engine.now + g_rand_int_range(random, 0, 20);
        if (!list[i].pending) {
            list[i] = (Reference){time, (guint8)g_rand_int_range(random, 0, 3), sequence++, 0, TRUE};
            list[i].id = nj_engine_schedule(&engine, time, list[i].priority, 0, i);
            n_pending++;
        } else if (g_rand_int_range(random, 0, 10) == 0) {
            nj_engine_cancel(&engine, list[i].id);
            list[i].pending = FALSE;
            n_pending--;
        } else if (g_rand_boolean(random)) {
            nj_engine_reschedule(&engine, list[i].id, time);
            list[i].time = time;
            list[i].sequence = sequence++;
        } else {
            NjEvent event;
            const guint expected = earliest(list);
            ck_assert(nj_engine_next(&engine, &event));
            ck_assert_uint_eq(event.subject, expected);
            ck_assert_int_eq(event.time, list[expected].time);
            list[expected].pending = FALSE;
            n_pending--;
        }
        nj_engine_verify(&engine);
        ck_assert_uint_eq(nj_engine_n_pending(&engine), n_pending);
    }
    nj_engine_clear(&engine);
}
END_TEST

#ifdef NJ_COUNTS_ALLOCATIONS
START_TEST(no_allocation_after_the_reserve)
{
    NjEngine engine;
    NjEvent event;
    nj_engine_init(&engine, 100);
    for (guint i = 0; i < 100; i++)
        nj_engine_schedule(&engine, i, 0, 0, i);
    const guint before = nj_n_allocations;
    for (guint i = 0; i < 100000; i++) {
        nj_engine_next(&engine, &event);
        nj_engine_schedule(&engine, event.time + 1 + event.subject % 7, 0, 0, event.subject);
    }
    const guint held = nj_n_allocations;
    nj_engine_schedule(&engine, engine.now, 0, 0, 0); // one more than reserved: both arrays double
    const guint grown = nj_n_allocations;
    nj_engine_reset(&engine); // keeps them
    for (guint i = 0; i < 200; i++)
        nj_engine_schedule(&engine, i, 0, 0, i);
    const guint after = nj_n_allocations;
    ck_assert_uint_eq(held, before);
    ck_assert_uint_eq(grown, before + 2);
    ck_assert_uint_eq(after, grown);
    nj_engine_clear(&engine);
}
END_TEST
#endif

int main(void)
{
    Suite *suite = suite_create("engine");
    TCase *tests = tcase_create("engine");
    tcase_add_test(tests, order);
    tcase_add_test(tests, moves_and_cancels);
    tcase_add_test(tests, misuse_trips_asserts);
    tcase_add_test(tests, random_against_a_list);
#ifdef NJ_COUNTS_ALLOCATIONS
    tcase_add_test(tests, no_allocation_after_the_reserve);
#endif
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
