// SPDX-License-Identifier: MIT
#include "sim/run.h"
#include "tests/testing.h"

#include <math.h>
#include <string.h>

// A device of round numbers: no clock tree, no interference, everything scales plainly.
static NjDeviceSpec plain_spec(void)
{
    return (NjDeviceSpec){
        .sm_count = 100,
        .freq_max_mhz = 1000,
        .hbm_freq_exponent = 0,
        .link_freq_exponent = 0,
        .volt_linear = 0.5,
        .volt_quadratic = 0,
        .unscaled_share = 0.5,
        .static_w = 100,
        .saturation_sms = 10,
        .overlap_gemm = 1,
        .overlap_attention = 1,
        .overlap_memory = 1,
        .overlap_comm_gemm = 1,
        .overlap_comm_memory = 1,
    };
}

static NjKernel gemm(double sm_s)
{
    return (NjKernel){.name = "gemm", .kind = NJ_KERNEL_GEMM, .sm_s = sm_s, .sm_j = 100 * sm_s, .flop = 1};
}

static NjKernel memory(double hbm_s)
{
    return (NjKernel){.name = "memory", .kind = NJ_KERNEL_MEMORY, .hbm_s = hbm_s, .hbm_j = 10 * hbm_s};
}

static NjKernel collective(double link_s)
{
    return (NjKernel){.name = "collective", .kind = NJ_KERNEL_COLLECTIVE, .link_s = link_s, .link_j = link_s};
}

typedef struct {
    NjStream stream;
    NjKernel kernel;
    guint after_other, with_other, sms;
    double dispatch_s;
} Op;

static void build(NjProgram *program, const Op *ops, guint n)
{
    nj_program_init(program);
    for (guint i = 0; i < n; i++) {
        const NjOp op = {
            .kernel = nj_program_add_kernel(program, &ops[i].kernel),
            .after_other = ops[i].after_other,
            .with_other = ops[i].with_other,
            .sms = ops[i].sms,
        };
        nj_program_add_op(program, ops[i].stream, op, ops[i].dispatch_s);
    }
}

static NjTaskRecord run_ops(const NjDeviceSpec *spec, double freq_mhz, const Op *ops, guint n)
{
    NjProgram program;
    NjTaskRecord record;
    build(&program, ops, n);
    nj_run_alone(spec, &program, freq_mhz, &record);
    nj_program_clear(&program);
    return record;
}

#define RUN(spec, freq, ...)                                                                                 \
    run_ops(spec, freq, (const Op[]){__VA_ARGS__}, sizeof((const Op[]){__VA_ARGS__}) / sizeof(Op))

static double seconds(NjTime time)
{
    return (double)time / NJ_PS_PER_S;
}

START_TEST(one_gemm)
{
    const NjDeviceSpec spec = plain_spec();
    NjKernel kernel = gemm(2e-3);
    kernel.latency_s = 1e-3;
    NjTaskRecord record = RUN(&spec, 1000, {NJ_STREAM_COMPUTE, kernel});
    ck_assert_double_eq_tol(seconds(record.duration), 3e-3, 1e-12);
    ck_assert_double_eq_tol(seconds(record.activity[NJ_ACTIVITY_GEMM]), 2e-3, 1e-12);
    ck_assert_double_eq_tol(seconds(record.activity[NJ_ACTIVITY_GAP]), 1e-3, 1e-12);
    ck_assert_double_eq_tol(record.energy_j[NJ_KERNEL_GEMM], 0.2, 1e-9);
    ck_assert_double_eq_tol(record.peak_w, 200, 1e-6);

    // Half the clock: twice the work's time, V = 0.75 of the voltage.
    record = RUN(&spec, 500, {NJ_STREAM_COMPUTE, kernel});
    ck_assert_double_eq_tol(seconds(record.duration), 5e-3, 1e-12);
    ck_assert_double_eq_tol(record.energy_j[NJ_KERNEL_GEMM], 0.2 * 0.75 * 0.75, 1e-9);
}
END_TEST

START_TEST(clock_scales_traffic)
{
    NjDeviceSpec spec = plain_spec();
    spec.hbm_freq_exponent = 1;
    spec.link_freq_exponent = 0.5;
    NjTaskRecord record = RUN(&spec, 250, {NJ_STREAM_COMPUTE, memory(1e-3)});
    ck_assert_double_eq_tol(seconds(record.duration), 4e-3, 1e-12);
    const double v = 1 - 0.5 * 0.75; // half of the energy does not scale
    ck_assert_double_eq_tol(record.energy_j[NJ_KERNEL_MEMORY], 0.01 * (0.5 + 0.5 * v * v), 1e-9);
    record = RUN(&spec, 250, {NJ_STREAM_COMMUNICATION, collective(1e-3), .sms = 10});
    ck_assert_double_eq_tol(seconds(record.duration), 2e-3, 1e-12);
}
END_TEST

START_TEST(clock_tree_and_occupied_sms)
{
    NjDeviceSpec spec = plain_spec();
    spec.clock_w = 50;
    spec.collective_sm_w = 2;
    NjKernel waits = collective(1e-3);
    waits.latency_s = 1e-3;
    // Clock tree while anything runs; 10 SMs from the launch of the collective to its end.
    const NjTaskRecord record = RUN(&spec, 1000, {NJ_STREAM_COMMUNICATION, waits, .sms = 10});
    ck_assert_double_eq_tol(record.energy_j[NJ_KERNEL_COLLECTIVE], 2e-3 * (50 + 20) + 1e-3, 1e-9);
    ck_assert_double_eq_tol(seconds(record.activity[NJ_ACTIVITY_COLLECTIVE]), 2e-3, 1e-12);
}
END_TEST

// Each alone takes 1 s and uses HBM wholly: together each gets half.
START_TEST(two_kernels_share_hbm)
{
    const NjDeviceSpec spec = plain_spec();
    NjKernel both_bound = collective(1e-9);
    both_bound.hbm_s = 1;
    NjTaskRecord record =
        RUN(&spec, 1000, {NJ_STREAM_COMPUTE, memory(1)}, {NJ_STREAM_COMMUNICATION, both_bound, .sms = 10});
    ck_assert_double_eq_tol(seconds(record.duration), 2, 1e-9);
    ck_assert_double_eq_tol(seconds(record.overlapped), 2, 1e-9);

    // The collective asks for a quarter only (1 s of HBM in 4 s of link) and gets it; the compute kernel runs
    // at three quarters while both run: 0.75 x 4 = 3 of its 4 s are done when the collective ends, then 1 s
    // alone.
    NjKernel quarter = collective(4);
    quarter.hbm_s = 1;
    record = RUN(&spec, 1000, {NJ_STREAM_COMPUTE, memory(4)}, {NJ_STREAM_COMMUNICATION, quarter, .sms = 10});
    ck_assert_double_eq_tol(seconds(record.duration), 5, 1e-9);
    ck_assert_double_eq_tol(seconds(record.overlapped), 4, 1e-9);

    // The other way round: 3.6 s on all SMs are 4 s on 90 of 100, in which the compute kernel asks for a
    // quarter of HBM; the collective does 3 of its 4 s beside it, then 1 s alone.
    NjKernel modest = gemm(3.6);
    modest.hbm_s = 1;
    NjKernel greedy = collective(1e-9);
    greedy.hbm_s = 4;
    record = RUN(&spec, 1000, {NJ_STREAM_COMPUTE, modest}, {NJ_STREAM_COMMUNICATION, greedy, .sms = 10});
    ck_assert_double_eq_tol(seconds(record.duration), 5, 1e-9);
    ck_assert_double_eq_tol(seconds(record.overlapped), 4, 1e-9);

    // Together they ask for no more than there is: 0.25 + 0.5.
    NjKernel half = collective(4);
    half.hbm_s = 2;
    record = RUN(&spec, 1000, {NJ_STREAM_COMPUTE, modest}, {NJ_STREAM_COMMUNICATION, half, .sms = 10});
    ck_assert_double_eq_tol(seconds(record.duration), 4, 1e-9);
}
END_TEST

START_TEST(collective_takes_sms)
{
    const NjDeviceSpec spec = plain_spec();
    static const struct {
        const char *label;
        guint sms;
        double compute_s, collective_s, duration_s; // alone, alone on 10 SMs or more; together
    } rows[] = {
        // 20 of 100 SMs for 1 s: the GEMM does 0.8 of its 2 s, then 1.2 s alone.
        {"enough SMs", 20, 2, 1, 2.2},
        // 5 SMs carry half the link's rate: 2 s, in which the GEMM does 1.9 s of its 2 s.
        {"too few SMs", 5, 2, 1, 2.1},
        {"collective is longer", 50, 1, 3, 3},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        const NjTaskRecord record =
            RUN(&spec, 1000, {NJ_STREAM_COMPUTE, gemm(rows[i].compute_s)},
                {NJ_STREAM_COMMUNICATION, collective(rows[i].collective_s), .sms = rows[i].sms});
        ck_assert_msg(fabs(seconds(record.duration) - rows[i].duration_s) < 1e-9, "%s: %.9f", rows[i].label,
                      seconds(record.duration));
    }
}
END_TEST

START_TEST(interference)
{
    NjDeviceSpec spec = plain_spec();
    spec.overlap_gemm = 1.6;
    spec.overlap_attention = 2;
    spec.overlap_memory = 1.25;
    spec.overlap_comm_gemm = 2;
    spec.overlap_comm_memory = 1.6;
    NjKernel attention = gemm(2);
    attention.kind = NJ_KERNEL_ATTENTION;
    const struct {
        const char *label;
        NjKernel kernel;
        double duration_s;
    } rows[] = {
        // The collective takes 2 s instead of 1 at half the rate; the kernel does 0.8 / 1.6 x 2 = 1 s of its
        // 2 s.
        {"gemm", gemm(2), 3},
        // 0.8 / 2 x 2 = 0.8 s of its 2 s, then 1.2 s alone.
        {"attention", attention, 3.2},
        // The collective takes 1.6 s, in which the kernel, which needs no SMs, does 1.6 / 1.25 of its 2 s.
        {"memory", memory(2), 1.6 + 0.72},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        const NjTaskRecord record = RUN(&spec, 1000, {NJ_STREAM_COMPUTE, rows[i].kernel},
                                        {NJ_STREAM_COMMUNICATION, collective(1), .sms = 20});
        ck_assert_msg(fabs(seconds(record.duration) - rows[i].duration_s) < 1e-9, "%s: %.9f", rows[i].label,
                      seconds(record.duration));
    }
}
END_TEST

// Waiting for its peers for 1 s, a collective holds half the SMs but interferes with nothing.
START_TEST(waiting_collective_holds_sms)
{
    NjDeviceSpec spec = plain_spec();
    spec.overlap_gemm = 4;
    NjKernel waits = collective(1e-9);
    waits.latency_s = 1;
    const NjTaskRecord record =
        RUN(&spec, 1000, {NJ_STREAM_COMPUTE, gemm(2)}, {NJ_STREAM_COMMUNICATION, waits, .sms = 50});
    ck_assert_double_eq_tol(seconds(record.duration), 1 + 1.5, 1e-6);
}
END_TEST

START_TEST(host_and_dependencies)
{
    const NjDeviceSpec spec = plain_spec();
    // The host is the bottleneck: kernels of 1 ms, one dispatched every 3 ms.
    NjTaskRecord record = RUN(&spec, 1000, {NJ_STREAM_COMPUTE, gemm(1e-3), .dispatch_s = 3e-3},
                              {NJ_STREAM_COMPUTE, gemm(1e-3), .dispatch_s = 3e-3});
    ck_assert_double_eq_tol(seconds(record.duration), 7e-3, 1e-12);
    ck_assert_double_eq_tol(seconds(record.activity[NJ_ACTIVITY_GAP]), 5e-3, 1e-12);

    // The host runs ahead: two kernels of 5 ms, dispatched after 1 and 2 ms.
    record = RUN(&spec, 1000, {NJ_STREAM_COMPUTE, gemm(5e-3), .dispatch_s = 1e-3},
                 {NJ_STREAM_COMPUTE, gemm(5e-3), .dispatch_s = 1e-3});
    ck_assert_double_eq_tol(seconds(record.duration), 11e-3, 1e-12);

    // A collective launched with the second kernel, which waits for it before the third: 1 + 2 + 1.
    record = RUN(&spec, 1000, {NJ_STREAM_COMPUTE, gemm(1)}, {NJ_STREAM_COMPUTE, memory(1)},
                 {NJ_STREAM_COMMUNICATION, collective(2), .with_other = 2, .sms = 10},
                 {NJ_STREAM_COMPUTE, gemm(1), .after_other = 1});
    ck_assert_double_eq_tol(seconds(record.duration), 4, 1e-9);
    ck_assert_double_eq_tol(seconds(record.overlapped), 1, 1e-9);
    ck_assert_double_eq_tol(seconds(record.activity[NJ_ACTIVITY_COLLECTIVE]), 1, 1e-9);
}
END_TEST

START_TEST(kernels_without_work)
{
    const NjDeviceSpec spec = plain_spec();
    const NjTaskRecord record = RUN(&spec, 1000, {NJ_STREAM_COMPUTE, gemm(0)}, {NJ_STREAM_COMPUTE, gemm(1)},
                                    {NJ_STREAM_COMPUTE, memory(0)});
    ck_assert_double_eq_tol(seconds(record.duration), 1, 1e-12);
    NjProgram empty;
    NjTaskRecord nothing;
    nj_program_init(&empty);
    nj_run_alone(&spec, &empty, 1000, &nothing);
    ck_assert_int_eq(nothing.duration, 0);
    nj_program_clear(&empty);
}
END_TEST

#define MAX_STAGES 4
#define MAX_MICROBATCHES 8
#define MAX_TASKS (MAX_STAGES * MAX_MICROBATCHES * 2)

// A 1F1B pipeline by hand: stage s takes forward_s[s] and backward_s[s].
typedef struct {
    guint n_stages, n_microbatches, n_tasks, n_edges;
    NjProgram programs[MAX_STAGES * 2];
    NjTask tasks[MAX_TASKS];
    NjEdge edges[MAX_TASKS];
    NjDeviceSpec specs[MAX_STAGES];
} Pipeline;

static void pipeline_init(Pipeline *p, guint n_stages, guint m, const double *forward_s,
                          const double *backward_s, double transfer_s)
{
    guint at[MAX_STAGES][MAX_MICROBATCHES][2];
    *p = (Pipeline){.n_stages = n_stages, .n_microbatches = m};
    for (guint s = 0; s < n_stages; s++) {
        p->specs[s] = plain_spec();
        p->specs[s].waiting_w = 7;
        build(&p->programs[2 * s], &(const Op){NJ_STREAM_COMPUTE, gemm(forward_s[s])}, 1);
        build(&p->programs[2 * s + 1], &(const Op){NJ_STREAM_COMPUTE, gemm(backward_s[s])}, 1);
        const guint ahead = MIN(m, n_stages - 1 - s);
        for (guint i = 0; i < m + ahead; i++) {
            if (i < m) {
                at[s][i][0] = p->n_tasks;
                p->tasks[p->n_tasks++] = (NjTask){s, 2 * s, 1000, NULL};
            }
            if (i >= ahead) {
                at[s][i - ahead][1] = p->n_tasks;
                p->tasks[p->n_tasks++] = (NjTask){s, 2 * s + 1, 1000, NULL};
            }
        }
    }
    const NjTime delay = (NjTime)(transfer_s * NJ_PS_PER_S);
    for (guint s = 0; s + 1 < n_stages; s++) {
        for (guint i = 0; i < m; i++) {
            p->edges[p->n_edges++] = (NjEdge){at[s][i][0], at[s + 1][i][0], delay};
            p->edges[p->n_edges++] = (NjEdge){at[s + 1][i][1], at[s][i][1], delay};
        }
    }
}

static void pipeline_clear(Pipeline *p)
{
    for (guint i = 0; i < 2 * p->n_stages; i++)
        nj_program_clear(&p->programs[i]);
}

static NjTime pipeline_run(const Pipeline *p, const NjObserver *observer, NjTaskResult *results)
{
    const NjRunInput input = {p->specs, p->n_stages, p->programs, 2 * p->n_stages,
                              p->tasks, p->n_tasks,  p->edges,    p->n_edges};
    return nj_run(&input, observer, results);
}

// Relaxes starts until nothing moves: a task follows its device's previous one and its edges.
static double slow_makespan(const Pipeline *p, const double *forward_s, const double *backward_s,
                            double transfer_s)
{
    double end[MAX_TASKS] = {0};
    for (gboolean moved = TRUE; moved;) {
        moved = FALSE;
        for (guint i = 0; i < p->n_tasks; i++) {
            double start = 0;
            for (guint k = 0; k < i; k++)
                if (p->tasks[k].device == p->tasks[i].device)
                    start = fmax(start, end[k]);
            for (guint k = 0; k < p->n_edges; k++)
                if (p->edges[k].to == i)
                    start = fmax(start, end[p->edges[k].from] + transfer_s);
            const guint stage = p->tasks[i].device;
            const double ends = start + (p->tasks[i].program % 2 == 0 ? forward_s[stage] : backward_s[stage]);
            moved = moved || ends > end[i];
            end[i] = ends;
        }
    }
    double last = 0;
    for (guint i = 0; i < p->n_tasks; i++)
        last = fmax(last, end[i]);
    return last;
}

START_TEST(pipelines_known_by_hand)
{
    static const double f[] = {1, 1, 1, 1}, b[] = {2, 2, 2, 2};
    static const double uneven_f[] = {1, 1.5, 0.7, 1.2}, uneven_b[] = {2.5, 1.8, 2.2, 3};
    NjTaskResult results[MAX_TASKS];
    for (guint n_stages = 1; n_stages <= MAX_STAGES; n_stages++) {
        for (guint m = 1; m <= MAX_MICROBATCHES; m++) {
            Pipeline p;
            pipeline_init(&p, n_stages, m, f, b, 0);
            // (m + p - 1)(f + b)
            ck_assert_double_eq_tol(seconds(pipeline_run(&p, NULL, results)), (m + n_stages - 1) * 3, 1e-9);
            pipeline_clear(&p);
            pipeline_init(&p, n_stages, m, uneven_f, uneven_b, 0.25);
            ck_assert_double_eq_tol(seconds(pipeline_run(&p, NULL, results)),
                                    slow_makespan(&p, uneven_f, uneven_b, 0.25), 1e-9);
            pipeline_clear(&p);
        }
    }
}
END_TEST

// What an observer sees, summed.
typedef struct {
    double energy_j[MAX_STAGES];
    NjTime end[MAX_STAGES];                    // of the last interval
    NjTime span_end[MAX_STAGES][NJ_N_STREAMS]; // of the last span
    double span_j;
    guint n_tasks;
} Seen;

static void see_interval(gpointer user, const NjInterval *interval)
{
    Seen *seen = user;
    ck_assert_int_eq(interval->start, seen->end[interval->device]); // no gap, no overlap
    ck_assert_int_gt(interval->end, interval->start);
    seen->end[interval->device] = interval->end;
    seen->energy_j[interval->device] += interval->power_w * seconds(interval->end - interval->start);
    ck_assert_double_le(interval->sm_use, 1 + 1e-9);
    ck_assert_double_le(interval->hbm_use, 1 + 1e-9);
}

static void see_span(gpointer user, const NjSpan *span)
{
    Seen *seen = user;
    NjTime *end = &seen->span_end[span->device][span->stream];
    ck_assert_int_ge(span->issued, *end);
    ck_assert_int_ge(span->issued, span->dispatched);
    ck_assert_int_ge(span->begun, span->issued);
    ck_assert_int_ge(span->ended, span->begun);
    *end = span->ended;
    seen->span_j += span->energy_j;
}

static void see_task(gpointer user, guint32 task, const NjTaskResult *result)
{
    Seen *seen = user;
    (void)task;
    ck_assert_int_eq(result->end - result->start, result->record.duration);
    seen->n_tasks++;
}

START_TEST(power_sums_to_energy)
{
    static const double f[] = {1, 1.5, 0.7}, b[] = {2.5, 1.8, 2.2};
    Pipeline p;
    NjTaskResult results[MAX_TASKS];
    Seen seen = {0};
    const NjObserver observer = {see_interval, see_span, see_task, &seen};
    pipeline_init(&p, 3, 5, f, b, 0.1);
    const NjTime end = pipeline_run(&p, &observer, results);
    ck_assert_uint_eq(seen.n_tasks, p.n_tasks);
    double busy_j = 0;
    for (guint s = 0; s < 3; s++) {
        NjTime busy = 0;
        double dynamic_j = 0;
        for (guint i = 0; i < p.n_tasks; i++) {
            if (p.tasks[i].device != s)
                continue;
            busy += results[i].record.duration;
            dynamic_j += nj_task_record_dynamic_j(&results[i].record);
        }
        const double total_j =
            100 * seconds(end) + dynamic_j + 7 * seconds(end - busy); // 7 W more while it waits
        ck_assert_int_eq(seen.end[s], end);
        ck_assert_double_eq_tol(seen.energy_j[s] / total_j, 1, 1e-9);
        busy_j += dynamic_j;
    }
    ck_assert_double_eq_tol(seen.span_j / busy_j, 1, 1e-9);
    pipeline_clear(&p);
}
END_TEST

static void see_only_interval(gpointer user, const NjInterval *interval)
{
    NjInterval *seen = user;
    ck_assert_int_eq(seen->end, 0); // the first
    *seen = *interval;
}

// One kernel without latency is one interval of constant power, as a known record is.
START_TEST(one_interval)
{
    const NjDeviceSpec spec = plain_spec();
    NjProgram program;
    NjTaskRecord record;
    NjTaskResult result;
    NjKernel kernel = gemm(2); // 100 W of its own
    kernel.hbm_s = 0.5;
    build(&program, &(const Op){NJ_STREAM_COMPUTE, kernel}, 1);
    nj_run_alone(&spec, &program, 1000, &record);
    for (guint known = 0; known < 2; known++) {
        NjInterval seen = {0};
        const NjObserver observer = {.interval = see_only_interval, .user = &seen};
        const NjTask task = {.freq_mhz = 1000, .known = known ? &record : NULL};
        const NjRunInput input = {&spec, 1, &program, 1, &task, 1, NULL, 0};
        ck_assert_int_eq(nj_run(&input, &observer, &result), 2 * (NjTime)NJ_PS_PER_S);
        ck_assert_int_eq(seen.start, 0);
        ck_assert_int_eq(seen.end, 2 * (NjTime)NJ_PS_PER_S);
        ck_assert_double_eq_tol(seen.power_w, 200, 1e-9);
        ck_assert_double_eq(seen.freq_mhz, 1000);
        ck_assert_double_eq_tol(seen.sm_use, known ? 0 : 1, 1e-9); // what a record does not tell
        ck_assert_double_eq_tol(seen.hbm_use, known ? 0 : 0.25, 1e-9);
    }
    nj_program_clear(&program);
}
END_TEST

// A task with a known record stands for its kernels: the same results to the byte.
START_TEST(known_records_give_the_same_bytes)
{
    static const double f[] = {1.1, 1.5}, b[] = {2.5, 1.8};
    Pipeline p;
    NjTaskResult full[MAX_TASKS], known[MAX_TASKS];
    NjTaskRecord records[4];
    memset(full, 0, sizeof full);
    memset(known, 0, sizeof known);
    pipeline_init(&p, 2, 6, f, b, 0.1);
    const NjTime end = pipeline_run(&p, NULL, full);
    for (guint i = 0; i < 4; i++)
        nj_run_alone(&p.specs[0], &p.programs[i], 1000, &records[i]);
    for (guint i = 0; i < p.n_tasks; i++)
        p.tasks[i].known = &records[p.tasks[i].program];
    Seen seen = {0};
    const NjObserver observer = {see_interval, NULL, see_task, &seen};
    ck_assert_int_eq(pipeline_run(&p, &observer, known), end);
    for (guint i = 0; i < p.n_tasks; i++)
        ck_assert_mem_eq(&full[i], &known[i], sizeof full[i]);
    ck_assert_int_eq(seen.end[0], end);
    pipeline_clear(&p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run");
    TCase *tests = tcase_create("run");
    tcase_add_test(tests, one_gemm);
    tcase_add_test(tests, clock_scales_traffic);
    tcase_add_test(tests, clock_tree_and_occupied_sms);
    tcase_add_test(tests, two_kernels_share_hbm);
    tcase_add_test(tests, collective_takes_sms);
    tcase_add_test(tests, interference);
    tcase_add_test(tests, waiting_collective_holds_sms);
    tcase_add_test(tests, host_and_dependencies);
    tcase_add_test(tests, kernels_without_work);
    tcase_add_test(tests, pipelines_known_by_hand);
    tcase_add_test(tests, power_sums_to_energy);
    tcase_add_test(tests, one_interval);
    tcase_add_test(tests, known_records_give_the_same_bytes);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
