// SPDX-License-Identifier: MIT
#include "schedules/plan-files.h"

#include "schedules/python-literal.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

#define FREQS_SHAPE "[[('forward', 1410), ('backward', 1380), ...], ...]"
#define SCHEDS_SHAPE "[[('forward', 'norm_0-none-12-1024', ...), ...], ...]"

// Where a value stands: file, and for messages the stage and instruction, counted from 0.
typedef struct {
    const char *path;
    guint stage, instruction;
} Place;

static gboolean fail(const Place *place, const NjPythonValue *value, const char *needed, GError **error)
{
    g_autofree char *shown = nj_python_show(value);
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: stage %u, instruction %u: %s: %s", place->path,
                value->line, place->stage, place->instruction, shown, needed);
    return FALSE;
}

static gboolean is_sequence(const NjPythonValue *value)
{
    return value->type == NJ_PYTHON_LIST || value->type == NJ_PYTHON_TUPLE;
}

// The list of stages, each a list itself. Lists and tuples are taken for each other.
static gboolean check_stages(const char *path, const NjPythonValue *value, const char *shape, GError **error)
{
    if (!is_sequence(value)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: %s where a list of stages is needed: %s", path,
                    value->line, nj_python_type_name(value->type), shape);
        return FALSE;
    }
    for (guint s = 0; s < value->items->len; s++) {
        const NjPythonValue *stage = value->items->pdata[s];
        if (!is_sequence(stage)) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                        "%s:%u: stage %u: %s where a list of instructions is needed: %s", path, stage->line,
                        s, nj_python_type_name(stage->type), shape);
            return FALSE;
        }
    }
    return TRUE;
}

// The first item of an instruction's tuple.
static gboolean read_kind(const Place *place, const NjPythonValue *value, NjInstructionKind *kind,
                          GError **error)
{
    const NjPythonValue *name = value->items->pdata[0];
    if (name->type == NJ_PYTHON_STRING && nj_instruction_kind_parse(name->text, kind))
        return TRUE;
    return fail(place, name, "'forward' or 'backward' is needed", error);
}

static gboolean read_frequency(const Place *place, const NjPythonValue *value, guint *freq_mhz,
                               GError **error)
{
    double number = 0;
    if (value->type == NJ_PYTHON_INTEGER)
        number = (double)value->integer;
    else if (value->type == NJ_PYTHON_FLOAT && value->real == floor(value->real))
        number = value->real;
    if (number < 1 || number > G_MAXINT)
        return fail(place, value, "a frequency in whole MHz above 0 is needed, such as 1410", error);
    *freq_mhz = (guint)number;
    return TRUE;
}

static gboolean read_freqs(const char *path, const NjPythonValue *value, NjPlan *plan, GError **error)
{
    if (!check_stages(path, value, FREQS_SHAPE, error))
        return FALSE;
    for (guint s = 0; s < value->items->len; s++) {
        const NjPythonValue *stage = value->items->pdata[s];
        nj_plan_add_stage(plan);
        for (guint i = 0; i < stage->items->len; i++) {
            const Place place = {path, s, i};
            const NjPythonValue *tuple = stage->items->pdata[i];
            NjPlanInstruction instruction = {NJ_FORWARD};
            if (!is_sequence(tuple) || tuple->items->len != 2)
                return fail(&place, tuple, "a pair is needed, such as ('forward', 1410)", error);
            if (!read_kind(&place, tuple, &instruction.kind, error) ||
                !read_frequency(&place, tuple->items->pdata[1], &instruction.freq_mhz, error))
                return FALSE;
            nj_plan_append(plan, s, &instruction);
        }
    }
    return TRUE;
}

// "norm_0-none-12-1024", "sequential" or "default".
static gboolean read_launch(const char *text, NjLaunch *launch)
{
    *launch = (NjLaunch){NJ_LAUNCH_DEFAULT};
    if (g_str_equal(text, "default"))
        return TRUE;
    if (g_str_equal(text, "sequential")) {
        launch->mode = NJ_LAUNCH_SEQUENTIAL;
        return TRUE;
    }
    g_auto(GStrv) parts = g_strsplit(text, "-", 5);
    guint64 sms, threads;
    if (g_strv_length(parts) != 4 || *parts[1] == '\0' ||
        !nj_launch_kernel_parse(parts[0], &launch->kernel, &launch->index) ||
        !g_ascii_string_to_unsigned(parts[2], 10, 1, G_MAXINT, &sms, NULL) ||
        !g_ascii_string_to_unsigned(parts[3], 10, 1, G_MAXINT, &threads, NULL))
        return FALSE;
    launch->mode = NJ_LAUNCH_AT;
    launch->sms = (guint)sms;
    return TRUE;
}

static gboolean read_launches(const Place *place, const NjPythonValue *tuple, const char *freqs_path,
                              NjPlanInstruction *instruction, GError **error)
{
    NjInstructionKind kind;
    if (!is_sequence(tuple) || tuple->items->len == 0)
        return fail(place, tuple, "a tuple is needed, such as ('forward', 'norm_0-none-12-1024')", error);
    if (!read_kind(place, tuple, &kind, error))
        return FALSE;
    if (kind != instruction->kind) {
        g_autofree char *needed = g_strdup_printf("%s has %s here, and both files must match", freqs_path,
                                                  nj_instruction_kind_name(instruction->kind));
        return fail(place, tuple->items->pdata[0], needed, error);
    }
    if (tuple->items->len - 1 > NJ_MAX_PARTITIONS) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s:%u: stage %u, instruction %u: %u launches: at most %d are read", place->path,
                    tuple->line, place->stage, place->instruction, tuple->items->len - 1, NJ_MAX_PARTITIONS);
        return FALSE;
    }
    for (guint l = 0; l + 1 < tuple->items->len; l++) {
        const NjPythonValue *item = tuple->items->pdata[l + 1];
        if (item->type != NJ_PYTHON_STRING || !read_launch(item->text, &instruction->launches[l]))
            return fail(place, item,
                        "a launch is needed: 'KERNEL_INDEX-none-SMS-1024' with KERNEL of norm, linear, rope, "
                        "attn, activation (such as 'norm_0-none-12-1024'), 'sequential' or 'default'",
                        error);
    }
    instruction->n_launches = tuple->items->len - 1;
    return TRUE;
}

static gboolean read_scheds(const char *path, const NjPythonValue *value, const char *freqs_path,
                            NjPlan *plan, GError **error)
{
    if (!check_stages(path, value, SCHEDS_SHAPE, error))
        return FALSE;
    if (value->items->len != plan->n_stages) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s:%u: %u stages where %s has %u: both files must match", path, value->line,
                    value->items->len, freqs_path, plan->n_stages);
        return FALSE;
    }
    for (guint s = 0; s < plan->n_stages; s++) {
        const NjPythonValue *stage = value->items->pdata[s];
        if (stage->items->len != plan->stages[s].n_instructions) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                        "%s:%u: stage %u: %u instructions where %s has %u: both files must match", path,
                        stage->line, s, stage->items->len, freqs_path, plan->stages[s].n_instructions);
            return FALSE;
        }
        for (guint i = 0; i < stage->items->len; i++) {
            const Place place = {path, s, i};
            if (!read_launches(&place, stage->items->pdata[i], freqs_path, &plan->stages[s].instructions[i],
                               error))
                return FALSE;
        }
    }
    return TRUE;
}

// "Iteration 1941 total cost: 1841.1": other comments are none of ours and are passed over.
static gboolean read_costs(const char *path, const NjPythonFile *file, NjPlanCosts *costs, GError **error)
{
    *costs = NJ_PLAN_COSTS_NONE;
    for (guint i = 0; i < file->comments->len; i++) {
        const NjPythonComment *comment = file->comments->pdata[i];
        const struct {
            const char *label;
            double *value;
        } figures[] = {
            {" cost change: ", &costs->cost_change_j},
            {" total cost: ", &costs->total_cost_j},
            {" total cost with P2P: ", &costs->total_cost_with_static_j},
        };
        if (!g_str_has_prefix(comment->text, "Iteration "))
            continue;
        char *rest, *end;
        const char *start = comment->text + strlen("Iteration ");
        const guint64 iteration = g_ascii_strtoull(start, &rest, 10);
        for (guint f = 0; f < G_N_ELEMENTS(figures); f++) {
            if (!g_str_has_prefix(rest, figures[f].label))
                continue;
            const char *number = rest + strlen(figures[f].label);
            const double value = g_ascii_strtod(number, &end);
            if (!g_ascii_isdigit(*start) || iteration > G_MAXINT || end == number || *end != '\0' ||
                !isfinite(value)) {
                g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                            "%s:%u: '# %s': '# Iteration NUMBER%sJOULES' is needed", path, comment->line,
                            comment->text, figures[f].label);
                return FALSE;
            }
            if (costs->iteration >= 0 && costs->iteration != (gint64)iteration) {
                g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                            "%s:%u: iteration %" G_GUINT64_FORMAT " where a line above says %" G_GINT64_FORMAT
                            ": one file holds one iteration",
                            path, comment->line, iteration, costs->iteration);
                return FALSE;
            }
            costs->iteration = (gint64)iteration;
            *figures[f].value = value;
        }
    }
    return TRUE;
}

gboolean nj_plan_files_parse(const char *freqs_path, const char *freqs_text, gsize freqs_length,
                             const char *scheds_path, const char *scheds_text, gsize scheds_length,
                             NjPlan *plan, NjPlanCosts *costs, GError **error)
{
    g_auto(NjPlan) read = {0};
    NjPlanCosts read_costs_j, scheds_costs_j;

    g_autoptr(NjPythonFile) freqs = nj_python_parse(freqs_path, freqs_text, freqs_length, error);
    if (freqs == NULL || !read_freqs(freqs_path, freqs->value, &read, error) ||
        !read_costs(freqs_path, freqs, &read_costs_j, error))
        return FALSE;
    if (scheds_text != NULL) {
        g_autoptr(NjPythonFile) scheds = nj_python_parse(scheds_path, scheds_text, scheds_length, error);
        if (scheds == NULL || !read_scheds(scheds_path, scheds->value, freqs_path, &read, error) ||
            !read_costs(scheds_path, scheds, &scheds_costs_j, error))
            return FALSE;
        if (read_costs_j.iteration >= 0 && scheds_costs_j.iteration >= 0 &&
            read_costs_j.iteration != scheds_costs_j.iteration) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                        "%s: of iteration %" G_GINT64_FORMAT " where %s is of iteration %" G_GINT64_FORMAT
                        ": both files must be of one plan",
                        scheds_path, scheds_costs_j.iteration, freqs_path, read_costs_j.iteration);
            return FALSE;
        }
    }
    if (!nj_plan_validate(&read, error)) {
        // What is wrong with launches stands in the launch file, everything else in the other.
        g_prefix_error(error,
                       "%s: ", scheds_text != NULL && nj_plan_has_launches(&read) ? scheds_path : freqs_path);
        return FALSE;
    }
    *plan = read;
    read = (NjPlan){0};
    if (costs != NULL)
        *costs = read_costs_j;
    return TRUE;
}

static char *read_text(const char *path, gsize *length, GError **error)
{
    g_autoptr(GError) cause = NULL;
    char *text = NULL;
    if (!g_file_get_contents(path, &text, length, &cause))
        g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "%s: cannot be read: %s", path, cause->message);
    return text;
}

gboolean nj_plan_files_read(const char *freqs_path, const char *scheds_path, NjPlan *plan, NjPlanCosts *costs,
                            GError **error)
{
    g_autofree char *scheds_text = NULL;
    gsize freqs_length = 0, scheds_length = 0;

    g_autofree char *freqs_text = read_text(freqs_path, &freqs_length, error);
    if (freqs_text == NULL)
        return FALSE;
    if (scheds_path != NULL && (scheds_text = read_text(scheds_path, &scheds_length, error)) == NULL)
        return FALSE;
    return nj_plan_files_parse(freqs_path, freqs_text, freqs_length, scheds_path, scheds_text, scheds_length,
                               plan, costs, error);
}

static void append_costs(const NjPlanCosts *costs, GString *out)
{
    const struct {
        const char *label;
        double value;
    } figures[] = {
        {"cost change", costs->cost_change_j},
        {"total cost", costs->total_cost_j},
        {"total cost with P2P", costs->total_cost_with_static_j},
    };
    for (guint f = 0; costs->iteration >= 0 && f < G_N_ELEMENTS(figures); f++) {
        if (!isfinite(figures[f].value))
            continue;
        g_string_append_printf(out, "# Iteration %" G_GINT64_FORMAT " %s: ", costs->iteration,
                               figures[f].label);
        nj_python_append_float(figures[f].value, out);
        g_string_append_c(out, '\n');
    }
}

static void append_freq(const NjPlanInstruction *instruction, GString *out)
{
    g_string_append_printf(out, "('%s', %u)", nj_instruction_kind_name(instruction->kind),
                           instruction->freq_mhz);
}

static void append_launches(const NjPlanInstruction *instruction, GString *out)
{
    g_string_append_printf(out, "('%s'", nj_instruction_kind_name(instruction->kind));
    for (guint l = 0; l < instruction->n_launches; l++) {
        const NjLaunch *launch = &instruction->launches[l];
        g_string_append(out, ", '");
        if (launch->mode == NJ_LAUNCH_AT)
            g_string_append_printf(out, "%s_%u-none-%u-1024", nj_launch_kernel_name(launch->kernel),
                                   launch->index, launch->sms);
        else
            nj_launch_append(launch, out);
        g_string_append_c(out, '\'');
    }
    // A tuple of one needs its comma.
    g_string_append(out, instruction->n_launches == 0 ? ",)" : ")");
}

static char *format(const NjPlan *plan, const NjPlanCosts *costs,
                    void (*append)(const NjPlanInstruction *, GString *))
{
    g_autoptr(GString) out = g_string_new("[\n");
    for (guint s = 0; s < plan->n_stages; s++) {
        g_string_append_c(out, '[');
        for (guint i = 0; i < plan->stages[s].n_instructions; i++) {
            if (i > 0)
                g_string_append(out, ", ");
            append(&plan->stages[s].instructions[i], out);
        }
        g_string_append(out, "],\n");
    }
    g_string_append(out, "]\n");
    append_costs(costs, out);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

char *nj_plan_freqs_format(const NjPlan *plan, const NjPlanCosts *costs)
{
    return format(plan, costs, append_freq);
}

char *nj_plan_scheds_format(const NjPlan *plan, const NjPlanCosts *costs)
{
    return format(plan, costs, append_launches);
}

static gboolean write_text(const char *path, const char *text, GError **error)
{
    g_autoptr(GError) cause = NULL;
    if (g_file_set_contents(path, text, -1, &cause))
        return TRUE;
    g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "%s: cannot be written: %s", path, cause->message);
    return FALSE;
}

gboolean nj_plan_files_write(const char *freqs_path, const char *scheds_path, const NjPlan *plan,
                             const NjPlanCosts *costs, GError **error)
{
    g_autofree char *freqs = nj_plan_freqs_format(plan, costs);
    if (!write_text(freqs_path, freqs, error))
        return FALSE;
    if (scheds_path == NULL)
        return TRUE;
    g_autofree char *scheds = nj_plan_scheds_format(plan, costs);
    return write_text(scheds_path, scheds, error);
}
