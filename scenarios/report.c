// SPDX-License-Identifier: MIT
#include "scenarios/report.h"

#include "models/memory.h"

#include <math.h>
#include <string.h>

enum { COLUMN_SECTION, COLUMN_METRIC, COLUMN_UNIT, COLUMN_VALUE, N_COLUMNS };

static const NjColumn columns[N_COLUMNS] = {
    {"section", NJ_COLUMN_TEXT, 0, "", "part of the report"},
    {"metric", NJ_COLUMN_TEXT, 0, "", "what is told"},
    {"unit", NJ_COLUMN_TEXT, 0, "", "unit of the value"},
    {"value", NJ_COLUMN_REAL, 4, "", "value"},
};

static void add(NjTable *table, const char *section, const char *metric, const char *unit, double value)
{
    nj_table_add_row(table);
    nj_table_set_text(table, COLUMN_SECTION, section);
    nj_table_set_text(table, COLUMN_METRIC, metric);
    nj_table_set_text(table, COLUMN_UNIT, unit);
    nj_table_set_real(table, COLUMN_VALUE, value);
}

static double seconds(NjTime time)
{
    return (double)time / NJ_PS_PER_S;
}

// Everything below is an average over GPUs: ranks of a stage are alike, stages are not.
static void add_breakdown(NjTable *table, const NjIteration *iteration)
{
    static const char *const activities[NJ_N_ACTIVITIES] = {
        [NJ_ACTIVITY_GEMM] = "gemm",        [NJ_ACTIVITY_ATTENTION] = "attention",
        [NJ_ACTIVITY_MEMORY] = "hbm_bound", [NJ_ACTIVITY_COLLECTIVE] = "exposed_collective",
        [NJ_ACTIVITY_GAP] = "host_gap",
    };
    static const char *const kinds[NJ_N_KERNEL_KINDS] = {
        [NJ_KERNEL_GEMM] = "gemm",
        [NJ_KERNEL_ATTENTION] = "attention",
        [NJ_KERNEL_MEMORY] = "hbm_bound",
        [NJ_KERNEL_COLLECTIVE] = "collective",
    };
    const double n = iteration->n_stages;
    NjTime activity[NJ_N_ACTIVITIES] = {0}, bubble = 0, overlapped = 0;
    double energy_j[NJ_N_KERNEL_KINDS] = {0}, waiting_j = 0;
    for (guint s = 0; s < iteration->n_stages; s++) {
        const NjStageResult *stage = &iteration->stages[s];
        for (guint i = 0; i < NJ_N_ACTIVITIES; i++)
            activity[i] += stage->sum.activity[i];
        for (guint i = 0; i < NJ_N_KERNEL_KINDS; i++)
            energy_j[i] += stage->sum.energy_j[i];
        bubble += stage->bubble;
        waiting_j += stage->waiting_j;
        overlapped += stage->sum.overlapped;
    }
    for (guint i = 0; i < NJ_N_ACTIVITIES; i++)
        add(table, "time_breakdown", activities[i], "s", seconds(activity[i]) / n);
    add(table, "time_breakdown", "pipeline_bubble", "s", seconds(bubble) / n);
    for (guint i = 0; i < NJ_N_KERNEL_KINDS; i++)
        add(table, "energy_breakdown", kinds[i], "J", energy_j[i] / n);
    add(table, "energy_breakdown", "waiting", "J", waiting_j / n);
    add(table, "energy_breakdown", "static", "J", iteration->static_j / n);
    add(table, "communication", "exposed", "s", seconds(activity[NJ_ACTIVITY_COLLECTIVE]) / n);
    add(table, "communication", "overlapped", "s", seconds(overlapped) / n);
}

// Of the stage that needs most.
static int memory_of(const NjScenario *scenario, NjMemory *memory)
{
    NjMemoryShape shape;
    nj_memory_shape_from_workload(&scenario->workload,
                                  nj_scenario_execution(scenario) == NJ_EXECUTION_NANOBATCHED, &shape);
    return nj_memory_of_fullest_stage(&shape, memory);
}

static void add_memory(NjTable *table, const NjScenario *scenario)
{
    NjMemory memory;
    const int stage = memory_of(scenario, &memory);
    for (guint part = 0; part < NJ_N_MEMORY_PARTS; part++)
        add(table, "memory_breakdown", nj_memory_part_name((NjMemoryPart)part), "GiB",
            memory.bytes[part] / NJ_GIB);
    add(table, "memory", "total", "GiB", nj_memory_total(&memory) / NJ_GIB);
    add(table, "memory", "gpu_has", "GiB", scenario->workload.gpu.hbm_gib);
    add(table, "memory", "stage", "", stage);
}

// Of the slowest stage, where there is any.
static void add_update(NjTable *table, const NjIteration *iteration)
{
    NjTime reduction = 0, step = 0;
    for (guint s = 0; s < iteration->n_stages; s++) {
        reduction = MAX(reduction, iteration->stages[s].reduction);
        step = MAX(step, iteration->stages[s].step);
    }
    if (reduction > 0)
        add(table, "iteration", "gradient_reduction", "s", seconds(reduction));
    if (step > 0)
        add(table, "iteration", "optimizer_step", "s", seconds(step));
}

NjTable *nj_report_table(const NjScenario *scenario, const NjIteration *iteration)
{
    const NjWorkload *workload = &scenario->workload;
    const NjParallelism *p = &workload->parallelism;
    const double gpus = nj_parallelism_gpus(p);
    const double ranks = p->tp * p->cp * p->dp; // of a stage
    const double time_s = seconds(iteration->duration);
    const double tokens =
        (double)workload->microbatches * workload->microbatch_size * workload->seq_len * p->dp;
    const double dynamic_j = iteration->dynamic_j * ranks, static_j = iteration->static_j * ranks;
    const double energy_j = dynamic_j + static_j;
    const double peak = workload->gpu.peak_tflop_s * 1e12 * gpus * time_s;
    double flop = 0, peak_w = 0;
    for (guint s = 0; s < iteration->n_stages; s++) {
        flop += iteration->stages[s].sum.flop * ranks;
        peak_w = fmax(peak_w, iteration->stages[s].sum.peak_w);
    }

    NjTable *table = nj_table_new(columns, N_COLUMNS);
    add(table, "iteration", "time", "s", time_s);
    add(table, "iteration", "throughput", "tokens/s", tokens / time_s);
    add(table, "iteration", "mfu", "1",
        nj_arch_flop_per_token(&workload->arch, workload->seq_len) * tokens / peak);
    add(table, "iteration", "hfu", "1", flop / peak);
    add_update(table, iteration);
    add(table, "energy", "cluster", "J", energy_j);
    add(table, "energy", "cluster_static", "J", static_j);
    add(table, "energy", "cluster_dynamic", "J", dynamic_j);
    add(table, "energy", "per_gpu", "J", energy_j / gpus);
    add(table, "energy", "per_gpu_static", "J", static_j / gpus);
    add(table, "energy", "per_gpu_dynamic", "J", dynamic_j / gpus);
    add(table, "energy", "per_token", "J/token", energy_j / tokens);
    add(table, "power", "average_per_gpu", "W", energy_j / gpus / time_s);
    add(table, "power", "peak_per_gpu", "W", peak_w);
    add_breakdown(table, iteration);
    add_memory(table, scenario);
    return table;
}

static int global_batch(const NjWorkload *workload)
{
    return workload->microbatches * workload->microbatch_size * workload->parallelism.dp;
}

static void print_header(const NjScenario *scenario, FILE *out)
{
    const NjWorkload *w = &scenario->workload;
    g_autofree char *degrees = nj_parallelism_format(&w->parallelism, TRUE);
    fprintf(out, "%s", w->arch.title);
    if (w->arch.alias != NULL)
        fprintf(out, " (published tables also call it \"%s\")", w->arch.alias);
    fprintf(out, ", %s, %d GPUs: %s\n", degrees, nj_parallelism_gpus(&w->parallelism), w->gpu.name);
    g_autofree char *plan = nj_scenario_describe_plan(scenario);
    fprintf(out, "%d microbatches of %d sequences of %d tokens; %s schedule\n%s, %s\n", w->microbatches,
            w->microbatch_size, w->seq_len, scenario->schedule->name, nj_method_name(scenario->method), plan);
    if (w->parallelism.dp > 1)
        fprintf(out, "%d data-parallel ranks: a global batch of %d sequences\n", w->parallelism.dp,
                global_batch(w));
    g_autofree char *note = nj_gpu_note(&w->gpu);
    if (note != NULL)
        fprintf(out, "Note: %s.\n", note);
}

static const char *heading_of(const char *section)
{
    static const struct {
        const char *section, *heading;
    } headings[] = {
        {"iteration", "Iteration"},
        {"energy", "Energy"},
        {"power", "Power"},
        {"time_breakdown", "Time of a GPU, average over stages"},
        {"energy_breakdown", "Energy of a GPU, average over stages"},
        {"communication", "Communication of a GPU, average over stages"},
        {"memory_breakdown", "Memory of a GPU of the stage that needs most"},
        {"memory", "Memory"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(headings); i++)
        if (g_str_equal(headings[i].section, section))
            return headings[i].heading;
    g_assert_not_reached();
}

static int digits_for(double value)
{
    return fabs(value) >= 1000 ? 0 : fabs(value) >= 100 ? 1 : fabs(value) >= 10 ? 2 : 4;
}

// Sum of a section's values: breakdowns say their parts' shares.
static double section_sum(const NjTable *table, const char *section)
{
    double sum = 0;
    for (guint row = 0; row < nj_table_n_rows(table); row++)
        if (g_str_equal(nj_table_get_text(table, row, COLUMN_SECTION), section))
            sum += nj_table_get_real(table, row, COLUMN_VALUE);
    return sum;
}

static void print_people(const NjTable *table, FILE *out)
{
    const char *section = "";
    for (guint row = 0; row < nj_table_n_rows(table); row++) {
        const char *this_section = nj_table_get_text(table, row, COLUMN_SECTION);
        const char *unit = nj_table_get_text(table, row, COLUMN_UNIT);
        const double value = nj_table_get_real(table, row, COLUMN_VALUE);
        if (!g_str_equal(this_section, section))
            fprintf(out, "\n%s\n", heading_of(this_section));
        section = this_section;
        g_autofree char *metric =
            g_strdelimit(g_strdup(nj_table_get_text(table, row, COLUMN_METRIC)), "_", ' ');
        if (g_str_equal(unit, "1"))
            fprintf(out, "  %-20s %12.1f %%\n", metric, 100 * value);
        else if (g_str_has_suffix(section, "_breakdown"))
            fprintf(out, "  %-20s %12.*f %s  %5.1f %%\n", metric, digits_for(value), value, unit,
                    100 * value / section_sum(table, section));
        else if (*unit == '\0')
            fprintf(out, "  %-20s %12.0f\n", metric, value);
        else
            fprintf(out, "  %-20s %12.*f %s\n", metric, digits_for(value), value, unit);
    }
}

void nj_report_note(const NjGpu *gpu)
{
    g_autofree char *note = nj_gpu_note(gpu);
    if (note != NULL)
        g_printerr("nanojoule: note: %s\n", note);
}

void nj_report_iteration(const NjScenario *scenario, const NjIteration *iteration, NjFormat format, FILE *out)
{
    g_autoptr(NjTable) table = nj_report_table(scenario, iteration);
    if (format != NJ_FORMAT_TEXT) {
        nj_table_print(table, format, out);
        nj_report_note(&scenario->workload.gpu);
        return;
    }
    print_header(scenario, out);
    print_people(table, out);
    NjMemory memory;
    memory_of(scenario, &memory);
    if (nj_memory_total(&memory) > scenario->workload.gpu.hbm_gib * NJ_GIB)
        fprintf(out, "\nNote: this does not fit into the memory of %s.\n", scenario->workload.gpu.name);
    double peak_w = 0;
    for (guint s = 0; s < iteration->n_stages; s++)
        peak_w = fmax(peak_w, iteration->stages[s].sum.peak_w);
    if (peak_w > scenario->workload.gpu.power_limit_w)
        fprintf(out,
                "\nNote: the peak of single kernels is above the board's limit of %g W, which holds for "
                "averages over "
                "many kernels; nothing is throttled here.\n",
                scenario->workload.gpu.power_limit_w);
}
