// SPDX-License-Identifier: MIT
#pragma once
// The device: clock, sharing and power.
//
// Clock. At f = x f_max arithmetic runs at rate x, HBM at x^a, the link at x^b. The supply voltage relative
// to f_max is V(x) = 1 - p (1 - x) + q (1 - x)^2.
//
// Sharing. At most one compute kernel and one collective run at a time. A collective on n of N SMs leaves
// (N - n) to the compute kernel and drives its link at min(1, n / K) of the rate: each SM moves so many bytes
// a second, until the link is full. Overlapped, each is slowed further by an interference factor (caches,
// memory controllers, issue slots) that depends on what the compute kernel is bound by. What arithmetic loses
// so, it waits for the memory system: that time goes with x^-a instead of 1/x. HBM is shared max-min fair:
// nobody gets more than it asks for, what is left is split evenly.
//
// Power. static (always) + an active chip's (clock tree and leakage while anything runs; ~ V^2) + the SMs
// that a collective occupies from its launch to its end (~ x V^2) + per unit of work: arithmetic ~ V^2, HBM
// and link traffic ~ u + (1 - u) V^2.

#include "sim/kernel.h"

G_BEGIN_DECLS

typedef struct {
    double sm_count;
    double freq_max_mhz;
    double hbm_freq_exponent;   // a
    double link_freq_exponent;  // b
    double volt_linear;         // p
    double volt_quadratic;      // q
    double unscaled_share;      // u
    double static_w;            // drawn always
    double waiting_w;           // dynamic, while no task runs
    double clock_w;             // clock tree and leakage of an active chip at V(f_max)
    double collective_sm_w;     // per SM that a collective occupies, from its launch to its end, at f_max
    double saturation_sms;      // K
    double overlap_gemm;        // slow-down (>= 1) of a GEMM beside a collective
    double overlap_attention;   // of an attention kernel beside a collective
    double overlap_memory;      // of an HBM-bound kernel beside a collective
    double overlap_comm_gemm;   // of a collective beside a GEMM or attention kernel
    double overlap_comm_memory; // of a collective beside an HBM-bound kernel
} NjDeviceSpec;

// What depends on the frequency alone.
typedef struct {
    double freq_mhz;
    double sm_rate;       // x
    double hbm_rate;      // x^a
    double link_rate;     // x^b
    double v2;            // V(x)^2
    double traffic_scale; // u + (1 - u) V^2
    double clock_w;
    double collective_sm_w;
} NjClock;

NjClock nj_clock_at(const NjDeviceSpec *spec, double freq_mhz);

// Progress of a compute kernel and of a collective that run together, in kernels per second; either may be
// NULL (its rate is then 0). sms is what the collective occupies.
typedef struct {
    double compute_per_s;
    double collective_per_s;
} NjRates;

// waiting: the collective still waits for its peers; it holds its SMs, but moves nothing (its rate is 0).
NjRates nj_device_rates(const NjDeviceSpec *spec, const NjClock *clock, const NjKernel *compute,
                        const NjKernel *collective, double sms, gboolean waiting);

// Dynamic energy of a whole kernel at a clock, without the clock tree, J.
double nj_kernel_energy_j(const NjKernel *kernel, const NjClock *clock);

G_END_DECLS
