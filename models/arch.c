// SPDX-License-Identifier: MIT
#include "models/arch.h"

#include "models/data.h"
#include "models/keyfile.h"
#include "sim/error.h"

#include <json-glib/json-glib.h>
#include <stddef.h>
#include <string.h>

#define GROUP "architecture"
#define TEXT(member, required, what)                                                                         \
    {                                                                                                        \
        GROUP, #member, NJ_FIELD_TEXT, offsetof(NjArch, member), required, 0, 0, "", what                    \
    }
#define COUNT(member, high, what)                                                                            \
    {                                                                                                        \
        GROUP, #member, NJ_FIELD_INT, offsetof(NjArch, member), TRUE, 1, high, "", what                      \
    }
#define FLAG(member, what)                                                                                   \
    {                                                                                                        \
        GROUP, #member, NJ_FIELD_BOOL, offsetof(NjArch, member), TRUE, 0, 1, "", what                        \
    }

static const NjField fields[] = {
    TEXT(name, TRUE, "short name, as in result tables"),
    TEXT(title, TRUE, "name as people write it"),
    TEXT(alias, FALSE, "what a published table calls it"),
    COUNT(hidden, 1 << 20, "hidden size"),
    COUNT(layers, 1 << 16, "number of transformer layers"),
    COUNT(heads, 1 << 16, "query heads"),
    COUNT(kv_heads, 1 << 16, "key and value heads"),
    COUNT(head_dim, 1 << 16, "size of a head"),
    COUNT(ffn, 1 << 24, "intermediate size of the MLP"),
    COUNT(vocab, 1 << 24, "vocabulary size"),
    FLAG(qk_norm, "RMSNorm on q and k"),
    FLAG(tied_embeddings, "LM head shares the embedding's weights"),
};

static gboolean load_keyfile(NjArch *arch, const char *path, GError **error)
{
    g_autoptr(GKeyFile) file = nj_keyfile_load(path, error);
    return file != NULL && nj_keyfile_read(file, path, fields, G_N_ELEMENTS(fields), arch, error);
}

// An integer member of config.json; fallback 0 makes it required.
static gboolean json_int(JsonObject *object, const char *path, const char *key, int fallback, int *value,
                         GError **error)
{
    JsonNode *node = json_object_get_member(object, key);
    if ((node == NULL || JSON_NODE_HOLDS_NULL(node)) && fallback > 0) {
        *value = fallback;
        return TRUE;
    }
    const gint64 number =
        node != NULL && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_INT64
            ? json_node_get_int(node)
            : 0;
    if (number < 1 || number > 1 << 24) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: %s: a positive integer is needed", path, key);
        return FALSE;
    }
    *value = (int)number;
    return TRUE;
}

static gboolean load_json(NjArch *arch, const char *path, GError **error)
{
    static const struct {
        const char *type;
        gboolean qk_norm;
    } families[] = {{"llama", FALSE}, {"mistral", FALSE}, {"qwen2", FALSE}, {"qwen3", TRUE}};
    GError *inner = NULL;
    g_autoptr(JsonParser) parser = json_parser_new();
    if (!json_parser_load_from_file(parser, path, &inner)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: not readable as JSON: %s", path, inner->message);
        g_clear_error(&inner);
        return FALSE;
    }
    JsonNode *root = json_parser_get_root(parser);
    if (root == NULL || !JSON_NODE_HOLDS_OBJECT(root)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s: a Hugging Face config.json (one JSON object) is needed", path);
        return FALSE;
    }
    JsonObject *object = json_node_get_object(root);
    const char *type = json_object_get_string_member_with_default(object, "model_type", "");
    guint family = 0;
    while (family < G_N_ELEMENTS(families) && !g_str_equal(type, families[family].type))
        family++;
    if (family == G_N_ELEMENTS(families)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s: model_type = '%s': llama, mistral, qwen2 or qwen3 is needed", path, type);
        return FALSE;
    }
    if (!json_int(object, path, "hidden_size", 0, &arch->hidden, error) ||
        !json_int(object, path, "num_hidden_layers", 0, &arch->layers, error) ||
        !json_int(object, path, "num_attention_heads", 0, &arch->heads, error) ||
        !json_int(object, path, "num_key_value_heads", arch->heads, &arch->kv_heads, error) ||
        !json_int(object, path, "head_dim", arch->hidden / arch->heads, &arch->head_dim, error) ||
        !json_int(object, path, "intermediate_size", 0, &arch->ffn, error) ||
        !json_int(object, path, "vocab_size", 0, &arch->vocab, error))
        return FALSE;
    arch->qk_norm = families[family].qk_norm;
    arch->tied_embeddings = json_object_get_boolean_member_with_default(object, "tie_word_embeddings", FALSE);
    const char *name = json_object_get_string_member_with_default(object, "_name_or_path", "");
    if (name[0] != '\0') {
        arch->title = g_path_get_basename(name);
    } else {
        g_autofree char *folder = g_path_get_dirname(path);
        arch->title = g_path_get_basename(g_str_equal(folder, ".") ? path : folder);
    }
    arch->name = g_ascii_strdown(arch->title, -1);
    return TRUE;
}

gboolean nj_arch_load(NjArch *arch, const char *name_or_path, GError **error)
{
    *arch = (NjArch){0};
    g_autofree char *path = nj_data_locate("models/archs", name_or_path, ".ini", error);
    if (path == NULL)
        return FALSE;
    gboolean ok =
        g_str_has_suffix(path, ".json") ? load_json(arch, path, error) : load_keyfile(arch, path, error);
    if (ok && arch->heads % arch->kv_heads != 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s: %d query heads are not a multiple of %d key and value heads", path, arch->heads,
                    arch->kv_heads);
        ok = FALSE;
    }
    if (!ok)
        nj_arch_clear(arch);
    return ok;
}

void nj_arch_clear(NjArch *arch)
{
    g_clear_pointer(&arch->name, g_free);
    g_clear_pointer(&arch->title, g_free);
    g_clear_pointer(&arch->alias, g_free);
}

static double layer_matrix_parameters(const NjArch *arch)
{
    const double d = arch->hidden;
    const double q = (double)arch->heads * arch->head_dim;
    const double kv = (double)arch->kv_heads * arch->head_dim;
    return d * (q + 2 * kv) + q * d + 3 * d * arch->ffn;
}

double nj_arch_layer_parameters(const NjArch *arch)
{
    return layer_matrix_parameters(arch) + 2.0 * arch->hidden + (arch->qk_norm ? 2.0 * arch->head_dim : 0.0);
}

double nj_arch_parameters(const NjArch *arch)
{
    const double embedding = (double)arch->vocab * arch->hidden;
    return arch->layers * nj_arch_layer_parameters(arch) + arch->hidden +
           embedding * (arch->tied_embeddings ? 1 : 2);
}

double nj_arch_flop_per_token(const NjArch *arch, int seq_len)
{
    const double weights = arch->layers * layer_matrix_parameters(arch) + (double)arch->vocab * arch->hidden;
    const double attention = (double)arch->layers * seq_len * arch->heads * arch->head_dim;
    return 6.0 * weights + 6.0 * attention;
}
