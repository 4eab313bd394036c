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

#define CHOICE(member, names, what)                                                                          \
    {                                                                                                        \
        GROUP, #member, NJ_FIELD_CHOICE, offsetof(NjArch, member), FALSE, 0, 0, "", what, names              \
    }

static const char *const mlps[] = {"swiglu", "gelu", NULL};
static const char *const norms[] = {"rmsnorm", "layernorm", NULL};
static const char *const positions[] = {"rope", "learned", NULL};
static const char *const attentions[] = {"flash", "materialized", NULL};

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
    CHOICE(mlp, mlps, "activation of the MLP"),
    CHOICE(norm, norms, "kind of norm"),
    CHOICE(positions, positions, "how positions come in"),
    CHOICE(attention, attentions, "whether attention scores are written to memory"),
    {GROUP, "biases", NJ_FIELD_BOOL, offsetof(NjArch, biases), FALSE, 0, 1, "",
     "linear layers but the LM head have biases"},
    {GROUP, "max_positions", NJ_FIELD_INT, offsetof(NjArch, max_positions), FALSE, 1, 1 << 24, "tokens",
     "rows of the table of learned positions"},
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

// A text member; "" where it is absent or something else.
static const char *json_text(JsonObject *object, const char *key)
{
    const char *text = json_object_get_string_member_with_default(object, key, "");
    return text != NULL ? text : ""; // json-glib gives NULL for a number
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
    const char *type = json_text(object, "model_type");
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
    const char *name = json_text(object, "_name_or_path");
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
    if (ok && (arch->positions == NJ_POSITIONS_LEARNED) != (arch->max_positions > 0)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: [%s] max_positions: %s", path, GROUP,
                    arch->max_positions > 0 ? "only positions = learned has a table"
                                            : "missing; positions = learned needs the size of its table");
        ok = FALSE;
    }
    if (!ok)
        nj_arch_clear(arch);
    return ok;
}

void nj_arch_init_gpt(NjArch *arch, int layers, int hidden, int heads, int vocab, int max_positions)
{
    g_assert(hidden % heads == 0);
    *arch = (NjArch){
        .name = g_strdup_printf("gpt-%dx%d", layers, hidden),
        .title = g_strdup_printf("GPT of %d layers, hidden size %d", layers, hidden),
        .hidden = hidden,
        .layers = layers,
        .heads = heads,
        .kv_heads = heads,
        .head_dim = hidden / heads,
        .ffn = 4 * hidden,
        .vocab = vocab,
        .tied_embeddings = TRUE,
        .mlp = NJ_MLP_GELU,
        .norm = NJ_NORM_LAYERNORM,
        .positions = NJ_POSITIONS_LEARNED,
        .attention = NJ_ATTENTION_MATERIALIZED,
        .biases = TRUE,
        .max_positions = max_positions,
    };
}

gboolean nj_arch_is_gpt_like(const NjArch *arch)
{
    return arch->mlp != NJ_MLP_SWIGLU || arch->norm != NJ_NORM_RMSNORM ||
           arch->positions != NJ_POSITIONS_ROPE || arch->attention != NJ_ATTENTION_FLASH || arch->biases;
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
    return d * (q + 2 * kv) + q * d + (arch->mlp == NJ_MLP_SWIGLU ? 3 : 2) * d * arch->ffn;
}

static double norm_parameters(const NjArch *arch)
{
    return (arch->norm == NJ_NORM_LAYERNORM ? 2.0 : 1.0) * arch->hidden;
}

double nj_arch_layer_parameters(const NjArch *arch)
{
    const double d = arch->hidden;
    const double qkv = ((double)arch->heads + 2.0 * arch->kv_heads) * arch->head_dim;
    const double fc1 = (arch->mlp == NJ_MLP_SWIGLU ? 2.0 : 1.0) * arch->ffn;
    return layer_matrix_parameters(arch) + 2 * norm_parameters(arch) +
           (arch->qk_norm ? 2.0 * arch->head_dim : 0.0) + (arch->biases ? qkv + d + fc1 + d : 0.0);
}

double nj_arch_parameters(const NjArch *arch)
{
    const double embedding = (double)arch->vocab * arch->hidden;
    return arch->layers * nj_arch_layer_parameters(arch) + norm_parameters(arch) +
           (double)arch->max_positions * arch->hidden + embedding * (arch->tied_embeddings ? 1 : 2);
}

double nj_arch_flop_per_token(const NjArch *arch, int seq_len)
{
    const double weights = arch->layers * layer_matrix_parameters(arch) + (double)arch->vocab * arch->hidden;
    const double attention = (double)arch->layers * seq_len * arch->heads * arch->head_dim;
    return 6.0 * weights + 6.0 * attention;
}
