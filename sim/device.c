// SPDX-License-Identifier: MIT
#include "sim/device.h"

#include <math.h>

NjClock nj_clock_at(const NjDeviceSpec *spec, double freq_mhz)
{
    const double x = freq_mhz / spec->freq_max_mhz;
    const double down = 1.0 - x;
    const double v = 1.0 - spec->volt_linear * down + spec->volt_quadratic * down * down;
    const double v2 = v * v;
    return (NjClock){
        .freq_mhz = freq_mhz,
        .sm_rate = x,
        .hbm_rate = pow(x, spec->hbm_freq_exponent),
        .link_rate = pow(x, spec->link_freq_exponent),
        .v2 = v2,
        .traffic_scale = spec->unscaled_share + (1.0 - spec->unscaled_share) * v2,
        .clock_w = spec->clock_w * v2,
        .collective_sm_w = spec->collective_sm_w * x * v2,
    };
}

double nj_kernel_energy_j(const NjKernel *kernel, const NjClock *clock)
{
    return kernel->sm_j * clock->v2 + (kernel->hbm_j + kernel->link_j) * clock->traffic_scale;
}

// Rate at which a kernel would run if HBM were its own, given the share of each other resource it has.
static double rate_without_hbm(double sm_s, double sm_rate, double link_s, double link_rate)
{
    const double time_s = fmax(sm_s / sm_rate, link_s > 0 ? link_s / link_rate : 0.0);
    return time_s > 0 ? 1.0 / time_s : HUGE_VAL;
}

static double limit_by_hbm(double rate, double hbm_s, double hbm_rate)
{
    return hbm_s > 0 ? fmin(rate, hbm_rate / hbm_s) : rate;
}

NjRates nj_device_rates(const NjDeviceSpec *spec, const NjClock *clock, const NjKernel *compute,
                        const NjKernel *collective, double sms, gboolean waiting)
{
    NjRates rates = {0};
    if (compute == NULL && collective == NULL)
        return rates;

    const gboolean held = compute != NULL && collective != NULL;
    const gboolean both = held && !waiting;
    double slow_compute = 1.0, slow_collective = 1.0;
    if (both) {
        switch (compute->kind) {
        case NJ_KERNEL_MEMORY:
            slow_compute = spec->overlap_memory;
            break;
        case NJ_KERNEL_ATTENTION:
            slow_compute = spec->overlap_attention;
            break;
        case NJ_KERNEL_GEMM:
            slow_compute = spec->overlap_gemm;
            break;
        case NJ_KERNEL_COLLECTIVE:
        case NJ_N_KERNEL_KINDS:
            g_assert_not_reached();
        }
        slow_collective =
            compute->kind == NJ_KERNEL_MEMORY ? spec->overlap_comm_memory : spec->overlap_comm_gemm;
    }
    // Arithmetic waits for a memory system that is busy: that part of its time goes with the HBM rate.
    if (both && compute->kind != NJ_KERNEL_MEMORY)
        slow_compute = 1.0 + (slow_compute - 1.0) * clock->sm_rate / clock->hbm_rate;
    const double free_sms = held ? (spec->sm_count - sms) / spec->sm_count : 1.0;
    const double saturation = collective != NULL ? fmin(1.0, sms / spec->saturation_sms) : 1.0;

    if (compute != NULL) {
        const double rate = rate_without_hbm(compute->sm_s, clock->sm_rate * free_sms, 0, 1);
        rates.compute_per_s = limit_by_hbm(rate, compute->hbm_s, clock->hbm_rate) / slow_compute;
    }
    if (collective != NULL && !waiting) {
        const double rate = rate_without_hbm(0, 1, collective->link_s, clock->link_rate * saturation);
        rates.collective_per_s = limit_by_hbm(rate, collective->hbm_s, clock->hbm_rate) / slow_collective;
    }
    if (both) {
        // Max-min fair: whoever asks for less than half is served in full, the other gets the rest.
        const double want_compute = rates.compute_per_s * compute->hbm_s / clock->hbm_rate;
        const double want_collective = rates.collective_per_s * collective->hbm_s / clock->hbm_rate;
        if (want_compute + want_collective > 1.0) {
            const double get_compute = want_compute < 0.5 ? want_compute : fmax(0.5, 1.0 - want_collective);
            const double get_collective = 1.0 - get_compute;
            rates.compute_per_s *= fmin(1.0, get_compute / want_compute);
            rates.collective_per_s *= fmin(1.0, get_collective / want_collective);
        }
    }
    return rates;
}
