// SPDX-License-Identifier: MIT
#include "scenarios/trace.h"

#include "scenarios/store.h"
#include "sim/error.h"

#include <gio/gio.h>
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <math.h>

#define BUFFER_BYTES (1 << 16)

enum { THREAD_HOST = 1, THREAD_COMPUTE, THREAD_COMMUNICATION };
enum { COUNTER_POWER, COUNTER_CLOCK, COUNTER_SM, COUNTER_HBM, N_COUNTERS };

static const struct {
    const char *name, *unit;
} counters[N_COUNTERS] = {
    [COUNTER_POWER] = {"power", "W"},
    [COUNTER_CLOCK] = {"clock", "MHz"},
    [COUNTER_SM] = {"SM use", "%"},
    [COUNTER_HBM] = {"HBM use", "%"},
};

// Where flows from an instruction leave: its operation that ended last.
typedef struct {
    NjTime begun; // -1: none was written
    guint8 thread;
} Source;

typedef struct {
    double values[N_COUNTERS];
} Counts;

struct NjTrace {
    const NjScenario *scenario;
    const NjPipeline *pipeline;
    char *path, *part;
    GOutputStream *stream;
    GString *buffer;
    GError *error; // the first
    gboolean has_part, has_event;
    NjTime from, to;
    NjObserver observer;
    Source *sources;       // [n_instructions]
    gboolean *begun;       // [n_instructions] an operation of it has been written
    guint *first_incoming; // [n_instructions + 1] into incoming
    guint *incoming;       // indices of dependencies between stages, sorted by `to`
    Counts *shown;         // [n_stages] last value of every counter
};

static void flush(NjTrace *trace)
{
    if (trace->error == NULL)
        g_output_stream_write_all(trace->stream, trace->buffer->str, trace->buffer->len, NULL, NULL,
                                  &trace->error);
    g_string_truncate(trace->buffer, 0);
}

static gboolean outside(const NjTrace *trace, NjTime start, NjTime end)
{
    return end <= trace->from || start >= trace->to;
}

static void append_us(GString *out, NjTime time)
{
    g_string_append_printf(out, "%" G_GINT64_FORMAT ".%06" G_GINT64_FORMAT, time / 1000000, time % 1000000);
}

// Begins an event; the caller goes on with ',' and more members, and ends with end_event().
static GString *begin_event(NjTrace *trace, char phase, guint stage, guint thread, NjTime at)
{
    if (trace->buffer->len > BUFFER_BYTES)
        flush(trace);
    g_string_append_printf(trace->buffer,
                           "%s{\"ph\":\"%c\",\"pid\":%u,\"tid\":%u,\"ts\":", trace->has_event ? ",\n" : "",
                           phase, stage, thread);
    append_us(trace->buffer, at);
    trace->has_event = TRUE;
    return trace->buffer;
}

static void end_event(NjTrace *trace)
{
    g_string_append_c(trace->buffer, '}');
}

static GString *begin_slice(NjTrace *trace, guint stage, guint thread, NjTime start, NjTime end)
{
    GString *out = begin_event(trace, 'X', stage, thread, start);
    g_string_append(out, ",\"dur\":");
    append_us(out, end - start);
    return out;
}

static void write_flows(NjTrace *trace, const NjSpan *span, guint thread)
{
    for (guint i = trace->first_incoming[span->task]; i < trace->first_incoming[span->task + 1]; i++) {
        const guint id = trace->incoming[i];
        const guint from = g_array_index(trace->pipeline->dependencies, NjDependency, id).from;
        const NjInstruction *instruction = nj_pipeline_instruction(trace->pipeline, from);
        const Source *source = &trace->sources[from];
        if (source->begun < 0)
            continue;
        const char *name = instruction->kind == NJ_FORWARD ? "activations" : "gradients";
        GString *out = begin_event(trace, 's', instruction->stage, source->thread, source->begun);
        g_string_append_printf(out, ",\"cat\":\"transfer\",\"name\":\"%s\",\"id\":%u", name, id);
        end_event(trace);
        out = begin_event(trace, 'f', span->device, thread, span->begun);
        g_string_append_printf(out, ",\"bp\":\"e\",\"cat\":\"transfer\",\"name\":\"%s\",\"id\":%u", name, id);
        end_event(trace);
    }
}

static void on_span(gpointer user, const NjSpan *span)
{
    static const char *const kinds[NJ_N_KERNEL_KINDS] = {
        [NJ_KERNEL_GEMM] = "gemm",
        [NJ_KERNEL_ATTENTION] = "attention",
        [NJ_KERNEL_MEMORY] = "hbm_bound",
        [NJ_KERNEL_COLLECTIVE] = "collective",
    };
    NjTrace *trace = user;
    const NjKernel *kernel = span->kernel;
    const gboolean is_collective = span->stream == NJ_STREAM_COMMUNICATION;
    const guint thread = is_collective ? THREAD_COMMUNICATION : THREAD_COMPUTE;
    const NjTime start = is_collective ? span->issued : span->begun;

    if (!outside(trace, span->dispatching, span->dispatched)) {
        GString *out = begin_slice(trace, span->device, THREAD_HOST, span->dispatching, span->dispatched);
        g_string_append_printf(out, ",\"cat\":\"host\",\"name\":\"%s\"", kernel->name);
        end_event(trace);
    }
    if (outside(trace, start, span->ended))
        return;
    GString *out = begin_slice(trace, span->device, thread, start, span->ended);
    g_string_append_printf(
        out,
        ",\"cat\":\"%s\",\"name\":\"%s\",\"args\":{\"flop\":%.9g,\"hbm_bytes\":%.9g,\"link_bytes\":%.9g,"
        "\"sms\":%.4g,\"clock_mhz\":%g,\"joules\":%.9g,\"waits_us\":",
        kinds[kernel->kind], kernel->name, kernel->flop, kernel->hbm_bytes, kernel->link_bytes,
        span->mean_sms, span->freq_mhz, span->energy_j + span->overhead_j);
    append_us(out, span->begun - span->issued);
    g_string_append_c(out, '}');
    end_event(trace);
    if (span->task >= trace->pipeline->instructions->len)
        return; // what ends the iteration depends on all stages: no flows
    if (!trace->begun[span->task]) {
        trace->begun[span->task] = TRUE;
        write_flows(trace, span, thread);
    }
    trace->sources[span->task] = (Source){span->begun, (guint8)thread};
}

static void count(NjTrace *trace, guint stage, NjTime at, const double values[N_COUNTERS])
{
    for (guint i = 0; i < N_COUNTERS; i++) {
        if (values[i] == trace->shown[stage].values[i])
            continue;
        trace->shown[stage].values[i] = values[i];
        GString *out = begin_event(trace, 'C', stage, 0, at);
        g_string_append_printf(out, ",\"name\":\"%s\",\"args\":{\"%s\":%.9g}", counters[i].name,
                               counters[i].unit, values[i]);
        end_event(trace);
    }
}

static void on_interval(gpointer user, const NjInterval *interval)
{
    NjTrace *trace = user;
    if (outside(trace, interval->start, interval->end))
        return;
    const double values[N_COUNTERS] = {
        [COUNTER_POWER] = interval->power_w,
        [COUNTER_CLOCK] = interval->freq_mhz,
        [COUNTER_SM] = 100 * fmin(interval->sm_use, 1),
        [COUNTER_HBM] = 100 * fmin(interval->hbm_use, 1),
    };
    count(trace, interval->device, interval->start, values);
    if (interval->freq_mhz > 0)
        return;
    const double dynamic_w = interval->power_w - trace->scenario->workload.gpu.static_w;
    GString *out = begin_slice(trace, interval->device, THREAD_COMPUTE, interval->start, interval->end);
    g_string_append_printf(out, ",\"cat\":\"waiting\",\"name\":\"waiting\",\"args\":{\"joules\":%.9g}",
                           fmax(dynamic_w, 0) * (double)(interval->end - interval->start) / NJ_PS_PER_S);
    end_event(trace);
}

static void on_task(gpointer user, guint32 task, const NjTaskResult *result)
{
    NjTrace *trace = user;
    const guint n = trace->pipeline->instructions->len, n_stages = trace->pipeline->n_stages;
    if (outside(trace, result->start, result->end))
        return;
    // Behind the instructions: every stage's reduction of gradients, then every stage's optimizer step.
    const NjInstruction *instruction = task < n ? nj_pipeline_instruction(trace->pipeline, task) : NULL;
    const guint stage = instruction != NULL ? instruction->stage : (task - n) % n_stages;
    GString *out = begin_slice(trace, stage, THREAD_COMPUTE, result->start, result->end);
    if (instruction != NULL)
        g_string_append_printf(
            out, ",\"cat\":\"instruction\",\"name\":\"%c%u\",\"args\":{\"kind\":\"%s\",\"microbatch\":%u",
            nj_instruction_kind_letter(instruction->kind), instruction->microbatch,
            nj_instruction_kind_name(instruction->kind), instruction->microbatch);
    else
        g_string_append_printf(out, ",\"cat\":\"instruction\",\"name\":\"%s\",\"args\":{\"kind\":\"%s\"",
                               task < n + n_stages ? "reduce gradients" : "optimizer step",
                               task < n + n_stages ? "reduction" : "optimizer");
    g_string_append_printf(out, ",\"dynamic_j\":%.9g}", nj_task_record_dynamic_j(&result->record));
    end_event(trace);
}

static void name_thread(NjTrace *trace, guint stage, guint thread, const char *name)
{
    GString *out = begin_event(trace, 'M', stage, thread, 0);
    g_string_append_printf(out, ",\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}", name);
    end_event(trace);
    out = begin_event(trace, 'M', stage, thread, 0);
    g_string_append_printf(out, ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%u}", thread);
    end_event(trace);
}

static void write_head(NjTrace *trace)
{
    const NjParallelism *p = &trace->scenario->workload.parallelism;
    g_string_append(trace->buffer, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    for (guint stage = 0; stage < trace->pipeline->n_stages; stage++) {
        GString *out = begin_event(trace, 'M', stage, 0, 0);
        g_string_append_printf(
            out, ",\"name\":\"process_name\",\"args\":{\"name\":\"stage %u (one of %d equal GPUs)\"}", stage,
            p->tp * p->cp * p->dp);
        end_event(trace);
        out = begin_event(trace, 'M', stage, 0, 0);
        g_string_append_printf(out, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%u}", stage);
        end_event(trace);
        name_thread(trace, stage, THREAD_HOST, "host");
        name_thread(trace, stage, THREAD_COMPUTE, "compute");
        name_thread(trace, stage, THREAD_COMMUNICATION, "communication");
    }
}

// Dependencies between stages by the instruction they lead to.
static void index_dependencies(NjTrace *trace)
{
    const NjPipeline *pipeline = trace->pipeline;
    const guint n = pipeline->instructions->len, n_dependencies = pipeline->dependencies->len;
    trace->first_incoming = g_new0(guint, n + 1);
    trace->incoming = g_new0(guint, n_dependencies + 1);
    for (guint pass = 0; pass < 2; pass++) {
        for (guint i = 0; i < n_dependencies; i++) {
            const NjDependency *d = &g_array_index(pipeline->dependencies, NjDependency, i);
            if (nj_pipeline_instruction(pipeline, d->from)->stage ==
                nj_pipeline_instruction(pipeline, d->to)->stage)
                continue;
            if (pass == 0)
                trace->first_incoming[d->to]++;
            else
                trace->incoming[--trace->first_incoming[d->to]] = i;
        }
        for (guint i = 1; pass == 0 && i <= n; i++)
            trace->first_incoming[i] += trace->first_incoming[i - 1];
    }
}

static GOutputStream *open_stream(NjTrace *trace, GError **error)
{
    g_autoptr(GFile) file = g_file_new_for_path(trace->part);
    g_autoptr(GFileOutputStream) plain = g_file_replace(file, NULL, FALSE, G_FILE_CREATE_NONE, NULL, error);
    if (plain == NULL)
        return NULL;
    trace->has_part = TRUE;
    if (!g_str_has_suffix(trace->path, ".gz"))
        return G_OUTPUT_STREAM(g_steal_pointer(&plain));
    g_autoptr(GZlibCompressor) gzip = g_zlib_compressor_new(G_ZLIB_COMPRESSOR_FORMAT_GZIP, -1);
    return g_converter_output_stream_new(G_OUTPUT_STREAM(plain), G_CONVERTER(gzip));
}

NjTrace *nj_trace_new(const char *path, const NjScenario *scenario, const NjPipeline *pipeline, double from_s,
                      double to_s, GError **error)
{
    if (!nj_store_check_writable(path, error))
        return NULL;
    const guint n = pipeline->instructions->len;
    g_autoptr(NjTrace) trace = g_new0(NjTrace, 1);
    trace->scenario = scenario;
    trace->pipeline = pipeline;
    trace->path = g_strdup(path);
    trace->part = g_strconcat(path, ".part", NULL);
    trace->buffer = g_string_sized_new(BUFFER_BYTES + 4096);
    trace->from = (NjTime)(from_s * NJ_PS_PER_S);
    trace->to = to_s * NJ_PS_PER_S < (double)NJ_TIME_MAX ? (NjTime)(to_s * NJ_PS_PER_S) : NJ_TIME_MAX;
    trace->observer = (NjObserver){on_interval, on_span, on_task, trace};
    trace->begun = g_new0(gboolean, n);
    trace->sources = g_new(Source, n);
    for (guint i = 0; i < n; i++)
        trace->sources[i].begun = -1;
    trace->shown = g_new0(Counts, pipeline->n_stages);
    index_dependencies(trace);
    trace->stream = open_stream(trace, error);
    if (trace->stream == NULL) {
        g_prefix_error(error, "%s: ", path);
        return NULL;
    }
    write_head(trace);
    return g_steal_pointer(&trace);
}

const NjObserver *nj_trace_observer(const NjTrace *trace)
{
    return &trace->observer;
}

static void write_tail(NjTrace *trace, const NjIteration *iteration)
{
    static const double nothing[N_COUNTERS] = {0};
    const double static_w = trace->scenario->workload.gpu.static_w;
    for (guint stage = 0; stage < trace->pipeline->n_stages; stage++)
        count(trace, stage, MIN(iteration->duration, trace->to), nothing);
    g_autofree char *name = g_path_get_basename(trace->scenario->path);
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_VALUE);
    json_node_set_string(node, name);
    g_autofree char *quoted = json_to_string(node, FALSE);
    g_string_append_printf(
        trace->buffer,
        "\n],\"otherData\":{\"program\":\"nanojoule %s\",\"scenario\":%s,\"time_s\":%.12g,\"static_w\":%.9g,"
        "\"dynamic_j\":%.9g,\"static_j\":%.9g}}\n",
        NJ_VERSION, quoted, (double)iteration->duration / NJ_PS_PER_S, static_w, iteration->dynamic_j,
        iteration->static_j);
}

gboolean nj_trace_finish(NjTrace *trace, const NjIteration *iteration, GError **error)
{
    write_tail(trace, iteration);
    flush(trace);
    if (trace->error == NULL)
        g_output_stream_close(trace->stream, NULL, &trace->error);
    if (trace->error != NULL) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "%s: cannot be written: %s", trace->path,
                    trace->error->message);
        return FALSE;
    }
    if (g_rename(trace->part, trace->path) != 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "%s: cannot be renamed from %s", trace->path,
                    trace->part);
        return FALSE;
    }
    trace->has_part = FALSE;
    return TRUE;
}

void nj_trace_free(NjTrace *trace)
{
    if (trace == NULL)
        return;
    g_clear_object(&trace->stream);
    if (trace->has_part)
        g_unlink(trace->part);
    g_clear_error(&trace->error);
    if (trace->buffer != NULL)
        g_string_free(trace->buffer, TRUE);
    g_free(trace->sources);
    g_free(trace->begun);
    g_free(trace->first_incoming);
    g_free(trace->incoming);
    g_free(trace->shown);
    g_free(trace->path);
    g_free(trace->part);
    g_free(trace);
}
