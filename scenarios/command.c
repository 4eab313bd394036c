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

// The option of a word such as "-j2", NULL for other words.
static const GOptionEntry *option_with_value(const GOptionEntry *entries, const char *word)
{
    if (word[0] != '-' || word[1] == '\0' || word[2] == '\0')
        return NULL;
    for (const GOptionEntry *entry = entries; entry != NULL && entry->long_name != NULL; entry++)
        if (entry->short_name == word[1] && entry->arg != G_OPTION_ARG_NONE)
            return entry;
    return NULL;
}

// The arguments, with "-j2" as "-j" and "2": GLib does not take an option and its value in one word, as make
// and others do. Transfer full.
static GStrv split_words(const GOptionEntry *entries, int argc, char **argv)
{
    GPtrArray *words = g_ptr_array_new();
    gboolean options = TRUE;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        options = options && !g_str_equal(word, "--");
        if (options && option_with_value(entries, word) != NULL) {
            g_ptr_array_add(words, g_strndup(word, 2));
            word += 2;
        }
        g_ptr_array_add(words, g_strdup(word));
    }
    g_ptr_array_add(words, NULL);
    return (GStrv)g_ptr_array_free(words, FALSE);
}

// GLib leaves "--" where an argument behind it begins with "-".
static void drop_separator(char **words)
{
    while (*words != NULL && !g_str_equal(*words, "--"))
        words++;
    g_free(*words);
    for (; *words != NULL; words++)
        words[0] = words[1];
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

    g_auto(GStrv) rest = split_words(entries, argc, argv);
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
    drop_separator(rest);
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
