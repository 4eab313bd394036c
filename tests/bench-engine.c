// SPDX-License-Identifier: MIT
// The engine alone: a hold model, 1,000 pending events, each taken and scheduled again at a random time.
// Processor time of the fastest of several rounds: the machine may be busy.
#include "sim/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N_PENDING 1000
#define N_HOLDS 1000000
#define N_ROUNDS 20
#define BAR_PER_S 10e6

static guint64 next_random(guint64 *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

int main(void)
{
    NjEngine engine;
    guint64 state = 88172645463325252u;
    double best = 0;
    nj_engine_init(&engine, N_PENDING);
    for (guint32 i = 0; i < N_PENDING; i++)
        nj_engine_schedule(&engine, (NjTime)(next_random(&state) % 1000000), 0, 0, i);
    for (guint round = 0; round < N_ROUNDS; round++) {
        const clock_t start = clock();
        NjEvent event;
        for (guint i = 0; i < N_HOLDS; i++) {
            nj_engine_next(&engine, &event);
            nj_engine_schedule(&engine, event.time + (NjTime)(next_random(&state) % 1000000), 0, 0,
                               event.subject);
        }
        const double rate = N_HOLDS / ((double)(clock() - start) / CLOCKS_PER_SEC);
        best = MAX(best, rate);
    }
    printf("hold model, %d pending, best of %d rounds: %.1f million events/s (bar: %g)\n", N_PENDING,
           N_ROUNDS, best / 1e6, BAR_PER_S / 1e6);
    nj_engine_clear(&engine);
    return best >= BAR_PER_S ? EXIT_SUCCESS : EXIT_FAILURE;
}
