// SPDX-License-Identifier: MIT
#include "schedules/profile.h"

#include "schedules/csv.h"
#include "schedules/plan-table.h"
#include "schedules/python-literal.h"
#include "sim/error.h"

#include <math.h>

enum { STAGE, INSTRUCTION, FREQUENCY, TIME, ENERGY, N_REQUIRED, LAUNCH = N_REQUIRED, N_COLUMNS };

static const char *const COLUMN_NAMES[N_COLUMNS + 1] = {
    // NULL-terminated
    [STAGE] = "stage", [INSTRUCTION] = "instruction", [FREQUENCY] = "frequency",
    [TIME] = "time",   [ENERGY] = "energy",           [LAUNCH] = "launch",
};

static gboolean find_columns(const NjCsv *csv, int columns[N_COLUMNS], GError **error)
{
    for (guint c = 0; c < csv->n_columns; c++) {
        if (!g_strv_contains(COLUMN_NAMES, csv->columns[c])) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                        "%s:1: column '%s' is not known: stage, instruction, frequency, time, energy and "
                        "launch are",
                        csv->path, csv->columns[c]);
            return FALSE;
        }
        if (nj_csv_column(csv, csv->columns[c]) != (int)c) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:1: column '%s' is there twice", csv->path,
                        csv->columns[c]);
            return FALSE;
        }
    }
    for (guint c = 0; c < N_REQUIRED; c++) {
        columns[c] = nj_csv_require(csv, COLUMN_NAMES[c], error);
        if (columns[c] < 0)
            return FALSE;
    }
    columns[LAUNCH] = nj_csv_column(csv, COLUMN_NAMES[LAUNCH]);
    return TRUE;
}

static gboolean fail_cell(const NjCsv *csv, guint row, int column, const char *needed, GError **error)
{
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: %s = '%s': %s", csv->path, csv->line_numbers[row],
                csv->columns[column], csv->rows[row][column], needed);
    return FALSE;
}

// A finite number and nothing behind it; FALSE otherwise.
static gboolean parse_number(const char *text, double *value)
{
    char *end = NULL;
    *value = g_ascii_strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*value);
}

static gboolean parse_instruction(const char *text, NjInstructionKind *kind)
{
    for (guint k = 0; k < NJ_N_INSTRUCTION_KINDS; k++) {
        if (text[0] == nj_instruction_kind_letter((NjInstructionKind)k) && text[1] == '\0') {
            *kind = (NjInstructionKind)k;
            return TRUE;
        }
    }
    return nj_instruction_kind_parse(text, kind);
}

static gboolean read_row(const NjCsv *csv, const int columns[N_COLUMNS], guint r, NjProfileRow *row,
                         GError **error)
{
    char *const *cells = csv->rows[r];
    NjPlanInstruction *instruction = &row->instruction;
    gint64 stage;
    double freq_mhz;

    row->line = csv->line_numbers[r];
    if (!nj_csv_integer(csv, r, columns[STAGE], 0, G_MAXINT - 1, &stage, error))
        return FALSE;
    row->stage = (guint)stage;
    if (!parse_instruction(cells[columns[INSTRUCTION]], &instruction->kind))
        return fail_cell(csv, r, columns[INSTRUCTION], "forward or backward (F, B) is needed", error);
    if (!parse_number(cells[columns[FREQUENCY]], &freq_mhz) || freq_mhz < 1 || freq_mhz > G_MAXINT ||
        freq_mhz != floor(freq_mhz))
        return fail_cell(csv, r, columns[FREQUENCY], "a frequency in whole MHz above 0 is needed", error);
    instruction->freq_mhz = (guint)freq_mhz;
    if (!parse_number(cells[columns[TIME]], &row->time_s) || row->time_s <= 0)
        return fail_cell(csv, r, columns[TIME], "a time in seconds above 0 is needed", error);
    if (!parse_number(cells[columns[ENERGY]], &row->energy_j) || row->energy_j < 0)
        return fail_cell(csv, r, columns[ENERGY], "an energy in joules of at least 0 is needed", error);
    if (columns[LAUNCH] < 0)
        return TRUE;
    g_autofree char *where = g_strdup_printf("%s:%u: launch", csv->path, row->line);
    return nj_launch_list_parse(where, cells[columns[LAUNCH]], instruction, error);
}

// What makes a row the same measurement as another.
static char *row_key(const NjProfileRow *row)
{
    GString *key = g_string_new(NULL);
    g_string_printf(key, "%u %s at %u MHz", row->stage, nj_instruction_kind_name(row->instruction.kind),
                    row->instruction.freq_mhz);
    if (row->instruction.n_launches > 0)
        g_string_append_c(key, ' ');
    nj_launch_list_append(&row->instruction, key);
    return g_string_free(key, FALSE);
}

static gboolean check_duplicates(const char *path, const NjProfile *profile, GError **error)
{
    g_autoptr(GHashTable) lines = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint r = 0; r < profile->n_rows; r++) {
        g_autofree char *key = row_key(&profile->rows[r]);
        const guint line = GPOINTER_TO_UINT(g_hash_table_lookup(lines, key));
        if (line != 0) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                        "%s:%u: stage %s again, as in line %u: each combination may come once", path,
                        profile->rows[r].line, key, line);
            return FALSE;
        }
        g_hash_table_insert(lines, g_steal_pointer(&key), GUINT_TO_POINTER(profile->rows[r].line));
    }
    return TRUE;
}

static gboolean check_launch_counts(const char *path, const NjProfile *profile, GError **error)
{
    const NjProfileRow *first[NJ_N_INSTRUCTION_KINDS] = {NULL};
    for (guint r = 0; r < profile->n_rows; r++) {
        const NjProfileRow *row = &profile->rows[r];
        const NjProfileRow **of_kind = &first[row->instruction.kind];
        if (*of_kind == NULL)
            *of_kind = row;
        if (row->instruction.n_launches != (*of_kind)->instruction.n_launches) {
            g_set_error(
                error, NJ_ERROR, NJ_ERROR_INPUT,
                "%s:%u: a %s with %u launches where that of line %u has %u: all of a kind need as many", path,
                row->line, nj_instruction_kind_name(row->instruction.kind), row->instruction.n_launches,
                (*of_kind)->line, (*of_kind)->instruction.n_launches);
            return FALSE;
        }
    }
    return TRUE;
}

// Every stage up to the last has both instructions. Stops at the first gap, so a stage number out of all
// proportion costs nothing.
static gboolean check_complete(const char *path, const NjProfile *profile, GError **error)
{
    g_autoptr(GHashTable) there = g_hash_table_new(g_int64_hash, g_int64_equal);
    g_autofree gint64 *keys = g_new(gint64, profile->n_rows);
    for (guint r = 0; r < profile->n_rows; r++) {
        keys[r] = (gint64)profile->rows[r].stage * NJ_N_INSTRUCTION_KINDS + profile->rows[r].instruction.kind;
        g_hash_table_add(there, &keys[r]);
    }
    for (gint64 key = 0; key < (gint64)profile->n_stages * NJ_N_INSTRUCTION_KINDS; key++) {
        if (!g_hash_table_contains(there, &key)) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                        "%s: no %s of stage %" G_GINT64_FORMAT
                        ": every stage from 0 to %u needs a forward and a backward",
                        path, nj_instruction_kind_name((NjInstructionKind)(key % NJ_N_INSTRUCTION_KINDS)),
                        key / NJ_N_INSTRUCTION_KINDS, profile->n_stages - 1);
            return FALSE;
        }
    }
    return TRUE;
}

static NjProfile *from_csv(const NjCsv *csv, GError **error)
{
    g_autoptr(NjProfile) profile = g_new0(NjProfile, 1);
    int columns[N_COLUMNS];

    if (!find_columns(csv, columns, error))
        return NULL;
    if (csv->n_rows == 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: no measurements: at least two rows are needed",
                    csv->path);
        return NULL;
    }
    profile->rows = g_new0(NjProfileRow, csv->n_rows);
    profile->n_rows = csv->n_rows;
    for (guint r = 0; r < csv->n_rows; r++) {
        if (!read_row(csv, columns, r, &profile->rows[r], error))
            return NULL;
        profile->n_stages = MAX(profile->n_stages, profile->rows[r].stage + 1);
    }
    if (!check_launch_counts(csv->path, profile, error) || !check_duplicates(csv->path, profile, error) ||
        !check_complete(csv->path, profile, error))
        return NULL;
    return g_steal_pointer(&profile);
}

NjProfile *nj_profile_read(const char *path, GError **error)
{
    g_autoptr(NjCsv) csv = nj_csv_read(path, error);
    return csv != NULL ? from_csv(csv, error) : NULL;
}

NjProfile *nj_profile_parse(const char *path, const char *text, GError **error)
{
    g_autoptr(NjCsv) csv = nj_csv_parse(path, text, error);
    return csv != NULL ? from_csv(csv, error) : NULL;
}

void nj_profile_free(NjProfile *profile)
{
    if (profile == NULL)
        return;
    g_free(profile->rows);
    g_free(profile);
}

gboolean nj_profile_has_launches(const NjProfile *profile)
{
    for (guint r = 0; r < profile->n_rows; r++)
        if (profile->rows[r].instruction.n_launches > 0)
            return TRUE;
    return FALSE;
}

char *nj_profile_format(const NjProfile *profile)
{
    const gboolean launches = nj_profile_has_launches(profile);
    GString *out = g_string_new("stage,instruction,frequency,time,energy");
    g_string_append(out, launches ? ",launch\n" : "\n");
    for (guint r = 0; r < profile->n_rows; r++) {
        const NjProfileRow *row = &profile->rows[r];
        g_string_append_printf(out, "%u,%s,%u,", row->stage, nj_instruction_kind_name(row->instruction.kind),
                               row->instruction.freq_mhz);
        nj_python_append_float(row->time_s, out);
        g_string_append_c(out, ',');
        nj_python_append_float(row->energy_j, out);
        if (launches) {
            // A list of one needs no quotes; quoting it all the same keeps the column alike.
            g_string_append(out, row->instruction.n_launches > 0 ? ",\"" : ",");
            nj_launch_list_append(&row->instruction, out);
            g_string_append(out, row->instruction.n_launches > 0 ? "\"" : "");
        }
        g_string_append_c(out, '\n');
    }
    return g_string_free(out, FALSE);
}
