// SPDX-License-Identifier: MIT
#include "scenarios/command.h"

#include "sim/error.h"

int nj_command_fail(const GError *error)
{
    g_printerr("nanojoule: %s\n", error->message);
    return g_error_matches(error, NJ_ERROR, NJ_ERROR_USAGE) ? 2 : 1;
}

static gboolean usage_error(const NjCommand *command, const char *message, int *status)
{
    g_printerr("nanojoule: %s: %s\nTry 'nanojoule %s --help'.\n", command->name, message, command->name);
    *status = 2;
    return FALSE;
}

gboolean nj_command_parse(const NjCommand *command, const GOptionEntry *entries, const char *description,
                          int argc, char **argv, int minimum, int maximum, GStrv *arguments, int *status)
{
    gboolean help = FALSE;
    const GOptionEntry help_entry[] = {
        {"help", 'h', 0, G_OPTION_ARG_NONE, &help, "Show this help", NULL},
        {NULL},
    };
    g_autofree char *parameters = g_strdup_printf("%s - %s", command->arguments, command->summary);
    g_autoptr(GOptionContext) context = g_option_context_new(parameters);
    g_option_context_set_help_enabled(context, FALSE);
    g_option_context_add_main_entries(context, help_entry, NULL);
    if (entries != NULL)
        g_option_context_add_main_entries(context, entries, NULL);
    if (description != NULL)
        g_option_context_set_description(context, description);

    g_auto(GStrv) rest = g_new0(char *, argc + 1);
    for (int i = 0; i < argc; i++)
        rest[i] = g_strdup(argv[i]);
    g_autoptr(GError) error = NULL;
    if (!g_option_context_parse_strv(context, &rest, &error))
        return usage_error(command, error->message, status);
    if (help) {
        g_autofree char *program = g_strdup_printf("nanojoule %s", command->name);
        g_set_prgname(program);
        g_autofree char *text = g_option_context_get_help(context, TRUE, NULL);
        g_print("%s", text);
        *status = 0;
        return FALSE;
    }
    const int n = (int)g_strv_length(rest) - 1;
    if (n < minimum || (maximum >= 0 && n > maximum)) {
        g_autofree char *message = g_strdup_printf(
            "%s: usage: nanojoule %s %s", n < minimum ? "an argument is missing" : "too many arguments",
            command->name, command->arguments);
        return usage_error(command, message, status);
    }
    *arguments = g_strdupv(rest + 1);
    return TRUE;
}
