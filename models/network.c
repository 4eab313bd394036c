// SPDX-License-Identifier: MIT
#include "models/network.h"

#include "models/kernel-time.h"

#include <math.h>

static int log2_up(int n)
{
    int log = 0;
    while (1 << log < n)
        log++;
    return log;
}

double nj_group_collective_s(const NjGpu *gpu, NjCollectiveKind kind, const NjGroup *group,
                             double message_bytes)
{
    const NjKernelHardware hardware = {gpu->sm_count, gpu->peak_tflop_s, gpu->hbm_gb_s, gpu->nvlink_gb_s};
    if (group->nodes == 1)
        return nj_collective_time(&gpu->kernels, &hardware, kind, group->size, message_bytes);
    double rate = group->local * gpu->network_gb_s * gpu->network_efficiency;
    if (group->local > 1)
        rate = fmin(rate, gpu->nvlink_gb_s * gpu->kernels.collective.simple_share);
    const double hops_us =
        log2_up(group->nodes) * gpu->network_latency_us + (group->local - 1) * gpu->kernels.collective.hop_us;
    const double fixed_us = gpu->kernels.collective.launch_us + gpu->kernels.collective.simple_us +
                            hops_us * (kind == NJ_COLLECTIVE_ALL_REDUCE ? 2 : 1);
    return fixed_us * 1e-6 + nj_collective_wire_bytes(kind, group->size, message_bytes) / (rate * 1e9);
}
