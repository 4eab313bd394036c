// SPDX-License-Identifier: MIT
#pragma once
// A kernel as the device sees it: what it needs of each resource at the reference clock (f_max) with the
// whole device to itself, in seconds, and the energy that work costs there, in joules. Running alone it takes
// latency + max(sm, hbm, link): the slowest resource decides. Efficiencies, tiles and message sizes are
// behind these figures; whoever builds a kernel knows them, the device does not.

#include <glib.h>

G_BEGIN_DECLS

// What reports break time and energy down by.
typedef enum {
    NJ_KERNEL_GEMM,
    NJ_KERNEL_ATTENTION,
    NJ_KERNEL_MEMORY, // HBM-bound: norms, activations, element-wise
    NJ_KERNEL_COLLECTIVE,
    NJ_N_KERNEL_KINDS,
} NjKernelKind;

typedef struct {
    const char *name; // static storage
    NjKernelKind kind;
    double latency_s; // before the work begins: launch gap, or synchronisation of a collective's ranks
    double sm_s;      // arithmetic on all SMs
    double hbm_s;     // HBM traffic
    double link_s;    // link traffic of a collective, with enough SMs to saturate the link
    double sm_j;      // dynamic energy of the arithmetic at V(f_max)
    double hbm_j;     // of the HBM traffic
    double link_j;    // of the link traffic
    double flop;      // for reports
    double hbm_bytes;
    double link_bytes;
} NjKernel;

G_END_DECLS
