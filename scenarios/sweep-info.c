// SPDX-License-Identifier: MIT
// What a sweep's files are about: the journal's header, and whether two files belong together.
#include "scenarios/sweep-private.h"
#include "sim/error.h"

#include <string.h>

// A digest of the columns of all tables, by name and type.
static char *layout_digest(const NjGrid *grid, const NjEvaluator *evaluator)
{
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    for (guint kind = 0; kind < NJ_N_RESULTS; kind++) {
        guint n_columns;
        g_autofree NjColumn *columns = nj_result_columns(grid, evaluator, (NjResultKind)kind, &n_columns);
        for (guint c = 0; c < n_columns; c++) {
            g_autofree char *line =
                g_strdup_printf("%u %s %d\n", kind, columns[c].name, (int)columns[c].type);
            g_checksum_update(checksum, (const guchar *)line, -1);
        }
    }
    return g_strdup(g_checksum_get_string(checksum));
}

#define GROUP "sweep"

GByteArray *nj_sweep_header_encode(const NjStoreInfo *info, const NjGrid *grid, const NjEvaluator *evaluator)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autofree char *layout = layout_digest(grid, evaluator);
    g_key_file_set_string(file, GROUP, "layout", layout);
    g_key_file_set_string(file, GROUP, "text", info->text);
    g_key_file_set_string(file, GROUP, "hash", info->hash);
    g_key_file_set_string(file, GROUP, "version", info->version);
    g_key_file_set_string(file, GROUP, "inputs", info->inputs);
    g_key_file_set_int64(file, GROUP, "n_points", info->n_points);
    gsize size;
    char *text = g_key_file_to_data(file, &size, NULL);
    return g_byte_array_new_take((guint8 *)text, size);
}

gboolean nj_sweep_header_decode(const GByteArray *header, const NjGrid *grid, const NjEvaluator *evaluator,
                                NjStoreInfo *info)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    *info = (NjStoreInfo){0};
    if (header->len == 0 ||
        !g_key_file_load_from_data(file, (const char *)header->data, header->len, G_KEY_FILE_NONE, NULL))
        return FALSE;
    *info = (NjStoreInfo){
        .text = g_key_file_get_string(file, GROUP, "text", NULL),
        .hash = g_key_file_get_string(file, GROUP, "hash", NULL),
        .version = g_key_file_get_string(file, GROUP, "version", NULL),
        .inputs = g_key_file_get_string(file, GROUP, "inputs", NULL),
        .where = g_strdup(""),
        .n_points = g_key_file_get_int64(file, GROUP, "n_points", NULL),
    };
    g_autofree char *stored = g_key_file_get_string(file, GROUP, "layout", NULL);
    g_autofree char *layout = layout_digest(grid, evaluator);
    // Another scenario may have other axes and so other columns: it is told from this one by its keys
    // instead.
    const gboolean complete =
        info->text != NULL && info->hash != NULL && info->version != NULL && info->inputs != NULL;
    return complete && (g_strcmp0(stored, layout) == 0 || info->n_points != grid->n_points);
}

// ---- Differences

static void add_difference(GString *text, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void add_difference(GString *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (text->len > 0)
        g_string_append(text, "; ");
    g_string_append_vprintf(text, format, arguments);
    va_end(arguments);
}

static char *value_of(GKeyFile *file, const char *group, const char *key)
{
    char *value = g_key_file_get_value(file, group, key, NULL);
    return value != NULL ? g_strstrip(value) : NULL;
}

// Keys of one file that the other lacks or, with `both`, has with another value.
static void compare_keys(GKeyFile *one, GKeyFile *other, gboolean both, const char *only, GString *text)
{
    g_auto(GStrv) groups = g_key_file_get_groups(one, NULL);
    for (char **group = groups; *group != NULL; group++) {
        g_auto(GStrv) keys = g_key_file_get_keys(one, *group, NULL, NULL);
        for (char **key = keys; keys != NULL && *key != NULL; key++) {
            g_autofree char *a = value_of(one, *group, *key);
            g_autofree char *b = value_of(other, *group, *key);
            if (b == NULL)
                add_difference(text, "[%s] %s = %s only %s", *group, *key, a, only);
            else if (both && !g_str_equal(a, b))
                add_difference(text, "[%s] %s = %s there, %s here", *group, *key, a, b);
        }
    }
}

static void compare_inputs(const char *there, const char *here, GString *text)
{
    g_auto(GStrv) a = g_strsplit(there, "\n", -1);
    g_auto(GStrv) b = g_strsplit(here, "\n", -1);
    for (char **line = b; *line != NULL; line++) {
        if (**line == '\0' || g_strv_contains((const char *const *)a, *line))
            continue;
        g_autofree char *name = g_strndup(*line, strcspn(*line, " "));
        add_difference(text, "the file %s has another content", name);
    }
}

gboolean nj_sweep_check_same(const char *a_name, const NjStoreInfo *a, const NjStoreInfo *b, GError **error)
{
    g_autoptr(GString) differences = g_string_new(NULL);
    if (!g_str_equal(a->text, b->text)) {
        g_autoptr(GKeyFile) there = g_key_file_new();
        g_autoptr(GKeyFile) here = g_key_file_new();
        // A text that is no key file has no keys, and then all keys of the other differ.
        g_key_file_load_from_data(there, a->text, (gsize)-1, G_KEY_FILE_NONE, NULL);
        g_key_file_load_from_data(here, b->text, (gsize)-1, G_KEY_FILE_NONE, NULL);
        compare_keys(there, here, TRUE, "there", differences);
        compare_keys(here, there, FALSE, "here", differences);
    }
    compare_inputs(a->inputs, b->inputs, differences);
    if (!g_str_equal(a->version, b->version))
        add_difference(differences, "computed by nanojoule %s, this is %s", a->version, b->version);
    if (differences->len == 0)
        return TRUE;
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: belongs to another sweep: %s", a_name,
                differences->str);
    return FALSE;
}
