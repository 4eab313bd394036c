// SPDX-License-Identifier: MIT
#include "scenarios/command.h"
#include "scenarios/validate.h"
#include "sim/error.h"

static char *describe_forms(void)
{
    g_autoptr(GString) text =
        g_string_new("Predicts every row of files of measurements, fits nothing, and prints the "
                     "errors overall and by group. Forms, told apart by the header:\n");
    const NjValidateForm *const *forms = nj_validate_forms();
    for (guint i = 0; forms[i] != NULL; i++) {
        g_autofree char *header = g_strjoinv(",", (char **)forms[i]->header);
        g_string_append_printf(text, "  %s\n      %s: %s\n", header, forms[i]->name, forms[i]->description);
    }
    g_string_append(text, "--format csv prints the rows of one file instead: row, predicted, measured.");
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void print_note(const NjValidation *validation)
{
    if (nj_validation_note(validation) != NULL)
        g_printerr("nanojoule: %s\n", nj_validation_note(validation));
}

static gboolean print_rows(const char *path, const NjValidateOptions *options, GError **error)
{
    g_autoptr(NjValidation) validation = nj_validation_new(path, options, error);
    if (validation == NULL)
        return FALSE;
    g_autoptr(NjTable) table = nj_validation_row_table(validation);
    nj_table_print(table, NJ_FORMAT_CSV, stdout);
    print_note(validation);
    return TRUE;
}

// All files are read before anything is printed, so that a bad one leaves no half report.
static void print_summaries(const GPtrArray *validations, NjFormat format)
{
    const gboolean with_file = format != NJ_FORMAT_TEXT;
    g_autoptr(NjTable) all = nj_validation_summary_table(with_file);
    for (guint i = 0; i < validations->len; i++) {
        const NjValidation *validation = validations->pdata[i];
        if (with_file) {
            nj_validation_add_summary(validation, all, with_file);
            continue;
        }
        g_autoptr(NjTable) table = nj_validation_summary_table(with_file);
        nj_validation_add_summary(validation, table, with_file);
        printf("%s%s: %s, error of the prediction\n\n", i > 0 ? "\n" : "", nj_validation_path(validation),
               nj_validation_form(validation)->description);
        nj_table_print(table, format, stdout);
    }
    if (with_file)
        nj_table_print(all, format, stdout);
    if (validations->len > 0)
        print_note(validations->pdata[0]);
}

static void free_validation(gpointer data)
{
    nj_validation_free(data);
}

static gboolean validate(const GStrv paths, const NjValidateOptions *options, NjFormat format, GError **error)
{
    if (format == NJ_FORMAT_CSV)
        return print_rows(paths[0], options, error);
    g_autoptr(GPtrArray) validations = g_ptr_array_new_with_free_func(free_validation);
    for (guint i = 0; paths[i] != NULL; i++) {
        NjValidation *validation = nj_validation_new(paths[i], options, error);
        if (validation == NULL)
            return FALSE;
        g_ptr_array_add(validations, validation);
    }
    print_summaries(validations, format);
    return TRUE;
}

static int run(int argc, char **argv)
{
    g_autofree char *format_name = NULL, *kernels = NULL, *gpu = NULL, *stack = NULL, *recompute = NULL;
    const GOptionEntry entries[] = {
        {"format", 'f', 0, G_OPTION_ARG_STRING, &format_name, "text (default), csv (rows) or json", "FORMAT"},
        {"kernels", 0, 0, G_OPTION_ARG_STRING, &kernels,
         "Constants of single kernels: shipped name or path (a100)", "NAME"},
        {"gpu", 0, 0, G_OPTION_ARG_STRING, &gpu,
         "GPU to predict for: shipped name or path (the one the constants were measured on)", "NAME"},
        {"stack", 0, 0, G_OPTION_ARG_STRING, &stack,
         "Iterations: software stack, shipped name or path (megatron-2022)", "NAME"},
        {"recompute", 0, 0, G_OPTION_ARG_STRING, &recompute,
         "Iterations: full, selective or none (selective in one node, full in several)", "WHAT"},
        {NULL},
    };
    g_autofree char *description = describe_forms();
    g_auto(GStrv) paths = NULL;
    int status;
    if (!nj_command_parse(&nj_command_validate, entries, description, argc, argv, 1, -1, &paths, &status))
        return status;

    const NjValidateOptions options = {
        .kernels = kernels, .gpu = gpu, .stack = stack, .recompute = recompute};
    NjFormat format = NJ_FORMAT_TEXT;
    g_autoptr(GError) error = NULL;
    if (format_name != NULL && !nj_format_parse(format_name, &format, &error))
        return nj_command_fail(error);
    if (format == NJ_FORMAT_CSV && paths[1] != NULL) {
        error = g_error_new(NJ_ERROR, NJ_ERROR_USAGE,
                            "validate: --format csv prints the rows of one file; %u files are given",
                            g_strv_length(paths));
        return nj_command_fail(error);
    }
    return validate(paths, &options, format, &error) ? 0 : nj_command_fail(error);
}

const NjCommand nj_command_validate = {
    .name = "validate",
    .arguments = "FILE...",
    .summary = "predict measurements and say how far off the predictions are",
    .run = run,
};
