// SPDX-License-Identifier: MIT
#include "models/keyfile.h"

#include "sim/error.h"

#include <math.h>

void nj_keyfile_error(GError **error, const char *path, const char *group, const char *key, const char *value,
                      const char *wanted)
{
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: [%s] %s = %s: %s", path, group, key, value, wanted);
}

GKeyFile *nj_keyfile_load(const char *path, GError **error)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    GError *inner = NULL;
    if (!g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, &inner)) {
        const gboolean is_file_error = inner->domain == G_FILE_ERROR;
        g_set_error(error, NJ_ERROR, is_file_error ? NJ_ERROR_FILE : NJ_ERROR_INPUT, "%s: %s", path,
                    inner->message);
        g_clear_error(&inner);
        return NULL;
    }
    return g_steal_pointer(&file);
}

static const NjField *find_field(const NjField *fields, guint n_fields, const char *group, const char *key)
{
    for (guint i = 0; i < n_fields; i++)
        if (g_str_equal(fields[i].group, group) && (key == NULL || g_str_equal(fields[i].key, key)))
            return &fields[i];
    return NULL;
}

// "a, b, c": the group's keys, or all groups where group is NULL.
static char *list_names(const NjField *fields, guint n_fields, const char *group)
{
    g_autoptr(GString) names = g_string_new(NULL);
    for (guint i = 0; i < n_fields; i++) {
        const char *name = group != NULL ? fields[i].key : fields[i].group;
        if (group != NULL ? !g_str_equal(fields[i].group, group)
                          : i > 0 && g_str_equal(fields[i - 1].group, fields[i].group))
            continue;
        g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", name);
    }
    return g_string_free(g_steal_pointer(&names), FALSE);
}

static gboolean check_known(GKeyFile *file, const char *path, const NjField *fields, guint n_fields,
                            GError **error)
{
    g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);
    for (guint g = 0; groups[g] != NULL; g++) {
        if (find_field(fields, n_fields, groups[g], NULL) == NULL) {
            g_autofree char *known = list_names(fields, n_fields, NULL);
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: [%s]: unknown group; known groups: %s", path,
                        groups[g], known);
            return FALSE;
        }
        g_auto(GStrv) keys = g_key_file_get_keys(file, groups[g], NULL, NULL);
        for (guint k = 0; keys[k] != NULL; k++) {
            if (find_field(fields, n_fields, groups[g], keys[k]) != NULL)
                continue;
            g_autofree char *known = list_names(fields, n_fields, groups[g]);
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: [%s] %s: unknown key; known keys: %s", path,
                        groups[g], keys[k], known);
            return FALSE;
        }
    }
    return TRUE;
}

// Unit for a message; a pure number's unit "1" is not worth telling.
static const char *message_unit(const NjField *field)
{
    return g_str_equal(field->unit, "1") ? "" : field->unit;
}

static gboolean read_number(const NjField *field, const char *path, const char *text, double *number,
                            GError **error)
{
    char *end = NULL;
    *number = g_ascii_strtod(text, &end);
    const gboolean whole = field->type != NJ_FIELD_INT || *number == floor(*number);
    if (end != text && *end == '\0' && isfinite(*number) && whole && *number >= field->minimum &&
        *number <= field->maximum)
        return TRUE;
    g_autofree char *wanted = g_strdup_printf(
        "%s from %.10g to %.10g%s%s is needed", field->type == NJ_FIELD_INT ? "an integer" : "a number",
        field->minimum, field->maximum, message_unit(field)[0] != '\0' ? " " : "", message_unit(field));
    nj_keyfile_error(error, path, field->group, field->key, text, wanted);
    return FALSE;
}

// "a, b or c is needed", or "a or b is needed".
static char *list_choices(const char *const *choices)
{
    g_autoptr(GString) text = g_string_new(choices[0]);
    for (guint i = 1; choices[i] != NULL; i++)
        g_string_append_printf(text, "%s%s", choices[i + 1] != NULL ? ", " : " or ", choices[i]);
    g_string_append(text, " is needed");
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static gboolean read_choice(const NjField *field, const char *path, const char *text, int *index,
                            GError **error)
{
    for (int i = 0; field->choices[i] != NULL; i++) {
        if (g_str_equal(field->choices[i], text)) {
            *index = i;
            return TRUE;
        }
    }
    g_autofree char *wanted = list_choices(field->choices);
    nj_keyfile_error(error, path, field->group, field->key, text, wanted);
    return FALSE;
}

static gboolean read_text(GKeyFile *file, const char *path, const NjField *field, char **text, GError **error)
{
    // With a wrong escape GLib gives both a text and an error.
    g_autoptr(GError) inner = NULL;
    g_free(*text);
    *text = g_key_file_get_string(file, field->group, field->key, &inner);
    if (inner == NULL)
        return TRUE;
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                "%s: [%s] %s: UTF-8 text is needed, with no escapes but \\s, \\n, \\t, \\r and \\\\", path,
                field->group, field->key);
    return FALSE;
}

static gboolean read_field(GKeyFile *file, const char *path, const NjField *field, gpointer target,
                           GError **error)
{
    g_autofree char *raw = g_key_file_get_value(file, field->group, field->key, NULL);
    if (raw == NULL) {
        if (!field->required)
            return TRUE;
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: [%s] %s: missing; needed: %s%s%s%s", path,
                    field->group, field->key, field->description, message_unit(field)[0] != '\0' ? " (" : "",
                    message_unit(field), message_unit(field)[0] != '\0' ? ")" : "");
        return FALSE;
    }
    gpointer member = (char *)target + field->offset;
    double number;
    switch (field->type) {
    case NJ_FIELD_INT:
        if (!read_number(field, path, raw, &number, error))
            return FALSE;
        *(int *)member = (int)number;
        return TRUE;
    case NJ_FIELD_REAL:
        return read_number(field, path, raw, member, error);
    case NJ_FIELD_TEXT:
        return read_text(file, path, field, member, error);
    case NJ_FIELD_BOOL:
        if (!g_str_equal(raw, "true") && !g_str_equal(raw, "false")) {
            nj_keyfile_error(error, path, field->group, field->key, raw, "true or false is needed");
            return FALSE;
        }
        *(gboolean *)member = g_str_equal(raw, "true");
        return TRUE;
    case NJ_FIELD_CHOICE:
        return read_choice(field, path, raw, member, error);
    }
    g_assert_not_reached();
}

gboolean nj_keyfile_read(GKeyFile *file, const char *path, const NjField *fields, guint n_fields,
                         gpointer target, GError **error)
{
    if (!check_known(file, path, fields, n_fields, error))
        return FALSE;
    for (guint i = 0; i < n_fields; i++)
        if (!read_field(file, path, &fields[i], target, error))
            return FALSE;
    return TRUE;
}
