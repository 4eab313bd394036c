// SPDX-License-Identifier: MIT
#include "sim/run.h"

#include <math.h>
#include <string.h>

typedef enum {
    EVENT_TASK,   // a delayed dependency of a task is met; subject: task
    EVENT_STREAM, // a stream's wait, latency or work is over; subject: device * NJ_N_STREAMS + stream
} EventKind;

typedef enum {
    STREAM_WAITING, // for the other stream, or for more operations
    STREAM_HOST,    // for the host's dispatch
    STREAM_LATENCY,
    STREAM_WORK,
} StreamState;

typedef struct {
    StreamState state;
    guint n_begun, n_ended; // operations of the program; the current one is n_ended
    NjEventId event;        // pending in every state but WAITING
    const NjKernel *kernel; // of the current operation, from LATENCY on
    double remaining;       // of the work, 1..0
    double rate_per_ps;
    double energy_j; // of the whole kernel at the task's clock
    NjTime issued, begun;
    double overhead_j, sm_ps; // of the current operation; kept for observers only
} Stream;

typedef struct {
    const NjDeviceSpec *spec;
    NjClock clock;
    const NjTask *task; // running, or NULL
    const NjProgram *program;
    NjTime task_start, last_change;
    Stream streams[NJ_N_STREAMS];
    NjTaskRecord record;
    guint32 *queue; // [n_queue] tasks of this device in order
    guint n_queue, next_task;
} Device;

typedef struct {
    const NjRunInput *input;
    const NjObserver *observer;
    NjTaskResult *results;
    NjEngine engine;
    Device *devices;
    guint *unmet;       // [n_tasks] dependencies still open
    guint *first_edge;  // [n_tasks + 1] into out_edges
    guint32 *out_edges; // edge indices sorted by from
    guint32 *queue_space;
    guint n_ended;
} Run;

double nj_task_record_dynamic_j(const NjTaskRecord *record)
{
    double sum = 0;
    for (guint i = 0; i < NJ_N_KERNEL_KINDS; i++)
        sum += record->energy_j[i];
    return sum;
}

static NjTime to_ps(double seconds)
{
    return (NjTime)llround(seconds * NJ_PS_PER_S);
}

static const NjOp *current_op(const Device *device, NjStream which)
{
    const GArray *ops = device->program->ops[which];
    const guint at = device->streams[which].n_ended;
    return at < ops->len ? &g_array_index(ops, NjOp, at) : NULL;
}

static void observe_interval(Run *run, const Device *device, double dynamic_w)
{
    const NjObserver *observer = run->observer;
    const NjTime now = run->engine.now;
    if (observer == NULL || observer->interval == NULL || now == device->last_change)
        return;
    NjInterval interval = {
        .device = (guint32)(device - run->devices),
        .start = device->last_change,
        .end = now,
        .power_w = device->spec->static_w + dynamic_w,
        .freq_mhz = device->task != NULL ? device->task->freq_mhz : 0.0,
    };
    for (guint i = 0; device->task != NULL && i < NJ_N_STREAMS; i++) {
        const Stream *stream = &device->streams[i];
        if (stream->state != STREAM_WORK)
            continue;
        const double rate_per_s = stream->rate_per_ps * NJ_PS_PER_S;
        interval.sm_use += rate_per_s * stream->kernel->sm_s / device->clock.sm_rate;
        interval.hbm_use += rate_per_s * stream->kernel->hbm_s / device->clock.hbm_rate;
        interval.link_use += rate_per_s * stream->kernel->link_s / device->clock.link_rate;
        interval.sm_use += current_op(device, i)->sms / device->spec->sm_count;
    }
    observer->interval(observer->user, &interval);
}

// What a span tells beyond its operation's own work.
static void book_span(Device *device, NjTime dt, gboolean computing, gboolean communicating, double spin_j)
{
    Stream *compute = &device->streams[NJ_STREAM_COMPUTE], *comm = &device->streams[NJ_STREAM_COMMUNICATION];
    const double dt_s = (double)dt / NJ_PS_PER_S;
    const double held = communicating ? current_op(device, NJ_STREAM_COMMUNICATION)->sms : 0.0;
    if (computing)
        compute->sm_ps += (device->spec->sm_count - held) * (double)dt;
    if (comm->state == STREAM_WORK)
        comm->sm_ps += held * (double)dt;
    if (computing || communicating)
        (computing ? compute : comm)->overhead_j += dt_s * device->clock.clock_w;
    comm->overhead_j += spin_j;
}

// Books what happened on a device since the last change, during which nothing changed.
static void close_interval(Run *run, Device *device)
{
    const NjTime dt = run->engine.now - device->last_change;
    if (dt == 0)
        return;
    if (device->task == NULL || device->task->known != NULL) {
        const NjTaskRecord *known = device->task != NULL ? device->task->known : NULL;
        const double dynamic_w = known != NULL ? nj_task_record_dynamic_j(known) / ((double)dt / NJ_PS_PER_S)
                                               : device->spec->waiting_w;
        observe_interval(run, device, dynamic_w);
        device->last_change = run->engine.now;
        return;
    }

    NjTaskRecord *record = &device->record;
    const Stream *compute = &device->streams[NJ_STREAM_COMPUTE];
    const Stream *comm = &device->streams[NJ_STREAM_COMMUNICATION];
    const gboolean computing = compute->state == STREAM_WORK;
    const gboolean communicating = comm->state == STREAM_WORK || comm->state == STREAM_LATENCY;
    const double dt_s = (double)dt / NJ_PS_PER_S;
    double interval_j = 0, spin_j = 0;

    for (guint i = 0; i < NJ_N_STREAMS; i++) {
        Stream *stream = &device->streams[i];
        if (stream->state != STREAM_WORK)
            continue;
        const double progress = fmin(stream->rate_per_ps * (double)dt, stream->remaining);
        stream->remaining -= progress;
        record->energy_j[stream->kernel->kind] += progress * stream->energy_j;
        interval_j += progress * stream->energy_j;
    }
    if (computing || communicating) {
        const NjKernelKind kind = computing ? compute->kernel->kind : comm->kernel->kind;
        record->energy_j[kind] += dt_s * device->clock.clock_w;
        interval_j += dt_s * device->clock.clock_w;
    }
    if (communicating) {
        spin_j = dt_s * device->clock.collective_sm_w * current_op(device, NJ_STREAM_COMMUNICATION)->sms;
        record->energy_j[NJ_KERNEL_COLLECTIVE] += spin_j;
        interval_j += spin_j;
    }
    const NjActivity activity = computing       ? (NjActivity)compute->kernel->kind
                                : communicating ? NJ_ACTIVITY_COLLECTIVE
                                                : NJ_ACTIVITY_GAP;
    record->activity[activity] += dt;
    if (computing && communicating)
        record->overlapped += dt;
    if (run->observer != NULL)
        book_span(device, dt, computing, communicating, spin_j);
    record->peak_w = fmax(record->peak_w, device->spec->static_w + interval_j / dt_s);
    observe_interval(run, device, interval_j / dt_s);
    device->last_change = run->engine.now;
}

static void set_timer(Run *run, Device *device, NjStream which, StreamState state, NjTime at)
{
    const guint32 subject = (guint32)(device - run->devices) * NJ_N_STREAMS + which;
    device->streams[which].state = state;
    device->streams[which].event = nj_engine_schedule(&run->engine, at, 1, EVENT_STREAM, subject);
}

static void begin_work(Run *run, Device *device, NjStream which)
{
    Stream *stream = &device->streams[which];
    stream->state = STREAM_WORK;
    stream->event = NJ_NO_EVENT;
    stream->remaining = 1.0;
    stream->rate_per_ps = 0.0;
    stream->energy_j = nj_kernel_energy_j(stream->kernel, &device->clock);
    stream->begun = run->engine.now;
    stream->n_begun++;
    device->record.flop += stream->kernel->flop;
    device->record.hbm_bytes += stream->kernel->hbm_bytes;
    device->record.link_bytes += stream->kernel->link_bytes;
}

static void end_work(Run *run, Device *device, NjStream which)
{
    Stream *stream = &device->streams[which];
    const NjObserver *observer = run->observer;
    if (observer != NULL && observer->span != NULL) {
        const NjOp *op = current_op(device, which);
        const NjSpan span = {
            .device = (guint32)(device - run->devices),
            .task = (guint32)(device->task - run->input->tasks),
            .stream = which,
            .kernel = stream->kernel,
            .sms = op->sms,
            .freq_mhz = device->clock.freq_mhz,
            .dispatching = device->task_start + op->dispatched - (NjTime)op->dispatch_ns * 1000,
            .dispatched = device->task_start + op->dispatched,
            .issued = stream->issued,
            .begun = stream->begun,
            .ended = run->engine.now,
            .energy_j = stream->energy_j,
            .overhead_j = stream->overhead_j,
            .mean_sms = run->engine.now > stream->begun
                            ? stream->sm_ps / (double)(run->engine.now - stream->begun)
                            : op->sms,
        };
        observer->span(observer->user, &span);
    }
    stream->state = STREAM_WAITING;
    stream->n_ended++;
}

// Starts a stream's next operation if all it waits for is there. TRUE when it began to work at once.
static gboolean issue(Run *run, Device *device, NjStream which)
{
    Stream *stream = &device->streams[which];
    const Stream *other =
        &device->streams[which == NJ_STREAM_COMPUTE ? NJ_STREAM_COMMUNICATION : NJ_STREAM_COMPUTE];
    const NjOp *op = stream->state == STREAM_WAITING ? current_op(device, which) : NULL;
    if (op == NULL || other->n_ended < op->after_other || other->n_begun < op->with_other)
        return FALSE;
    const NjTime now = run->engine.now;
    const NjTime dispatched = device->task_start + op->dispatched;
    if (dispatched > now) {
        set_timer(run, device, which, STREAM_HOST, dispatched);
        return FALSE;
    }
    stream->kernel = &g_array_index(device->program->kernels, NjKernel, op->kernel);
    stream->issued = now;
    stream->overhead_j = stream->sm_ps = 0.0;
    const NjTime latency = to_ps(stream->kernel->latency_s);
    if (latency > 0) {
        set_timer(run, device, which, STREAM_LATENCY, now + latency);
        return FALSE;
    }
    begin_work(run, device, which);
    return TRUE;
}

// Gives every working kernel the rate that the present company leaves it.
static void set_rates(Run *run, Device *device)
{
    Stream *compute = &device->streams[NJ_STREAM_COMPUTE];
    Stream *comm = &device->streams[NJ_STREAM_COMMUNICATION];
    const gboolean holds = comm->state == STREAM_WORK || comm->state == STREAM_LATENCY;
    const double sms = holds ? current_op(device, NJ_STREAM_COMMUNICATION)->sms : 0;
    const NjRates rates =
        nj_device_rates(device->spec, &device->clock, compute->state == STREAM_WORK ? compute->kernel : NULL,
                        holds ? comm->kernel : NULL, sms, comm->state == STREAM_LATENCY);
    const double per_s[NJ_N_STREAMS] = {rates.compute_per_s, rates.collective_per_s};

    for (guint i = 0; i < NJ_N_STREAMS; i++) {
        Stream *stream = &device->streams[i];
        if (stream->state != STREAM_WORK)
            continue;
        stream->rate_per_ps = per_s[i] / NJ_PS_PER_S;
        // A kernel without any work ends at once.
        const double left_ps =
            isfinite(stream->rate_per_ps) ? ceil(stream->remaining / stream->rate_per_ps) : 0.0;
        g_assert(left_ps < (double)NJ_TIME_MAX / 2);
        const NjTime at = run->engine.now + (NjTime)left_ps;
        if (stream->event == NJ_NO_EVENT)
            set_timer(run, device, i, STREAM_WORK, at);
        else
            nj_engine_reschedule(&run->engine, stream->event, at);
    }
}

static void start_task(Run *run, Device *device);

static void meet_dependency(Run *run, guint32 task)
{
    g_assert(run->unmet[task] > 0);
    if (--run->unmet[task] == 0)
        start_task(run, &run->devices[run->input->tasks[task].device]);
}

static void end_task(Run *run, Device *device)
{
    const guint32 task = (guint32)(device->task - run->input->tasks);
    const NjTime now = run->engine.now;
    NjTaskResult *result = &run->results[task];
    if (device->task->known != NULL)
        device->record = *device->task->known;
    device->record.duration = now - device->task_start;
    *result = (NjTaskResult){device->task_start, now, device->record};
    device->task = NULL;
    run->n_ended++;
    if (run->observer != NULL && run->observer->task != NULL)
        run->observer->task(run->observer->user, task, result);

    for (guint i = run->first_edge[task]; i < run->first_edge[task + 1]; i++) {
        const NjEdge *edge = &run->input->edges[run->out_edges[i]];
        if (edge->delay > 0)
            nj_engine_schedule(&run->engine, now + edge->delay, 0, EVENT_TASK, edge->to);
        else
            meet_dependency(run, edge->to);
    }
    start_task(run, device);
}

// Moves a device on after something on it has changed.
static void advance(Run *run, Device *device)
{
    while (issue(run, device, NJ_STREAM_COMPUTE) || issue(run, device, NJ_STREAM_COMMUNICATION))
        ;
    const Stream *streams = device->streams;
    for (guint i = 0; i < NJ_N_STREAMS; i++) {
        if (streams[i].n_ended < nj_program_n_ops(device->program, i)) {
            set_rates(run, device);
            return;
        }
    }
    end_task(run, device);
}

// Starts the device's next task if the device is free and the task may start.
static void start_task(Run *run, Device *device)
{
    if (device->task != NULL || device->next_task == device->n_queue)
        return;
    const guint32 task = device->queue[device->next_task];
    if (run->unmet[task] > 0)
        return;
    close_interval(run, device);
    device->next_task++;
    device->task = &run->input->tasks[task];
    device->program = &run->input->programs[device->task->program];
    device->task_start = run->engine.now;
    device->record = (NjTaskRecord){0};
    memset(device->streams, 0, sizeof device->streams);
    if (device->task->known != NULL) {
        const guint32 subject = (guint32)(device - run->devices) * NJ_N_STREAMS;
        nj_engine_schedule(&run->engine, run->engine.now + device->task->known->duration, 1, EVENT_STREAM,
                           subject);
        return;
    }
    device->clock = nj_clock_at(device->spec, device->task->freq_mhz);
    advance(run, device);
}

static void on_stream_event(Run *run, guint32 subject)
{
    Device *device = &run->devices[subject / NJ_N_STREAMS];
    const NjStream which = subject % NJ_N_STREAMS;
    close_interval(run, device);
    if (device->task->known != NULL) {
        end_task(run, device);
        return;
    }
    switch (device->streams[which].state) {
    case STREAM_HOST:
        device->streams[which].state = STREAM_WAITING;
        break;
    case STREAM_LATENCY:
        begin_work(run, device, which);
        break;
    case STREAM_WORK:
        end_work(run, device, which);
        break;
    case STREAM_WAITING:
        g_assert_not_reached();
    }
    advance(run, device);
}

static void index_edges(Run *run)
{
    const NjRunInput *input = run->input;
    run->unmet = g_new0(guint, input->n_tasks);
    run->first_edge = g_new0(guint, input->n_tasks + 1);
    run->out_edges = g_new(guint32, input->n_edges);
    for (guint i = 0; i < input->n_edges; i++) {
        g_assert(input->edges[i].from < input->n_tasks && input->edges[i].to < input->n_tasks);
        run->unmet[input->edges[i].to]++;
        run->first_edge[input->edges[i].from + 1]++;
    }
    for (guint i = 0; i < input->n_tasks; i++)
        run->first_edge[i + 1] += run->first_edge[i];
    g_autofree guint *fill = g_memdup2(run->first_edge, input->n_tasks * sizeof *fill);
    for (guint i = 0; i < input->n_edges; i++)
        run->out_edges[fill[input->edges[i].from]++] = i;
}

static void queue_tasks(Run *run)
{
    const NjRunInput *input = run->input;
    run->devices = g_new0(Device, input->n_devices);
    run->queue_space = g_new(guint32, input->n_tasks);
    for (guint i = 0; i < input->n_tasks; i++) {
        g_assert(input->tasks[i].device < input->n_devices && input->tasks[i].program < input->n_programs);
        run->devices[input->tasks[i].device].n_queue++;
    }
    guint32 *space = run->queue_space;
    for (guint i = 0; i < input->n_devices; i++) {
        run->devices[i].spec = &input->specs[i];
        run->devices[i].queue = space;
        space += run->devices[i].n_queue;
        run->devices[i].n_queue = 0;
    }
    for (guint i = 0; i < input->n_tasks; i++) {
        Device *device = &run->devices[input->tasks[i].device];
        device->queue[device->n_queue++] = i;
    }
}

NjTime nj_run(const NjRunInput *input, const NjObserver *observer, NjTaskResult *results)
{
    Run run = {.input = input, .observer = observer, .results = results};
    index_edges(&run);
    queue_tasks(&run);
    nj_engine_init(&run.engine, input->n_devices * NJ_N_STREAMS + input->n_edges + 1);

    for (guint i = 0; i < input->n_devices; i++)
        start_task(&run, &run.devices[i]);
    NjEvent event;
    while (nj_engine_next(&run.engine, &event)) {
        switch ((EventKind)event.kind) {
        case EVENT_TASK:
            meet_dependency(&run, event.subject);
            break;
        case EVENT_STREAM:
            on_stream_event(&run, event.subject);
            break;
        }
    }
    g_assert(run.n_ended == input->n_tasks);
    const NjTime end = run.engine.now;
    for (guint i = 0; i < input->n_devices; i++)
        close_interval(&run, &run.devices[i]); // the wait for the other devices' last tasks

    nj_engine_clear(&run.engine);
    g_free(run.devices);
    g_free(run.queue_space);
    g_free(run.unmet);
    g_free(run.first_edge);
    g_free(run.out_edges);
    return end;
}

void nj_run_alone(const NjDeviceSpec *spec, const NjProgram *program, double freq_mhz, NjTaskRecord *record)
{
    const NjTask task = {.freq_mhz = freq_mhz};
    NjTaskResult result;
    nj_run(&(NjRunInput){.specs = spec,
                         .n_devices = 1,
                         .programs = program,
                         .n_programs = 1,
                         .tasks = &task,
                         .n_tasks = 1},
           NULL, &result);
    *record = result.record;
}
