// SPDX-License-Identifier: MIT
#pragma once
// A slow reference of the device: one program alone, in seconds of floating point, everything looked up anew
// at every step, from the equations of sim/device.h and the rules of sim/program.h.

#include "sim/run.h"
#include "tests/testing.h"

#include <math.h>
#include <string.h>

#define MAX_OPS 40

// One operation in seconds; the program is built from these.
typedef struct {
    NjKernel kernel;
    NjStream stream;
    guint after_other, with_other, sms;
    double dispatch_s;
} Op;

typedef struct {
    Op ops[MAX_OPS];
    guint n;
} Ops;

typedef struct {
    const Op *ops[MAX_OPS];
    double dispatched_s[MAX_OPS];
    guint n, at; // at: the current operation
    guint begun;
    enum { IDLE, LATENCY, WORK } state;
    double until_s; // of the latency
    double left;    // of the work, 1..0
} SlowStream;

typedef struct {
    double duration_s, overlapped_s, dynamic_j, computing_s;
} SlowResult;

#define TINY 1e-10

static inline void slow_init(const Ops *ops, SlowStream *streams)
{
    double host_s = 0;
    memset(streams, 0, NJ_N_STREAMS * sizeof *streams);
    for (guint i = 0; i < ops->n; i++) {
        SlowStream *stream = &streams[ops->ops[i].stream];
        host_s += ops->ops[i].dispatch_s;
        stream->ops[stream->n] = &ops->ops[i];
        stream->dispatched_s[stream->n++] = host_s;
    }
}

// How fast both streams' kernels work beside each other, in kernels per second, from the equations of
// sim/device.h.
static inline void slow_rates(const NjDeviceSpec *spec, double x, const SlowStream *streams, double *rates)
{
    const SlowStream *compute = &streams[NJ_STREAM_COMPUTE], *comm = &streams[NJ_STREAM_COMMUNICATION];
    const gboolean works[] = {compute->state == WORK, comm->state == WORK};
    const double hbm_rate = pow(x, spec->hbm_freq_exponent);
    double asked[NJ_N_STREAMS] = {0}; // of HBM
    for (guint s = 0; s < NJ_N_STREAMS; s++) {
        rates[s] = 0;
        if (!works[s])
            continue;
        const NjKernel *kernel = &streams[s].ops[streams[s].at]->kernel;
        const double held = comm->state != IDLE ? comm->ops[comm->at]->sms : 0;
        const double sm_rate = x * (spec->sm_count - held) / spec->sm_count;
        const double link_rate = pow(x, spec->link_freq_exponent) * fmin(1, held / spec->saturation_sms);
        const double time_s =
            fmax(s == NJ_STREAM_COMPUTE ? kernel->sm_s / sm_rate : kernel->link_s / link_rate,
                 kernel->hbm_s / hbm_rate);
        double slow = 1;
        if (works[0] && works[1]) {
            const NjKernelKind kind = compute->ops[compute->at]->kernel.kind;
            const gboolean memory = kind == NJ_KERNEL_MEMORY;
            // What arithmetic loses goes with the HBM's clock, not its own.
            const double stall =
                (kind == NJ_KERNEL_ATTENTION ? spec->overlap_attention : spec->overlap_gemm) - 1;
            if (s == NJ_STREAM_COMMUNICATION)
                slow = memory ? spec->overlap_comm_memory : spec->overlap_comm_gemm;
            else
                slow = memory ? spec->overlap_memory : 1 + stall * x / hbm_rate;
        }
        rates[s] = time_s > 0 ? 1 / time_s / slow : HUGE_VAL;
        asked[s] = kernel->hbm_s > 0 ? rates[s] * kernel->hbm_s / hbm_rate : 0;
    }
    if (asked[0] + asked[1] <= 1)
        return;
    const guint modest = asked[0] < asked[1] ? 0 : 1;
    const double modest_gets = fmin(asked[modest], 0.5);
    rates[modest] *= modest_gets / asked[modest];
    rates[1 - modest] *= (1 - modest_gets) / asked[1 - modest];
}

static inline SlowResult slow_run(const NjDeviceSpec *spec, double freq_mhz, const Ops *ops)
{
    SlowStream streams[NJ_N_STREAMS];
    double now = 0;
    SlowResult result = {0};
    const double x = freq_mhz / spec->freq_max_mhz;
    const double v = 1 - spec->volt_linear * (1 - x) + spec->volt_quadratic * (1 - x) * (1 - x);
    const double traffic = spec->unscaled_share + (1 - spec->unscaled_share) * v * v;
    slow_init(ops, streams);

    for (;;) {
        double next = HUGE_VAL;
        for (gboolean moved = TRUE; moved;) {
            moved = FALSE;
            next = HUGE_VAL;
            for (guint s = 0; s < NJ_N_STREAMS; s++) {
                SlowStream *stream = &streams[s];
                const SlowStream *other = &streams[1 - s];
                if (stream->at == stream->n)
                    continue;
                const Op *op = stream->ops[stream->at];
                if (stream->state == IDLE && other->at >= op->after_other && other->begun >= op->with_other) {
                    const double dispatched = stream->dispatched_s[stream->at];
                    if (dispatched > now + TINY) {
                        next = fmin(next, dispatched);
                        continue;
                    }
                    stream->state = LATENCY;
                    stream->until_s = now + op->kernel.latency_s;
                    moved = TRUE;
                } else if (stream->state == LATENCY) {
                    if (stream->until_s > now + TINY) {
                        next = fmin(next, stream->until_s);
                        continue;
                    }
                    stream->state = WORK;
                    stream->left = 1;
                    stream->begun++;
                    moved = TRUE;
                } else if (stream->state == WORK && stream->left <= TINY) {
                    stream->state = IDLE;
                    stream->at++;
                    moved = TRUE;
                }
            }
        }
        double rates[NJ_N_STREAMS];
        slow_rates(spec, x, streams, rates);
        for (guint s = 0; s < NJ_N_STREAMS; s++)
            if (streams[s].state == WORK)
                next = fmin(next, now + streams[s].left / rates[s]);
        if (next == HUGE_VAL)
            break;
        const double dt = next - now;
        const gboolean computing = streams[0].state == WORK, communicating = streams[1].state != IDLE;
        for (guint s = 0; s < NJ_N_STREAMS; s++) {
            if (streams[s].state != WORK)
                continue;
            const NjKernel *kernel = &streams[s].ops[streams[s].at]->kernel;
            const double done = isinf(rates[s]) ? streams[s].left : fmin(rates[s] * dt, streams[s].left);
            streams[s].left -= done;
            result.dynamic_j += done * (kernel->sm_j * v * v + (kernel->hbm_j + kernel->link_j) * traffic);
        }
        if (computing || communicating)
            result.dynamic_j += dt * spec->clock_w * v * v;
        if (communicating)
            result.dynamic_j += dt * spec->collective_sm_w * streams[1].ops[streams[1].at]->sms * x * v * v;
        result.computing_s += computing ? dt : 0;
        result.overlapped_s += computing && communicating ? dt : 0;
        now = next;
    }
    ck_assert_uint_eq(streams[0].at, streams[0].n);
    ck_assert_uint_eq(streams[1].at, streams[1].n);
    result.duration_s = now;
    return result;
}
