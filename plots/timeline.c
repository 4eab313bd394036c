// SPDX-License-Identifier: MIT
// Stages as rows, instructions as blocks; or, zoomed in, the three threads of a part of one instruction.
#include "plots/plot.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

typedef struct {
    guint stage;
    char kind; // F, B, or R (gradient reduction) or O (optimizer's step), which end the iteration
    guint microbatch;
    NjTime start, end;
    double power_w;
    gboolean critical;
} Block;

typedef struct {
    const NjPipeline *pipeline;
    double static_w;
    GArray *blocks;     // Block, by task
    GArray *spans;      // NjSpan of the zoomed task
    GPtrArray *kernels; // NjKernel * of the spans, copied: a run's own end with it
    guint32 zoomed;     // task, or G_MAXUINT32
    NjTime zoomed_start;
} Collected;

static void on_task(gpointer user, guint32 task, const NjTaskResult *result)
{
    Collected *all = user;
    const guint n = all->pipeline->instructions->len, n_stages = all->pipeline->n_stages;
    Block block = {.start = result->start, .end = result->end};
    if (task < n) {
        const NjInstruction *instruction = nj_pipeline_instruction(all->pipeline, task);
        block.stage = instruction->stage;
        block.kind = nj_instruction_kind_letter(instruction->kind);
        block.microbatch = instruction->microbatch;
    } else {
        block.stage = (task - n) % n_stages;
        block.kind = task - n < n_stages ? 'R' : 'O';
    }
    const double seconds = (double)(result->end - result->start) / NJ_PS_PER_S;
    block.power_w = all->static_w + (seconds > 0 ? nj_task_record_dynamic_j(&result->record) / seconds : 0.0);
    if (task >= all->blocks->len)
        g_array_set_size(all->blocks, task + 1);
    g_array_index(all->blocks, Block, task) = block;
    if (task == all->zoomed)
        all->zoomed_start = result->start;
}

static void on_span(gpointer user, const NjSpan *span)
{
    Collected *all = user;
    if (span->task != all->zoomed)
        return;
    NjSpan kept = *span;
    kept.kernel = g_memdup2(span->kernel, sizeof *span->kernel);
    g_ptr_array_add(all->kernels, (gpointer)kept.kernel);
    g_array_append_val(all->spans, kept);
}

static Block *block_at(const Collected *all, guint i)
{
    return &g_array_index(all->blocks, Block, i);
}

// What the last instruction waited for, step by step back to the start: the one before it on its stage where
// that ended just then, else the one of another stage that ended last.
static void mark_critical_path(Collected *all)
{
    guint at = 0;
    for (guint i = 1; i < all->blocks->len; i++)
        if (block_at(all, i)->end > block_at(all, at)->end)
            at = i;
    for (;;) {
        const Block *block = block_at(all, at);
        block_at(all, at)->critical = TRUE;
        guint next = G_MAXUINT;
        for (guint i = 0; i < all->blocks->len && next == G_MAXUINT; i++)
            if (i != at && block_at(all, i)->stage == block->stage && block_at(all, i)->end == block->start)
                next = i;
        for (guint i = 0; i < all->pipeline->dependencies->len && next == G_MAXUINT; i++) {
            const NjDependency *d = &g_array_index(all->pipeline->dependencies, NjDependency, i);
            if (d->to == at && block->start > 0)
                next = d->from;
        }
        if (next == G_MAXUINT)
            return;
        at = next;
    }
}

static double seconds(NjTime time)
{
    return (double)time / NJ_PS_PER_S;
}

static int compare_starts(gconstpointer a, gconstpointer b)
{
    const Block *x = a, *y = b;
    return x->stage != y->stage ? (x->stage < y->stage ? -1 : 1)
                                : (x->start > y->start) - (x->start < y->start);
}

static void add_waiting(NjFigure *figure, guint stage, NjTime start, NjTime end)
{
    if (end <= start)
        return;
    nj_figure_add_integer(figure, (int)stage);
    nj_figure_add_real(figure, seconds(start));
    nj_figure_add_real(figure, seconds(end));
    nj_figure_end_row(figure);
}

static void fill_stages(const Collected *all, const NjIteration *iteration, NjFigure *figure)
{
    double low_w = HUGE_VAL, high_w = 0;
    g_autoptr(GArray) blocks = g_array_copy(all->blocks);
    g_array_sort(blocks, compare_starts);
    for (guint i = 0; i < blocks->len; i++) {
        low_w = fmin(low_w, g_array_index(blocks, Block, i).power_w);
        high_w = fmax(high_w, g_array_index(blocks, Block, i).power_w);
    }
    if (high_w - low_w < 10) { // equal powers are not worth the whole palette
        low_w -= 5;
        high_w += 5;
    }
    nj_figure_begin_block(figure, "blocks",
                          "stage start_s end_s kind microbatch power_w critical label bright");
    for (guint i = 0; i < blocks->len; i++) {
        const Block *block = &g_array_index(blocks, Block, i);
        // A digit is some 8 pixels wide, the plot about 0.85 of the figure.
        const double pixels =
            seconds(block->end - block->start) / seconds(iteration->duration) * 0.85 * figure->width;
        g_autofree char *label = block->kind == 'R' || block->kind == 'O'
                                     ? g_strdup_printf("%c", block->kind)
                                     : g_strdup_printf("%u", block->microbatch);
        nj_figure_add_integer(figure, (int)block->stage);
        nj_figure_add_real(figure, seconds(block->start));
        nj_figure_add_real(figure, seconds(block->end));
        nj_figure_add_text(figure, (const char[]){block->kind, '\0'});
        nj_figure_add_integer(figure, (int)block->microbatch);
        nj_figure_add_real(figure, block->power_w);
        nj_figure_add_integer(figure, block->critical);
        nj_figure_add_text(figure, pixels > 8.0 * (double)strlen(label) + 2 ? label : "");
        nj_figure_add_integer(figure, (block->power_w - low_w) / (high_w - low_w) > 0.5);
        nj_figure_end_row(figure);
    }
    nj_figure_end_block(figure);
    nj_figure_begin_block(figure, "waiting", "stage start_s end_s");
    for (guint i = 0; i < blocks->len; i++) {
        const Block *block = &g_array_index(blocks, Block, i);
        const Block *before = i > 0 ? block - 1 : NULL;
        const gboolean first = before == NULL || before->stage != block->stage;
        if (first && before != NULL)
            add_waiting(figure, before->stage, before->end, iteration->duration);
        add_waiting(figure, block->stage, first ? 0 : before->end, block->start);
        if (i + 1 == blocks->len)
            add_waiting(figure, block->stage, block->end, iteration->duration);
    }
    nj_figure_end_block(figure);
    nj_figure_set_real(figure, "power_low", floor(low_w));
    nj_figure_set_real(figure, "power_high", ceil(high_w));
}

// "0:F3": stage, then the instruction as the blocks are numbered.
static gboolean find_zoomed(const NjScenario *scenario, const char *zoom, guint32 *task, GError **error)
{
    g_auto(NjPipeline) pipeline = {0};
    nj_pipeline_init(&pipeline, scenario->schedule, (guint)scenario->workload.parallelism.pp,
                     (guint)scenario->workload.microbatches);
    *task = G_MAXUINT32;
    for (guint i = 0; i < pipeline.instructions->len && *task == G_MAXUINT32; i++) {
        const NjInstruction *instruction = nj_pipeline_instruction(&pipeline, i);
        g_autofree char *name =
            g_strdup_printf("%u:%c%u", instruction->stage, nj_instruction_kind_letter(instruction->kind),
                            instruction->microbatch);
        if (g_ascii_strcasecmp(name, zoom) == 0)
            *task = i;
    }
    if (*task != G_MAXUINT32)
        return TRUE;
    g_set_error(
        error, NJ_ERROR, NJ_ERROR_USAGE,
        "--zoom %s: a stage, then F or B and a microbatch, such as 0:F3, is needed; stages are 0 to %u, "
        "microbatches 0 to %u",
        zoom, pipeline.n_stages - 1, pipeline.n_microbatches - 1);
    return FALSE;
}

// The part shown: about a layer from the middle, so that names are legible.
static void choose_window(const Collected *all, NjTime *from, NjTime *to)
{
    enum { SHOWN = 24 };
    g_autoptr(GArray) begins = g_array_new(FALSE, FALSE, sizeof(NjTime));
    for (guint i = 0; i < all->spans->len; i++) {
        const NjSpan *span = &g_array_index(all->spans, NjSpan, i);
        if (span->stream == NJ_STREAM_COMPUTE)
            g_array_append_val(begins, span->begun);
    }
    const guint n = begins->len;
    guint first = n / 2;
    // A kernel of the same name as the first norm starts a block.
    for (guint i = 0, at = 0; i < all->spans->len; i++) {
        const NjSpan *span = &g_array_index(all->spans, NjSpan, i);
        if (span->stream != NJ_STREAM_COMPUTE)
            continue;
        if (at >= n / 2 && strstr(span->kernel->name, "norm") != NULL) {
            first = at;
            break;
        }
        at++;
    }
    *from = g_array_index(begins, NjTime, MIN(first, n - 1));
    *to = g_array_index(begins, NjTime, MIN(first + SHOWN, n - 1));
    if (*to <= *from) {
        *from = g_array_index(begins, NjTime, 0);
        *to = g_array_index(all->spans, NjSpan, all->spans->len - 1).ended;
    }
}

static double milliseconds(NjTime time, NjTime from)
{
    return (double)(time - from) / (NJ_PS_PER_S / 1e3);
}

static void add_piece(NjFigure *figure, int row, NjTime start, NjTime end, const NjSpan *span, NjTime from,
                      NjTime to, NjTime origin)
{
    // Held inside the window, so that the label stands in the middle of what is seen.
    const NjTime a = MAX(start, from), b = MIN(end, to);
    if (b <= a)
        return;
    const double pixels = (double)(b - a) / (double)(to - from) * 0.85 * figure->width;
    g_autofree char *label = g_strdup(row > 0 ? span->kernel->name : "");
    const double text = 7.0 * (double)strlen(label);
    nj_figure_add_integer(figure, row);
    nj_figure_add_real(figure, milliseconds(a, origin));
    nj_figure_add_real(figure, milliseconds(b, origin));
    nj_figure_add_integer(figure, (int)span->kernel->kind);
    nj_figure_add_real(figure, row == 2 ? span->sms : span->mean_sms);
    nj_figure_add_text(figure, span->kernel->name);
    // Along the box, across it (a box of the communication row is too low for that), or not at all.
    nj_figure_add_text(figure, pixels > text + 2 || (row == 1 && pixels > 14) ? label : "");
    nj_figure_add_integer(figure, pixels > text + 2 ? 0 : 90);
    nj_figure_end_row(figure);
}

static void fill_zoom(const Collected *all, NjFigure *figure)
{
    NjTime from, to;
    choose_window(all, &from, &to);
    const NjTime origin = all->zoomed_start;
    guint most_sms = 1;
    nj_figure_begin_block(figure, "spans", "row start_ms end_ms kind sms name label angle");
    for (guint i = 0; i < all->spans->len; i++) {
        const NjSpan *span = &g_array_index(all->spans, NjSpan, i);
        const gboolean collective = span->stream == NJ_STREAM_COMMUNICATION;
        most_sms = MAX(most_sms, span->sms);
        add_piece(figure, 0, span->dispatching, span->dispatched, span, from, to, origin);
        add_piece(figure, collective ? 2 : 1, collective ? span->issued : span->begun, span->ended, span,
                  from, to, origin);
    }
    nj_figure_end_block(figure);
    nj_figure_set_integer(figure, "most_sms", (int)most_sms);
    nj_figure_set_real(figure, "from_ms", milliseconds(from, origin));
    nj_figure_set_real(figure, "to_ms", milliseconds(to, origin));
}

static gboolean build(NjPlotInput *input, const NjPlotOptions *options, NjFigure *figure, GError **error)
{
    const NjScenario *scenario = &input->scenario;
    g_auto(NjPipeline) pipeline = {0};
    g_auto(NjPlan) plan = {0};
    g_autoptr(GArray) blocks = g_array_new(FALSE, TRUE, sizeof(Block));
    g_autoptr(GArray) spans = g_array_new(FALSE, TRUE, sizeof(NjSpan));
    g_autoptr(GPtrArray) kernels = g_ptr_array_new_with_free_func(g_free);
    NjIteration iteration;
    Collected all = {&pipeline, scenario->workload.gpu.static_w, blocks, spans, kernels, G_MAXUINT32, 0};
    const NjObserver observer = {NULL, on_span, on_task, &all};
    if ((options->zoom != NULL && !find_zoomed(scenario, options->zoom, &all.zoomed, error)) ||
        !nj_plot_run(scenario, options, &observer, &pipeline, &plan, &iteration, error))
        return FALSE;
    g_autofree char *title = nj_plot_title(&scenario->workload);
    NjMethod method;
    nj_method_parse(nj_plot_shown_method(scenario, options), &method);
    g_autofree char *full =
        options->zoom != NULL
            ? g_strdup_printf("%s: %s, a part of %s", nj_plot_method_title(method), title, options->zoom)
            : g_strdup_printf("%s: %s", nj_plot_method_title(method), title);
    nj_figure_set_text(figure, "plot_title", full);
    nj_figure_set_integer(figure, "zoomed", options->zoom != NULL);
    nj_figure_set_integer(figure, "n_stages", (int)pipeline.n_stages);
    nj_figure_set_integer(figure, "sm_count", scenario->workload.gpu.sm_count);
    nj_figure_set_real(figure, "duration_s", seconds(iteration.duration));
    if (options->zoom != NULL) {
        figure->height = 520;
        fill_zoom(&all, figure);
    } else {
        figure->height = 170 + 70 * (int)pipeline.n_stages;
        mark_critical_path(&all);
        fill_stages(&all, &iteration, figure);
    }
    return TRUE;
}

const NjPlotKind nj_plot_timeline = {
    .name = "timeline",
    .summary = "stages as rows, instructions as blocks; with --zoom the kernels of one",
    .reads = {[NJ_INPUT_SCENARIO] = TRUE},
    .build = build,
};
