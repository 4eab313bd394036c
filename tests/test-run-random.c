// SPDX-License-Identifier: MIT
// Random programs on random devices against a slow reference, and what must hold for every run: power sums to
// energy, intervals leave no gap, operations of a stream never overlap, observers change nothing.
#include "tests/aborts.h"
#include "tests/counting-malloc.h"
#include "tests/slow-device.h"

#define MAX_DEVICES 3
#define MAX_PROGRAMS 6
#define MAX_TASKS 24
#define MAX_EDGES (4 * MAX_TASKS)

static double seconds(NjTime time)
{
    return (double)time / NJ_PS_PER_S;
}

static double real(GRand *random, double low, double high)
{
    return g_rand_double_range(random, low, high);
}

static NjDeviceSpec random_spec(GRand *random)
{
    return (NjDeviceSpec){
        .sm_count = 100,
        .freq_max_mhz = 1000,
        .hbm_freq_exponent = real(random, 0, 1),
        .link_freq_exponent = real(random, 0, 1),
        .volt_linear = real(random, 0, 1),
        .volt_quadratic = real(random, 0, 1),
        .unscaled_share = real(random, 0, 1),
        .static_w = real(random, 10, 100),
        .waiting_w = real(random, 0, 50),
        .clock_w = real(random, 0, 50),
        .collective_sm_w = real(random, 0, 2),
        .saturation_sms = real(random, 1, 30),
        .overlap_gemm = real(random, 1, 2),
        .overlap_attention = real(random, 1, 2),
        .overlap_memory = real(random, 1, 2),
        .overlap_comm_gemm = real(random, 1, 2),
        .overlap_comm_memory = real(random, 1, 2),
    };
}

// A need of a resource: often none.
static double need(GRand *random)
{
    return g_rand_int_range(random, 0, 4) == 0 ? 0 : real(random, 0, 2);
}

static Ops random_ops(GRand *random)
{
    static const NjKernelKind kinds[] = {NJ_KERNEL_GEMM, NJ_KERNEL_ATTENTION, NJ_KERNEL_MEMORY};
    Ops ops = {.n = (guint)g_rand_int_range(random, 0, MAX_OPS + 1)};
    guint count[NJ_N_STREAMS] = {0};
    for (guint i = 0; i < ops.n; i++) {
        Op *op = &ops.ops[i];
        op->stream = g_rand_int_range(random, 0, 3) == 0 ? NJ_STREAM_COMMUNICATION : NJ_STREAM_COMPUTE;
        const gboolean collective = op->stream == NJ_STREAM_COMMUNICATION;
        const guint other = count[collective ? NJ_STREAM_COMPUTE : NJ_STREAM_COMMUNICATION];
        op->kernel = (NjKernel){
            .name = "kernel",
            .kind = collective ? NJ_KERNEL_COLLECTIVE : kinds[g_rand_int_range(random, 0, 3)],
            .latency_s = g_rand_boolean(random) ? 0 : real(random, 0, 0.5),
            .sm_s = collective ? 0 : need(random),
            .hbm_s = need(random),
            .link_s = collective ? need(random) : 0,
        };
        // A kernel that needs nothing does nothing.
        op->kernel.sm_j = op->kernel.sm_s * real(random, 0, 300);
        op->kernel.hbm_j = op->kernel.hbm_s * real(random, 0, 80);
        op->kernel.link_j = op->kernel.link_s * real(random, 0, 40);
        op->kernel.flop = op->kernel.sm_s;
        op->kernel.hbm_bytes = op->kernel.hbm_s;
        op->kernel.link_bytes = op->kernel.link_s;
        if (g_rand_int_range(random, 0, 3) == 0)
            op->after_other = (guint)g_rand_int_range(random, 0, (gint32)other + 1);
        if (g_rand_int_range(random, 0, 3) == 0)
            op->with_other = (guint)g_rand_int_range(random, 0, (gint32)other + 1);
        op->sms = collective ? (guint)g_rand_int_range(random, 1, 60) : 0;
        op->dispatch_s = g_rand_boolean(random) ? 0 : real(random, 0, 1.5);
        count[op->stream]++;
    }
    return ops;
}

static void build(NjProgram *program, const Ops *ops)
{
    nj_program_init(program);
    for (guint i = 0; i < ops->n; i++) {
        const Op *from = &ops->ops[i];
        const NjOp op = {
            .kernel = nj_program_add_kernel(program, &from->kernel),
            .after_other = from->after_other,
            .with_other = from->with_other,
            .sms = from->sms,
        };
        nj_program_add_op(program, from->stream, op, from->dispatch_s);
    }
}

START_TEST(programs_against_the_reference)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    for (guint round = 0; round < 1500; round++) {
        const NjDeviceSpec spec = random_spec(random);
        const Ops ops = random_ops(random);
        const double freq_mhz = real(random, 500, 1000);
        NjProgram program;
        NjTaskRecord record;
        build(&program, &ops);
        nj_run_alone(&spec, &program, freq_mhz, &record);
        nj_program_clear(&program);
        const SlowResult slow = slow_run(&spec, freq_mhz, &ops);
        const double dynamic_j = nj_task_record_dynamic_j(&record);
        ck_assert_msg(fabs(seconds(record.duration) - slow.duration_s) < 1e-7,
                      "round %u, %u operations: %.9f s, not %.9f s", round, ops.n, seconds(record.duration),
                      slow.duration_s);
        ck_assert_msg(fabs(dynamic_j - slow.dynamic_j) < 1e-4, "round %u: %.9f J, not %.9f J", round,
                      dynamic_j, slow.dynamic_j);
        ck_assert_double_eq_tol(seconds(record.overlapped), slow.overlapped_s, 1e-7);
        ck_assert_double_eq_tol(seconds(record.activity[NJ_ACTIVITY_GEMM] +
                                        record.activity[NJ_ACTIVITY_ATTENTION] +
                                        record.activity[NJ_ACTIVITY_MEMORY]),
                                slow.computing_s, 1e-7);
        NjTime sum = 0;
        for (guint i = 0; i < NJ_N_ACTIVITIES; i++)
            sum += record.activity[i];
        ck_assert_int_eq(sum, record.duration);
    }
}
END_TEST

// A random run: tasks of several programs on devices that differ, with edges from earlier tasks.
typedef struct {
    NjDeviceSpec specs[MAX_DEVICES];
    Ops ops[MAX_PROGRAMS];
    NjProgram programs[MAX_PROGRAMS];
    NjTask tasks[MAX_TASKS];
    NjEdge edges[MAX_EDGES];
    NjRunInput input;
} Cluster;

static void cluster_init(Cluster *c, GRand *random)
{
    *c = (Cluster){0};
    c->input = (NjRunInput){
        .specs = c->specs,
        .n_devices = (guint)g_rand_int_range(random, 1, MAX_DEVICES + 1),
        .programs = c->programs,
        .n_programs = MAX_PROGRAMS,
        .tasks = c->tasks,
        .n_tasks = (guint)g_rand_int_range(random, 1, MAX_TASKS + 1),
        .edges = c->edges,
    };
    for (guint i = 0; i < c->input.n_devices; i++)
        c->specs[i] = random_spec(random);
    for (guint i = 0; i < MAX_PROGRAMS; i++) {
        if (i > 0) // program 0 is empty
            c->ops[i] = random_ops(random);
        build(&c->programs[i], &c->ops[i]);
    }
    for (guint i = 0; i < c->input.n_tasks; i++) {
        c->tasks[i] = (NjTask){
            .device = (guint32)g_rand_int_range(random, 0, (gint32)c->input.n_devices),
            .program = (guint32)g_rand_int_range(random, 0, MAX_PROGRAMS),
            .freq_mhz = 500 + 100 * g_rand_int_range(random, 0, 6),
        };
        for (gint32 k = i > 0 ? g_rand_int_range(random, 0, 4) : 0; k > 0; k--)
            c->edges[c->input.n_edges++] = (NjEdge){
                .from = (guint32)g_rand_int_range(random, 0, (gint32)i),
                .to = i,
                .delay = g_rand_boolean(random) ? 0 : (NjTime)(real(random, 0, 3) * NJ_PS_PER_S),
            };
    }
}

static void cluster_clear(Cluster *c)
{
    for (guint i = 0; i < MAX_PROGRAMS; i++)
        nj_program_clear(&c->programs[i]);
}

// What an observer of a run sees.
typedef struct {
    const Cluster *cluster;
    NjTime interval_end[MAX_DEVICES];
    double interval_j[MAX_DEVICES];
    double peak_w[MAX_DEVICES];
    NjTime span_end[MAX_DEVICES][NJ_N_STREAMS];
    double span_j[MAX_TASKS];
    guint n_spans[MAX_TASKS];
    NjTime span_first[MAX_TASKS], span_last[MAX_TASKS];
    guint n_tasks;
} Seen;

// Check keeps a note of every assertion; here are very many.
#define check(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            ck_abort_msg("not so: %s", #condition);                                                          \
    } while (0)

static void see_interval(gpointer user, const NjInterval *interval)
{
    Seen *seen = user;
    const double dt_s = seconds(interval->end - interval->start);
    check(interval->device < seen->cluster->input.n_devices);
    check(interval->start == seen->interval_end[interval->device]);
    check(interval->end > interval->start);
    seen->interval_end[interval->device] = interval->end;
    seen->interval_j[interval->device] += interval->power_w * dt_s;
    seen->peak_w[interval->device] = fmax(seen->peak_w[interval->device], interval->power_w);
    const double uses[] = {interval->sm_use, interval->hbm_use, interval->link_use};
    for (guint i = 0; i < G_N_ELEMENTS(uses); i++)
        check(uses[i] >= 0 && uses[i] <= 1 + 1e-9);
}

static void see_span(gpointer user, const NjSpan *span)
{
    Seen *seen = user;
    const NjTask *task = &seen->cluster->tasks[span->task];
    NjTime *end = &seen->span_end[span->device][span->stream];
    check(span->device == task->device);
    check(!(span->freq_mhz < task->freq_mhz || span->freq_mhz > task->freq_mhz));
    check(span->issued >= *end); // never two at once on a stream
    check(span->dispatching <= span->dispatched);
    check(span->dispatched <= span->issued);
    check(span->issued <= span->begun);
    check(span->begun <= span->ended);
    const double latency_s = span->kernel->latency_s;
    check(fabs(seconds(span->begun - span->issued) - latency_s) < 1e-11);
    check(span->mean_sms >= 0 && span->mean_sms <= 100 + 1e-6);
    *end = span->ended;
    seen->span_j[span->task] += span->energy_j + span->overhead_j;
    if (seen->n_spans[span->task]++ == 0)
        seen->span_first[span->task] = span->issued;
    seen->span_first[span->task] = MIN(seen->span_first[span->task], span->issued);
    seen->span_last[span->task] = MAX(seen->span_last[span->task], span->ended);
}

static void see_task(gpointer user, guint32 task, const NjTaskResult *result)
{
    Seen *seen = user;
    (void)task;
    ck_assert_int_eq(result->end - result->start, result->record.duration);
    seen->n_tasks++;
}

// Starts follow from the reference's durations: a task follows its device's previous one and its edges.
static void check_starts(const Cluster *c, const NjTaskResult *results)
{
    for (guint i = 0; i < c->input.n_tasks; i++) {
        NjTime start = 0;
        for (guint k = 0; k < i; k++)
            if (c->tasks[k].device == c->tasks[i].device)
                start = MAX(start, results[k].end);
        for (guint k = 0; k < c->input.n_edges; k++)
            if (c->edges[k].to == i)
                start = MAX(start, results[c->edges[k].from].end + c->edges[k].delay);
        ck_assert_int_eq(results[i].start, start);
        const SlowResult slow =
            slow_run(&c->specs[c->tasks[i].device], c->tasks[i].freq_mhz, &c->ops[c->tasks[i].program]);
        ck_assert_double_eq_tol(seconds(results[i].record.duration), slow.duration_s, 1e-7);
    }
}

// The power of every device integrates to static power x time + what tasks used + what waiting drew.
static void check_energy(const Cluster *c, const Seen *seen, const NjTaskResult *results, NjTime end)
{
    for (guint d = 0; d < c->input.n_devices; d++) {
        NjTime busy = 0;
        double energy_j = c->specs[d].static_w * seconds(end), peak_w = 0;
        for (guint i = 0; i < c->input.n_tasks; i++) {
            if (c->tasks[i].device != d)
                continue;
            busy += results[i].record.duration;
            energy_j += nj_task_record_dynamic_j(&results[i].record);
            peak_w = fmax(peak_w, results[i].record.peak_w);
        }
        energy_j += c->specs[d].waiting_w * seconds(end - busy);
        ck_assert_int_eq(seen->interval_end[d], end);
        if (end > 0)
            ck_assert_double_eq_tol(seen->interval_j[d] / energy_j, 1, 1e-9);
        if (busy < end)
            peak_w = fmax(peak_w, c->specs[d].static_w + c->specs[d].waiting_w);
        ck_assert_double_eq(seen->peak_w[d], peak_w);
    }
}

static void check_spans(const Cluster *c, const Seen *seen, const NjTaskResult *results)
{
    for (guint i = 0; i < c->input.n_tasks; i++) {
        ck_assert_uint_eq(seen->n_spans[i], c->ops[c->tasks[i].program].n);
        ck_assert_double_eq_tol(seen->span_j[i], nj_task_record_dynamic_j(&results[i].record), 1e-7);
        if (seen->n_spans[i] == 0)
            continue;
        ck_assert_int_ge(seen->span_first[i], results[i].start);
        ck_assert_int_eq(seen->span_last[i], results[i].end);
    }
}

START_TEST(runs_of_many_tasks)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(11);
    for (guint round = 0; round < 200; round++) {
        Cluster c;
        NjTaskResult observed[MAX_TASKS] = {0}, plain[MAX_TASKS] = {0}, known[MAX_TASKS] = {0};
        NjTaskRecord records[MAX_TASKS];
        cluster_init(&c, random);
        Seen seen = {.cluster = &c};
        const NjObserver observer = {see_interval, see_span, see_task, &seen};
        const NjTime end = nj_run(&c.input, &observer, observed);
        ck_assert_uint_eq(seen.n_tasks, c.input.n_tasks);
        check_starts(&c, observed);
        check_energy(&c, &seen, observed, end);
        check_spans(&c, &seen, observed);

        // Nobody looking, and records of the programs alone in place of their kernels: the same bytes.
        ck_assert_int_eq(nj_run(&c.input, NULL, plain), end);
        ck_assert_mem_eq(observed, plain, sizeof plain);
        for (guint i = 0; i < c.input.n_tasks; i++) {
            nj_run_alone(&c.specs[c.tasks[i].device], &c.programs[c.tasks[i].program], c.tasks[i].freq_mhz,
                         &records[i]);
            if (i % 3 > 0)
                c.tasks[i].known = &records[i];
        }
        Seen again = {.cluster = &c};
        const NjObserver of_known = {see_interval, see_span, see_task, &again};
        ck_assert_int_eq(nj_run(&c.input, &of_known, known), end);
        ck_assert_mem_eq(observed, known, sizeof known);
        for (guint d = 0; d < c.input.n_devices && end > 0; d++) {
            ck_assert_int_eq(again.interval_end[d], end);
            ck_assert_double_eq_tol(again.interval_j[d] / seen.interval_j[d], 1, 1e-9);
        }
        cluster_clear(&c);
    }
}
END_TEST

static void run_two(const NjEdge *edges, guint n_edges, guint32 device, guint32 program_of_second)
{
    const NjDeviceSpec spec = {.sm_count = 1, .freq_max_mhz = 1000};
    NjProgram program;
    NjTaskResult results[2];
    nj_program_init(&program);
    const NjTask tasks[] = {{.freq_mhz = 1000}, {device, program_of_second, 1000, NULL}};
    nj_run(&(NjRunInput){&spec, 1, &program, 1, tasks, 2, edges, n_edges}, NULL, results);
}

static void tasks_in_a_circle(void)
{
    run_two((const NjEdge[]){{0, 1, 0}, {1, 0, 0}}, 2, 0, 0);
}

static void first_waits_for_second(void)
{
    run_two(&(const NjEdge){1, 0, 0}, 1, 0, 0); // on one device, in order
}

static void no_such_device(void)
{
    run_two(NULL, 0, 1, 0);
}

static void no_such_program(void)
{
    run_two(NULL, 0, 0, 1);
}

static void no_such_task(void)
{
    run_two(&(const NjEdge){0, 2, 0}, 1, 0, 0);
}

static void add_op(NjOp op)
{
    NjProgram program;
    nj_program_init(&program);
    const NjKernel kernel = {.name = "kernel"};
    nj_program_add_kernel(&program, &kernel);
    nj_program_add_op(&program, NJ_STREAM_COMPUTE, op, 0);
}

static void waits_for_what_is_not_there(void)
{
    add_op((NjOp){.after_other = 1});
}

static void starts_with_what_is_not_there(void)
{
    add_op((NjOp){.with_other = 1});
}

static void no_such_kernel(void)
{
    add_op((NjOp){.kernel = 1});
}

START_TEST(misuse_trips_asserts)
{
    static const struct {
        const char *label;
        void (*misuse)(void);
    } rows[] = {
        {"tasks in a circle", tasks_in_a_circle},
        {"first waits for second on one device", first_waits_for_second},
        {"no such device", no_such_device},
        {"no such program", no_such_program},
        {"no such task", no_such_task},
        {"waits for what is not there", waits_for_what_is_not_there},
        {"starts with what is not there", starts_with_what_is_not_there},
        {"no such kernel", no_such_kernel},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        ck_assert_msg(nj_test_aborts(rows[i].misuse), "%s", rows[i].label);
}
END_TEST

#ifdef NJ_COUNTS_ALLOCATIONS
// All memory is there before the first event: a run of many kernels allocates as often as one of few.
START_TEST(no_allocation_in_a_run)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(3);
    const NjDeviceSpec spec = random_spec(random);
    guint allocations[2];
    for (guint i = 0; i < 2; i++) {
        NjProgram program;
        NjTaskRecord record;
        Ops ops;
        do
            ops = random_ops(random);
        while (ops.n < MAX_OPS);
        if (i == 0)
            ops.n = 2;
        build(&program, &ops);
        const guint before = nj_n_allocations;
        nj_run_alone(&spec, &program, 900, &record);
        allocations[i] = nj_n_allocations - before;
        nj_program_clear(&program);
    }
    ck_assert_uint_gt(allocations[0], 0);
    ck_assert_uint_eq(allocations[0], allocations[1]);
}
END_TEST
#endif

int main(void)
{
    Suite *suite = suite_create("run-random");
    TCase *tests = tcase_create("run-random");
    tcase_add_test(tests, programs_against_the_reference);
    tcase_add_test(tests, runs_of_many_tasks);
    tcase_add_test(tests, misuse_trips_asserts);
#ifdef NJ_COUNTS_ALLOCATIONS
    tcase_add_test(tests, no_allocation_in_a_run);
#endif
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
