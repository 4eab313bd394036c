// SPDX-License-Identifier: MIT
#include "schedules/plan-table.h"

#include "schedules/csv.h"
#include "schedules/python-literal.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

static const char *const METHOD_NAMES[NJ_N_METHODS] = {
    [NJ_METHOD_MEGATRON] = "megatron",
    [NJ_METHOD_MEGATRON_PERSEUS] = "megatron+perseus",
    [NJ_METHOD_NANOBATCHING_PERSEUS] = "nanobatching+perseus",
    [NJ_METHOD_KAREUS] = "kareus",
};

// Columns that every table has, in the order they are written.
enum {
    PLAN_ID,
    METHOD,
    MODEL,
    CP,
    TP,
    MICROBATCH_SIZE,
    SEQ_LEN,
    PIPELINE_STAGES,
    MICROBATCHES,
    TIME,
    DYNAMIC_ENERGY,
    TOTAL_ENERGY,
    N_FIXED
};

static const char *const FIXED_NAMES[N_FIXED + 1] = {
    // NULL-terminated
    [PLAN_ID] = "plan_id",
    [METHOD] = "method",
    [MODEL] = "model",
    [CP] = "cp",
    [TP] = "tp",
    [MICROBATCH_SIZE] = "microbatch_size",
    [SEQ_LEN] = "seq_len",
    [PIPELINE_STAGES] = "pipeline_stages",
    [MICROBATCHES] = "microbatches",
    [TIME] = "time_s",
    [DYNAMIC_ENERGY] = "dynamic_energy_j",
    [TOTAL_ENERGY] = "total_energy_j",
};

// A stage costs two columns, so the header's length bounds this; the limit only keeps a number sane.
#define MAX_STAGES 4096

typedef struct {
    const NjCsv *csv;
    int fixed[N_FIXED];
    guint n_stages; // with a frequency column
    int *freqs;     // [n_stages] column
    int *launches;  // [n_stages] column, -1 where there is none
} Layout;

static void layout_clear(Layout *layout)
{
    g_free(layout->freqs);
    g_free(layout->launches);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Layout, layout_clear)

const char *nj_method_name(NjMethod method)
{
    g_assert((guint)method < NJ_N_METHODS);
    return METHOD_NAMES[method];
}

gboolean nj_method_parse(const char *text, NjMethod *method)
{
    for (guint m = 0; m < NJ_N_METHODS; m++) {
        if (g_str_equal(text, METHOD_NAMES[m])) {
            *method = (NjMethod)m;
            return TRUE;
        }
    }
    return FALSE;
}

void nj_plan_table_free(NjPlanTable *table)
{
    if (table == NULL)
        return;
    for (guint i = 0; i < table->n_rows; i++) {
        g_free(table->rows[i].plan_id);
        g_free(table->rows[i].model);
        nj_plan_clear(&table->rows[i].plan);
    }
    g_free(table->rows);
    g_free(table);
}

NjPlanRow *nj_plan_table_add(NjPlanTable *table)
{
    // Grown at powers of two: n_rows is the only size that the table has to carry.
    if ((table->n_rows & (table->n_rows - 1)) == 0)
        table->rows = g_renew(NjPlanRow, table->rows, MAX(1, 2 * table->n_rows));
    NjPlanRow *row = &table->rows[table->n_rows++];
    *row = (NjPlanRow){0};
    row->time_s = row->dynamic_energy_j = row->total_energy_j = (double)NAN;
    return row;
}

// "stage3_launch": FALSE where the name has another form.
static gboolean parse_stage_column(const char *name, guint *stage, gboolean *launch)
{
    char *end = NULL;
    if (!g_str_has_prefix(name, "stage") || !g_ascii_isdigit(name[5]))
        return FALSE;
    const guint64 number = g_ascii_strtoull(name + 5, &end, 10);
    *launch = g_str_equal(end, "_launch");
    if (number >= MAX_STAGES || (!*launch && !g_str_equal(end, "_freq_mhz")))
        return FALSE;
    *stage = (guint)number;
    return TRUE;
}

static gboolean find_columns(const NjCsv *csv, Layout *layout, GError **error)
{
    layout->csv = csv;
    for (guint c = 0; c < N_FIXED; c++) {
        layout->fixed[c] = nj_csv_require(csv, FIXED_NAMES[c], error);
        if (layout->fixed[c] < 0)
            return FALSE;
    }
    for (guint c = 0; c < csv->n_columns; c++) {
        guint stage;
        gboolean launch;
        if (nj_csv_column(csv, csv->columns[c]) != (int)c) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:1: column '%s' is there twice", csv->path,
                        csv->columns[c]);
            return FALSE;
        }
        if (parse_stage_column(csv->columns[c], &stage, &launch)) {
            layout->n_stages = MAX(layout->n_stages, stage + 1);
        } else if (!g_strv_contains(FIXED_NAMES, csv->columns[c])) {
            g_set_error(
                error, NJ_ERROR, NJ_ERROR_INPUT,
                "%s:1: column '%s' is not known: stageK_freq_mhz, stageK_launch with K from 0 and the "
                "columns from plan_id to total_energy_j are",
                csv->path, csv->columns[c]);
            return FALSE;
        }
    }
    layout->n_stages = MAX(layout->n_stages, 1); // no stage column at all: stage0_freq_mhz is missing
    layout->freqs = g_new(int, layout->n_stages);
    layout->launches = g_new(int, layout->n_stages);
    for (guint s = 0; s < layout->n_stages; s++) {
        g_autofree char *freq = g_strdup_printf("stage%u_freq_mhz", s);
        g_autofree char *launch = g_strdup_printf("stage%u_launch", s);
        layout->freqs[s] = nj_csv_require(csv, freq, error);
        layout->launches[s] = nj_csv_column(csv, launch);
        if (layout->freqs[s] < 0)
            return FALSE;
    }
    return TRUE;
}

static gboolean fail_cell(const NjCsv *csv, guint row, int column, const char *needed, GError **error)
{
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: %s = '%s': %s", csv->path, csv->line_numbers[row],
                csv->columns[column], csv->rows[row][column], needed);
    return FALSE;
}

static gboolean read_count(const Layout *layout, guint row, guint which, guint *value, GError **error)
{
    gint64 number;
    if (!nj_csv_integer(layout->csv, row, layout->fixed[which], 1, G_MAXINT, &number, error))
        return FALSE;
    *value = (guint)number;
    return TRUE;
}

// A planner's figure: a positive number, or nothing.
static gboolean read_figure(const Layout *layout, guint row, guint which, double *value, GError **error)
{
    const char *text = layout->csv->rows[row][layout->fixed[which]];
    char *end = NULL;
    if (*text == '\0')
        return TRUE;
    *value = g_ascii_strtod(text, &end);
    if (*end != '\0' || g_ascii_isspace(*text) || !isfinite(*value) || *value <= 0)
        return fail_cell(layout->csv, row, layout->fixed[which], "a number above 0, or nothing, is needed",
                         error);
    return TRUE;
}

// "F" or "B" before what belongs to the instruction.
static gboolean parse_letter(char letter, NjInstructionKind *kind)
{
    if (letter != 'F' && letter != 'B')
        return FALSE;
    *kind = letter == 'F' ? NJ_FORWARD : NJ_BACKWARD;
    return TRUE;
}

// Words of a cell; runs of spaces part them. Transfer full.
static GPtrArray *split_words(const char *text)
{
    GPtrArray *words = g_ptr_array_new_with_free_func(g_free);
    for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " ")) {
        const gsize length = strcspn(text, " ");
        g_ptr_array_add(words, g_strndup(text, length));
        text += length;
    }
    return words;
}

static gboolean read_freqs(const Layout *layout, guint row, guint stage, NjPlanRow *out, GError **error)
{
    const NjCsv *csv = layout->csv;
    const int column = layout->freqs[stage];
    g_autoptr(GPtrArray) words = split_words(csv->rows[row][column]);
    guint count[NJ_N_INSTRUCTION_KINDS] = {0};

    for (guint w = 0; w < words->len; w++) {
        const char *word = words->pdata[w];
        NjPlanInstruction instruction = {NJ_FORWARD};
        guint64 freq_mhz;
        if (!parse_letter(*word, &instruction.kind) ||
            !g_ascii_string_to_unsigned(word + 1, 10, 1, G_MAXINT, &freq_mhz, NULL)) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                        "%s:%u: %s, token %u: '%s': F or B and a frequency in whole MHz is needed, such as "
                        "F1410",
                        csv->path, csv->line_numbers[row], csv->columns[column], w + 1, word);
            return FALSE;
        }
        instruction.freq_mhz = (guint)freq_mhz;
        count[instruction.kind]++;
        nj_plan_append(&out->plan, stage, &instruction);
    }
    for (guint k = 0; k < NJ_N_INSTRUCTION_KINDS; k++) {
        if (count[k] != out->microbatches) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                        "%s:%u: %s: %u %s instructions where microbatches = %u: one for every microbatch is "
                        "needed",
                        csv->path, csv->line_numbers[row], csv->columns[column], count[k],
                        nj_instruction_kind_name((NjInstructionKind)k), out->microbatches);
            return FALSE;
        }
    }
    return TRUE;
}

gboolean nj_launch_list_parse(const char *where, const char *text, NjPlanInstruction *instruction,
                              GError **error)
{
    g_auto(GStrv) tokens = g_strsplit(text, ",", -1);
    instruction->n_launches = 0;
    for (guint t = 0; tokens[t] != NULL; t++) {
        if (t == NJ_MAX_PARTITIONS) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: '%s': %u launches: at most %d are read", where,
                        text, g_strv_length(tokens), NJ_MAX_PARTITIONS);
            return FALSE;
        }
        if (!nj_launch_parse(tokens[t], &instruction->launches[t])) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: launch '%s': " NJ_LAUNCH_TOKENS " is needed",
                        where, tokens[t]);
            return FALSE;
        }
        instruction->n_launches = t + 1;
    }
    return TRUE;
}

void nj_launch_list_append(const NjPlanInstruction *instruction, GString *out)
{
    for (guint l = 0; l < instruction->n_launches; l++) {
        if (l > 0)
            g_string_append_c(out, ',');
        nj_launch_append(&instruction->launches[l], out);
    }
}

static gboolean read_launches(const Layout *layout, guint row, guint stage, NjPlanRow *out, GError **error)
{
    const NjCsv *csv = layout->csv;
    const int column = layout->launches[stage];
    if (column < 0)
        return TRUE;
    g_autoptr(GPtrArray) words = split_words(csv->rows[row][column]);
    NjPlanStage *instructions = &out->plan.stages[stage];

    if (words->len == 0)
        return TRUE;
    if (out->method != NJ_METHOD_KAREUS) {
        g_autofree char *needed = g_strdup_printf("nothing is needed here: method %s has no launch choices",
                                                  nj_method_name(out->method));
        return fail_cell(csv, row, column, needed, error);
    }
    if (words->len != instructions->n_instructions) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s:%u: %s: %u instructions where %s has %u: one for each is needed", csv->path,
                    csv->line_numbers[row], csv->columns[column], words->len,
                    csv->columns[layout->freqs[stage]], instructions->n_instructions);
        return FALSE;
    }
    for (guint w = 0; w < words->len; w++) {
        const char *word = words->pdata[w];
        NjPlanInstruction *instruction = &instructions->instructions[w];
        const char letter = nj_instruction_kind_letter(instruction->kind);
        g_autofree char *where = g_strdup_printf("%s:%u: %s, token %u", csv->path, csv->line_numbers[row],
                                                 csv->columns[column], w + 1);
        if (word[0] != letter || word[1] != ':') {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                        "%s: '%s': %c: and its launches is needed, as the instruction is a %s", where, word,
                        letter, nj_instruction_kind_name(instruction->kind));
            return FALSE;
        }
        if (!nj_launch_list_parse(where, word + 2, instruction, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean read_stages(const Layout *layout, guint row, guint n_stages, NjPlanRow *out, GError **error)
{
    const NjCsv *csv = layout->csv;
    if (n_stages > layout->n_stages) {
        g_autofree char *needed = g_strdup_printf("the header has columns for %u", layout->n_stages);
        return fail_cell(csv, row, layout->fixed[PIPELINE_STAGES], needed, error);
    }
    nj_plan_init(&out->plan, n_stages);
    for (guint s = 0; s < layout->n_stages; s++) {
        if (s < n_stages) {
            if (!read_freqs(layout, row, s, out, error) || !read_launches(layout, row, s, out, error))
                return FALSE;
            continue;
        }
        const int columns[] = {layout->freqs[s], layout->launches[s]};
        for (guint c = 0; c < G_N_ELEMENTS(columns); c++) {
            if (columns[c] >= 0 && *csv->rows[row][columns[c]] != '\0') {
                g_autofree char *needed =
                    g_strdup_printf("nothing is needed here: pipeline_stages = %u", n_stages);
                return fail_cell(csv, row, columns[c], needed, error);
            }
        }
    }
    if (!nj_plan_validate(&out->plan, error)) {
        g_prefix_error(error, "%s:%u: ", csv->path, csv->line_numbers[row]);
        return FALSE;
    }
    return TRUE;
}

static gboolean read_row(const Layout *layout, guint row, NjPlanRow *out, GError **error)
{
    const NjCsv *csv = layout->csv;
    char *const *cells = csv->rows[row];
    guint n_stages;

    out->line = csv->line_numbers[row];
    out->plan_id = g_strdup(cells[layout->fixed[PLAN_ID]]);
    out->model = g_strdup(cells[layout->fixed[MODEL]]);
    if (*out->plan_id == '\0')
        return fail_cell(csv, row, layout->fixed[PLAN_ID], "a name for the plan is needed", error);
    if (!nj_method_parse(cells[layout->fixed[METHOD]], &out->method))
        return fail_cell(csv, row, layout->fixed[METHOD],
                         "megatron, megatron+perseus, nanobatching+perseus or kareus is needed", error);
    if (*out->model == '\0')
        return fail_cell(csv, row, layout->fixed[MODEL], "the name of a model is needed", error);
    return read_count(layout, row, CP, &out->cp, error) && read_count(layout, row, TP, &out->tp, error) &&
           read_count(layout, row, MICROBATCH_SIZE, &out->microbatch_size, error) &&
           read_count(layout, row, SEQ_LEN, &out->seq_len, error) &&
           read_count(layout, row, PIPELINE_STAGES, &n_stages, error) &&
           read_count(layout, row, MICROBATCHES, &out->microbatches, error) &&
           read_figure(layout, row, TIME, &out->time_s, error) &&
           read_figure(layout, row, DYNAMIC_ENERGY, &out->dynamic_energy_j, error) &&
           read_figure(layout, row, TOTAL_ENERGY, &out->total_energy_j, error) &&
           read_stages(layout, row, n_stages, out, error);
}

static NjPlanTable *from_csv(const NjCsv *csv, GError **error)
{
    g_autoptr(NjPlanTable) table = g_new0(NjPlanTable, 1);
    g_autoptr(GHashTable) line_of_id = g_hash_table_new(g_str_hash, g_str_equal);
    g_auto(Layout) layout = {0};

    if (!find_columns(csv, &layout, error))
        return NULL;
    for (guint r = 0; r < csv->n_rows; r++) {
        NjPlanRow *row = nj_plan_table_add(table);
        if (!read_row(&layout, r, row, error))
            return NULL;
        const guint line = GPOINTER_TO_UINT(g_hash_table_lookup(line_of_id, row->plan_id));
        if (line != 0) {
            g_autofree char *needed = g_strdup_printf("line %u has this plan_id already", line);
            fail_cell(csv, r, layout.fixed[PLAN_ID], needed, error);
            return NULL;
        }
        g_hash_table_insert(line_of_id, row->plan_id, GUINT_TO_POINTER(row->line));
    }
    if (table->n_rows == 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: no plans: at least one row is needed", csv->path);
        return NULL;
    }
    return g_steal_pointer(&table);
}

NjPlanTable *nj_plan_table_read(const char *path, GError **error)
{
    g_autoptr(NjCsv) csv = nj_csv_read(path, error);
    return csv != NULL ? from_csv(csv, error) : NULL;
}

NjPlanTable *nj_plan_table_parse(const char *path, const char *text, GError **error)
{
    g_autoptr(NjCsv) csv = nj_csv_parse(path, text, error);
    return csv != NULL ? from_csv(csv, error) : NULL;
}

static void append_text(const char *text, GString *out)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        g_string_append(out, text);
        return;
    }
    g_string_append_c(out, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"')
            g_string_append_c(out, '"');
        g_string_append_c(out, *text);
    }
    g_string_append_c(out, '"');
}

// Digits behind the point until the text reads back to the same number; nothing for NaN.
static void append_figure(double value, int min_decimals, GString *out)
{
    char text[512];
    if (isnan(value))
        return;
    for (int decimals = min_decimals; decimals <= 17; decimals++) {
        char format[8];
        g_snprintf(format, sizeof format, "%%.%df", decimals);
        g_ascii_formatd(text, sizeof text, format, value);
        if (g_ascii_strtod(text, NULL) == value) {
            g_string_append(out, text);
            return;
        }
    }
    nj_python_append_float(value, out); // too small for 17 decimals
}

void nj_plan_stage_freqs_append(const NjPlanStage *stage, GString *out)
{
    for (guint i = 0; i < stage->n_instructions; i++)
        g_string_append_printf(out, "%s%c%u", i > 0 ? " " : "",
                               nj_instruction_kind_letter(stage->instructions[i].kind),
                               stage->instructions[i].freq_mhz);
}

void nj_plan_stage_launches_append(const NjPlanStage *stage, GString *out)
{
    gboolean any = FALSE;
    for (guint i = 0; i < stage->n_instructions; i++)
        any = any || stage->instructions[i].n_launches > 0;
    for (guint i = 0; any && i < stage->n_instructions; i++) {
        const NjPlanInstruction *instruction = &stage->instructions[i];
        g_string_append_printf(out, "%s%c:", i > 0 ? " " : "", nj_instruction_kind_letter(instruction->kind));
        nj_launch_list_append(instruction, out);
    }
}

char *nj_plan_table_format(const NjPlanTable *table)
{
    g_autoptr(GString) out = g_string_new(NULL);
    guint n_stages = 0;
    gboolean launches = FALSE;

    for (guint r = 0; r < table->n_rows; r++) {
        n_stages = MAX(n_stages, table->rows[r].plan.n_stages);
        launches = launches || nj_plan_has_launches(&table->rows[r].plan);
    }
    for (guint c = 0; c < N_FIXED; c++)
        g_string_append_printf(out, "%s%s", c > 0 ? "," : "", FIXED_NAMES[c]);
    for (guint s = 0; s < n_stages; s++)
        g_string_append_printf(out, ",stage%u_freq_mhz", s);
    for (guint s = 0; launches && s < n_stages; s++)
        g_string_append_printf(out, ",stage%u_launch", s);
    g_string_append_c(out, '\n');

    for (guint r = 0; r < table->n_rows; r++) {
        const NjPlanRow *row = &table->rows[r];
        append_text(row->plan_id, out);
        g_string_append_printf(out, ",%s,", nj_method_name(row->method));
        append_text(row->model, out);
        g_string_append_printf(out, ",%u,%u,%u,%u,%u,%u,", row->cp, row->tp, row->microbatch_size,
                               row->seq_len, row->plan.n_stages, row->microbatches);
        append_figure(row->time_s, 4, out);
        g_string_append_c(out, ',');
        append_figure(row->dynamic_energy_j, 3, out);
        g_string_append_c(out, ',');
        append_figure(row->total_energy_j, 3, out);
        for (guint s = 0; s < n_stages; s++) {
            g_string_append_c(out, ',');
            if (s < row->plan.n_stages)
                nj_plan_stage_freqs_append(&row->plan.stages[s], out);
        }
        for (guint s = 0; launches && s < n_stages; s++) {
            g_string_append_c(out, ',');
            if (s < row->plan.n_stages) {
                g_autoptr(GString) cell = g_string_new(NULL);
                nj_plan_stage_launches_append(&row->plan.stages[s], cell);
                append_text(cell->str, out);
            }
        }
        g_string_append_c(out, '\n');
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}
