// SPDX-License-Identifier: MIT
#include "models/data.h"
#include "scenarios/calibrate.h"
#include "scenarios/command.h"
#include "scenarios/store.h"
#include "scenarios/table.h"
#include "sim/error.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

// Set by Ctrl-C; the fit looks at it between evaluations.
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

static void show_progress(gpointer user, const char *message)
{
    (void)user;
    g_printerr("calibrate: %s\n", message);
}

static void print_constants(const GArray *constants)
{
    static const NjColumn columns[] = {
        {"constant", NJ_COLUMN_TEXT, 0, "", ""},       {"unit", NJ_COLUMN_TEXT, 0, "", ""},
        {"before", NJ_COLUMN_REAL, 4, "", ""},         {"after", NJ_COLUMN_REAL, 4, "", ""},
        {"standard_error", NJ_COLUMN_REAL, 4, "", ""}, {"determined", NJ_COLUMN_TEXT, 0, "", ""},
    };
    g_autoptr(NjTable) table = nj_table_new(columns, G_N_ELEMENTS(columns));
    for (guint i = 0; i < constants->len; i++) {
        const NjConstant *c = &g_array_index(constants, NjConstant, i);
        nj_table_add_row(table);
        nj_table_set_text(table, 0, c->field->key);
        nj_table_set_text(table, 1, c->field->unit);
        nj_table_set_real(table, 2, c->prior);
        nj_table_set_real(table, 3, c->determined ? c->value : c->prior);
        nj_table_set_real(table, 4, c->error);
        nj_table_set_text(table, 5, c->determined ? "yes" : "no: kept");
    }
    nj_table_print(table, NJ_FORMAT_TEXT, stdout);
}

static void print_errors(const GArray *errors, gboolean left_out)
{
    static const NjColumn columns[] = {
        {"configuration", NJ_COLUMN_TEXT, 0, "", ""},       {"times", NJ_COLUMN_INTEGER, 0, "", ""},
        {"time_mean_pct", NJ_COLUMN_REAL, 2, "", ""},       {"time_mean_abs_pct", NJ_COLUMN_REAL, 2, "", ""},
        {"energies", NJ_COLUMN_INTEGER, 0, "", ""},         {"energy_mean_pct", NJ_COLUMN_REAL, 2, "", ""},
        {"energy_mean_abs_pct", NJ_COLUMN_REAL, 2, "", ""},
    };
    g_print("\n%s:\n\n",
            left_out ? "Errors on the configuration that was left out" : "Errors on the fitted data");
    g_autoptr(NjTable) table = nj_table_new(columns, G_N_ELEMENTS(columns));
    for (guint i = 0; i < errors->len; i++) {
        const NjErrors *row = &g_array_index(errors, NjErrors, i);
        nj_table_add_row(table);
        nj_table_set_text(table, 0, row->configuration);
        for (guint k = 0; k < NJ_N_FIGURES; k++) {
            nj_table_set_integer(table, 1 + 3 * k, row->n[k]);
            nj_table_set_real(table, 2 + 3 * k, row->n[k] > 0 ? 100 * row->mean[k] : (double)NAN);
            nj_table_set_real(table, 3 + 3 * k, row->n[k] > 0 ? 100 * row->mean_abs[k] : (double)NAN);
        }
    }
    nj_table_print(table, NJ_FORMAT_TEXT, stdout);
}

// The original file with new values, and above each group what they come from. Written aside and renamed.
static gboolean write_gpu_file(const char *path, const char *original, const NjCalibration *calibration,
                               const char *origin, GError **error)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    if (!g_key_file_load_from_file(file, original, G_KEY_FILE_KEEP_COMMENTS, error))
        return FALSE;
    for (guint i = 0; i < calibration->constants->len; i++) {
        const NjConstant *c = &g_array_index(calibration->constants, NjConstant, i);
        if (!c->determined)
            continue;
        char value[G_ASCII_DTOSTR_BUF_SIZE];
        g_autofree char *comment =
            g_strdup_printf(" %s%s%s; fitted, standard error %.3g", c->field->unit,
                            *c->field->unit != 0 ? "; " : "", c->field->description, c->error);
        g_key_file_set_value(file, "model", c->field->key,
                             g_ascii_formatd(value, sizeof value, "%.5g", c->value));
        g_key_file_set_comment(file, "model", c->field->key, comment, NULL);
    }
    g_key_file_set_boolean(file, "gpu", "calibrated", TRUE);
    g_key_file_remove_comment(file, "model", NULL, NULL); // what an earlier fit wrote
    g_key_file_set_comment(file, "model", NULL, origin, NULL);
    gsize length;
    g_autofree char *text = g_key_file_to_data(file, &length, NULL);
    return g_file_set_contents_full(path, text, (gssize)length, G_FILE_SET_CONTENTS_CONSISTENT, 0644, error);
}

static void describe_errors(GString *text, const GArray *errors, const char *of_what)
{
    const NjErrors *all = &g_array_index(errors, NjErrors, errors->len - 1);
    g_string_append_printf(text, "\n mean absolute error %s: %.2f %% of %u times", of_what,
                           100 * all->mean_abs[NJ_FIGURE_TIME], all->n[NJ_FIGURE_TIME]);
    if (all->n[NJ_FIGURE_ENERGY] > 0)
        g_string_append_printf(text, ", %.2f %% of %u energies", 100 * all->mean_abs[NJ_FIGURE_ENERGY],
                               all->n[NJ_FIGURE_ENERGY]);
}

// The comment above the constants: data, date, version, rows and errors.
static char *describe_origin(GStrv paths, const NjCalibration *calibration)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *date = g_date_time_format(now, "%Y-%m-%d");
    g_autoptr(GString) text = g_string_new(" Constants of the model, fitted to ");
    for (guint i = 0; paths[i] != NULL; i++) {
        g_autofree char *name = g_path_get_basename(paths[i]);
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", name);
    }
    g_string_append_printf(text, " on %s by nanojoule %s calibrate;", date, NJ_VERSION);
    describe_errors(text, calibration->errors, "of the fit");
    if (calibration->left_out != NULL)
        describe_errors(text, calibration->left_out, "of configurations left out in turn");
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static GPtrArray *read_sets(GStrv paths, const NjMeasurementOptions *options, GError **error)
{
    g_autoptr(GPtrArray) sets = g_ptr_array_new_with_free_func((GDestroyNotify)nj_measurements_free);
    for (guint i = 0; paths[i] != NULL; i++) {
        NjMeasurementSet *set = nj_measurements_read(paths[i], options, error);
        if (set == NULL)
            return NULL;
        g_ptr_array_add(sets, set);
    }
    return g_steal_pointer(&sets);
}

static int run(int argc, char **argv)
{
    g_autofree char *gpu_name = NULL, *free_list = NULL, *fix_list = NULL, *output = NULL, *skip = NULL,
                    *scenario = NULL;
    gboolean cross_validate = FALSE;
    int jobs = (int)g_get_num_processors();
    const GOptionEntry entries[] = {
        {"gpu", 0, 0, G_OPTION_ARG_STRING, &gpu_name, "GPU whose constants are the priors", "NAME|FILE"},
        {"free", 0, 0, G_OPTION_ARG_STRING, &free_list,
         "Fit these constants only (default: all but the host's, dispatch_...)", "A,B,..."},
        {"fix", 0, 0, G_OPTION_ARG_STRING, &fix_list, "Keep these constants", "A,B,..."},
        {"skip", 0, 0, G_OPTION_ARG_STRING, &skip, "Leave out rows whose plan_id matches", "PATTERN"},
        {"scenario", 0, 0, G_OPTION_ARG_FILENAME, &scenario, "What an instruction profile ran", "FILE"},
        {"cross-validate", 0, 0, G_OPTION_ARG_NONE, &cross_validate, "Leave every configuration out in turn",
         NULL},
        {"jobs", 'j', 0, G_OPTION_ARG_INT, &jobs, "Threads (default: all cores)", "N"},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output, "New GPU key file", "FILE"},
        {NULL},
    };
    g_auto(GStrv) arguments = NULL;
    int status;
    if (!nj_command_parse(&nj_command_calibrate, entries, NULL, argc, argv, 1, -1, &arguments, &status))
        return status;

    g_autoptr(GError) error = NULL;
    g_auto(NjGpu) gpu = {0};
    g_auto(GStrv) free_names = free_list != NULL ? g_strsplit(free_list, ",", -1) : NULL;
    g_auto(GStrv) fix_names = fix_list != NULL ? g_strsplit(fix_list, ",", -1) : NULL;
    if (gpu_name == NULL || jobs < 1) {
        g_set_error(&error, NJ_ERROR, NJ_ERROR_USAGE,
                    gpu_name == NULL ? "calibrate: --gpu must name the GPU that was measured"
                                     : "calibrate: --jobs: at least 1 is needed");
        return nj_command_fail(error);
    }
    // Said before a long fit, not behind it; and no device file is ever replaced.
    if (!nj_gpu_load(&gpu, gpu_name, &error) || (output != NULL && !nj_store_check_writable(output, &error)))
        return nj_command_fail(error);
    const NjMeasurementOptions options = {&gpu, scenario, skip};
    g_autoptr(GPtrArray) sets = read_sets(arguments, &options, &error);
    if (sets == NULL)
        return nj_command_fail(error);

    signal(SIGINT, on_interrupt);
    const NjCalibrationInput input = {
        .gpu = &gpu,
        .sets = (NjMeasurementSet *const *)sets->pdata,
        .n_sets = sets->len,
        .free_names = (const char *const *)free_names,
        .fix_names = (const char *const *)fix_names,
        .jobs = (guint)jobs,
        .stop = &interrupted,
        .progress = show_progress,
    };
    g_auto(NjCalibration) calibration = {0};
    if (!(cross_validate ? nj_cross_validate(&input, &calibration, &error)
                         : nj_calibrate(&input, &calibration, &error)))
        return nj_command_fail(error);
    print_constants(calibration.constants);
    print_errors(calibration.errors, FALSE);
    if (calibration.left_out != NULL)
        print_errors(calibration.left_out, TRUE);
    if (output != NULL) {
        g_autofree char *original = nj_data_locate("models/gpus", gpu_name, ".ini", &error);
        g_autofree char *origin = describe_origin(arguments, &calibration);
        if (original == NULL || !write_gpu_file(output, original, &calibration, origin, &error))
            return nj_command_fail(error);
    }
    return 0;
}

const NjCommand nj_command_calibrate = {
    .name = "calibrate",
    .arguments = "MEASUREMENTS...",
    .summary = "fit a GPU's model constants to measurements",
    .run = run,
};
