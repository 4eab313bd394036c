// SPDX-License-Identifier: MIT
// What GPU and architecture files, Hugging Face configurations and workloads are refused for.
#include "models/data.h"
#include "models/workload.h"
#include "tests/scratch.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

// The text with the line of a key replaced; with NULL, without it.
static char *with_line(const char *text, const char *key, const char *line)
{
    g_autoptr(GString) out = g_string_new(NULL);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    guint n_found = 0;
    for (guint i = 0; lines[i] != NULL; i++) {
        const gboolean found = g_str_has_prefix(lines[i], key);
        n_found += found;
        if (!found)
            g_string_append_printf(out, "%s\n", lines[i]);
        else if (line != NULL)
            g_string_append_printf(out, "%s\n", line);
    }
    ck_assert_msg(n_found == 1, "%u lines begin with '%s'", n_found, key);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

// "PATH" in a message stands for the file.
static void assert_message(GError **error, const char *message, const char *path, gboolean whole)
{
    g_auto(GStrv) parts = g_strsplit(message, "PATH", -1);
    g_autofree char *expected = g_strjoinv(path, parts);
    ck_assert_msg(*error != NULL, "no error; expected: %s", expected);
    ck_assert_msg(whole ? g_str_equal((*error)->message, expected)
                        : g_str_has_prefix((*error)->message, expected),
                  "%s\n%s", (*error)->message, expected);
    g_clear_error(error);
}

static char *shipped_text(const char *relative)
{
    g_autofree char *path = nj_data_find(relative);
    char *text = NULL;
    ck_assert_msg(g_file_get_contents(path, &text, NULL, NULL), "%s", path);
    return text;
}

typedef struct {
    const char *key, *line, *message;
    gboolean prefix; // of the message
} Refused;

START_TEST(gpus)
{
    static const Refused rows[] = {
        {"sm_count", NULL, "PATH: [gpu] sm_count: missing; needed: streaming multiprocessors (SMs)", FALSE},
        {"name", NULL, "PATH: [gpu] name: missing; needed: the GPU's full name", FALSE},
        {"sm_count", "sm_count = 10.5",
         "PATH: [gpu] sm_count = 10.5: an integer from 1 to 1024 SMs is needed", FALSE},
        {"sm_count", "sm_count = 0", "PATH: [gpu] sm_count = 0: an integer from 1 to 1024 SMs is needed",
         FALSE},
        {"sm_count", "sm_count = many",
         "PATH: [gpu] sm_count = many: an integer from 1 to 1024 SMs is needed", FALSE},
        {"static_w", "static_w = -1", "PATH: [gpu] static_w = -1: a number from 0 to 1000 W is needed",
         FALSE},
        {"static_w", "static_w = 85W", "PATH: [gpu] static_w = 85W: a number from 0 to 1000 W is needed",
         FALSE},
        {"static_w", "static_w = nan", "PATH: [gpu] static_w = nan: a number from 0 to 1000 W is needed",
         FALSE},
        {"static_w", "static_w = inf", "PATH: [gpu] static_w = inf: a number from 0 to 1000 W is needed",
         FALSE},
        {"static_w", "static_w =", "PATH: [gpu] static_w = : a number from 0 to 1000 W is needed", FALSE},
        {"calibrated", "calibrated = 1", "PATH: [gpu] calibrated = 1: true or false is needed", FALSE},
        {"freq_max_mhz", "freq_max_mhz = 1411",
         "PATH: [gpu] freq_max_mhz = 1411: freq_min_mhz (900) plus a multiple of freq_step_mhz (30) is "
         "needed",
         FALSE},
        {"freq_max_mhz", "freq_max_mhz = 870",
         "PATH: [gpu] freq_max_mhz = 870: freq_min_mhz (900) plus a multiple of freq_step_mhz (30) is needed",
         FALSE},
        {"kernels", "kernels = a101",
         "PATH: [gpu] kernels = a101: a101: not in models/kernels; shipped: ", TRUE},
        {"kernels", "kernels = /none/a100.ini",
         "PATH: [gpu] kernels = /none/a100.ini: /none/a100.ini: No such file or directory", FALSE},
        {"sm_count", "sm_count = 108\nsms = 108",
         "PATH: [gpu] sms: unknown key; known keys: name, calibrated, ", TRUE},
        {"[model]", "[power]\nx = 1\n[model]", "PATH: [power]: unknown group; known groups: gpu, model",
         FALSE},
        {"name", "name = A\xff",
         "PATH: [gpu] name: UTF-8 text is needed, with no escapes but \\s, \\n, \\t, \\r and \\\\", FALSE},
        {"name", "name = A\\x100",
         "PATH: [gpu] name: UTF-8 text is needed, with no escapes but \\s, \\n, \\t, \\r and \\\\", FALSE},
        {"sm_count", "sm_count", "PATH: Key file contains line ", TRUE},
        {"clock_w", NULL, "PATH: [model] clock_w: missing; needed: ", TRUE},
    };
    g_autofree char *text = shipped_text("models/gpus/a100-sxm4-40gb.ini");
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        NjGpu gpu;
        g_autofree char *changed = with_line(text, rows[i].key, rows[i].line);
        g_autofree char *path = write_scratch("gpu.ini", changed);
        ck_assert_msg(!nj_gpu_load(&gpu, path, &error), "%s: accepted", rows[i].message);
        assert_message(&error, rows[i].message, path, !rows[i].prefix);
    }

    GError *error = NULL;
    NjGpu gpu;
    g_autofree char *absent = g_build_filename(scratch, "absent.ini", NULL);
    ck_assert(!nj_gpu_load(&gpu, absent, &error));
    assert_message(&error, "PATH: No such file or directory", absent, TRUE);
    g_autofree char *same = write_scratch("same.ini", text);
    nj_assert_ok(nj_gpu_load(&gpu, same, &error), error);
    nj_gpu_clear(&gpu);
    nj_gpu_clear(&gpu); // harmless
}
END_TEST

// A GPU that takes another's constants.
START_TEST(carried_over)
{
    g_autofree char *text = shipped_text("models/gpus/a100-sxm4-40gb.ini");
    g_auto(GStrv) halves = g_strsplit(text, "[model]", 2);
    const char *data_sheet = halves[0];
    g_autofree char *base_path = write_scratch("base.ini", text);
    GError *error = NULL;
    g_auto(NjGpu) base = {0};
    nj_assert_ok(nj_gpu_load(&base, base_path, &error), error);

    // Twice the power that work can draw: every power doubles, shares and times stay.
    g_autofree char *limit =
        g_strdup_printf("power_limit_w = %.17g", base.static_w + 2 * (base.power_limit_w - base.static_w));
    g_autofree char *doubled = with_line(data_sheet, "power_limit_w", limit);
    g_autofree char *other_text =
        g_strdup_printf("%s\nconstants_of = %s\n[model]\nlink_w = 1\n", doubled, base_path);
    g_autofree char *other_path = write_scratch("other.ini", other_text);
    g_auto(NjGpu) other = {0};
    nj_assert_ok(nj_gpu_load(&other, other_path, &error), error);
    ck_assert_double_eq_tol(other.gemm_w / base.gemm_w, 2, 1e-12);
    ck_assert_double_eq_tol(other.hbm_w / base.hbm_w, 2, 1e-12);
    ck_assert_double_eq(other.link_w, 1); // the file's own
    ck_assert_double_eq(other.gemm_share, base.gemm_share);
    ck_assert_double_eq(other.kernel_gap_us, base.kernel_gap_us);

    static const struct {
        const char *of, *message;
        gboolean prefix;
    } rows[] = {
        {"b200", "PATH: [gpu] constants_of = b200: b200: not in models/gpus; shipped: ", TRUE},
        {"/none.ini", "PATH: [gpu] constants_of = /none.ini: /none.ini: No such file or directory", FALSE},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        NjGpu gpu;
        g_autofree char *bad = g_strdup_printf("%s\nconstants_of = %s\n", data_sheet, rows[i].of);
        g_autofree char *path = write_scratch("bad.ini", bad);
        ck_assert(!nj_gpu_load(&gpu, path, &error));
        assert_message(&error, rows[i].message, path, !rows[i].prefix);
    }
    // Of one that has them from a third: one step only.
    NjGpu gpu;
    g_autofree char *chain = g_strdup_printf("%s\nconstants_of = %s\n", data_sheet, other_path);
    g_autofree char *chain_path = write_scratch("chain.ini", chain);
    g_autofree char *message = g_strdup_printf(
        "PATH: [gpu] constants_of = %s: a GPU with constants of its own is needed", other_path);
    ck_assert(!nj_gpu_load(&gpu, chain_path, &error));
    assert_message(&error, message, chain_path, TRUE);
}
END_TEST

START_TEST(frequencies)
{
    static const struct {
        int freq_mhz;
        gboolean has;
    } rows[] = {{900, TRUE},   {1410, TRUE},  {1110, TRUE}, {870, FALSE},
                {1440, FALSE}, {1405, FALSE}, {0, FALSE},   {-900, FALSE}};
    g_auto(NjGpu) gpu = {0};
    ck_assert(nj_gpu_load(&gpu, "a100-sxm4-40gb", NULL));
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        ck_assert_msg(nj_gpu_has_freq(&gpu, rows[i].freq_mhz) == rows[i].has, "%d MHz", rows[i].freq_mhz);
}
END_TEST

START_TEST(architectures)
{
    static const Refused rows[] = {
        {"hidden", NULL, "PATH: [architecture] hidden: missing; needed: hidden size", FALSE},
        {"hidden", "hidden = 0", "PATH: [architecture] hidden = 0: an integer from 1 to 1048576 is needed",
         FALSE},
        {"layers", "layers = 1e9", "PATH: [architecture] layers = 1e9: an integer from 1 to 65536 is needed",
         FALSE},
        {"qk_norm", "qk_norm = yes", "PATH: [architecture] qk_norm = yes: true or false is needed", FALSE},
        {"kv_heads", "kv_heads = 7", "PATH: 24 query heads are not a multiple of 7 key and value heads",
         FALSE},
        {"hidden", "hidden = 3072\nmlp = relu", "PATH: [architecture] mlp = relu: swiglu or gelu is needed",
         FALSE},
        {"hidden", "hidden = 3072\nexperts = 8",
         "PATH: [architecture] experts: unknown key; known keys: name, title, ", TRUE},
    };
    g_autofree char *text = shipped_text("models/archs/llama-3.2-3b.ini");
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        NjArch arch;
        g_autofree char *changed = with_line(text, rows[i].key, rows[i].line);
        g_autofree char *path = write_scratch("arch.ini", changed);
        ck_assert_msg(!nj_arch_load(&arch, path, &error), "%s: accepted", rows[i].message);
        assert_message(&error, rows[i].message, path, !rows[i].prefix);
    }
}
END_TEST

#define CONFIG(more)                                                                                         \
    "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 4," \
    " \"intermediate_size\": 256, \"vocab_size\": 128" more "}"

START_TEST(hugging_face_configurations)
{
    static const struct {
        const char *text, *message; // NULL: accepted
        int kv_heads, head_dim;
        const char *title;
        gboolean prefix;
    } rows[] = {
        {CONFIG(""), NULL, 4, 16, NULL, FALSE}, // multi-head attention, heads that share the hidden size
        {CONFIG(", \"num_key_value_heads\": null, \"head_dim\": null"), NULL, 4, 16, NULL, FALSE},
        {CONFIG(", \"num_key_value_heads\": 2, \"head_dim\": 32"), NULL, 2, 32, NULL, FALSE},
        {CONFIG(", \"_name_or_path\": \"meta/Small-2B\""), NULL, 4, 16, "Small-2B", FALSE},
        {CONFIG(", \"num_key_value_heads\": 3"),
         "PATH: 4 query heads are not a multiple of 3 key and value heads", 0, 0, NULL, FALSE},
        {CONFIG(", \"num_key_value_heads\": 0"), "PATH: num_key_value_heads: a positive integer is needed", 0,
         0, NULL, FALSE},
        {CONFIG(", \"head_dim\": 16.5"), "PATH: head_dim: a positive integer is needed", 0, 0, NULL, FALSE},
        {CONFIG(", \"head_dim\": [16]"), "PATH: head_dim: a positive integer is needed", 0, 0, NULL, FALSE},
        {"{\"model_type\": \"llama\", \"hidden_size\": 64}",
         "PATH: num_hidden_layers: a positive integer is needed", 0, 0, NULL, FALSE},
        {"{}", "PATH: model_type = '': llama, mistral, qwen2 or qwen3 is needed", 0, 0, NULL, FALSE},
        {"", "PATH: a Hugging Face config.json (one JSON object) is needed", 0, 0, NULL, FALSE},
        {"{\"model_type\": ", "PATH: not readable as JSON: ", 0, 0, NULL, TRUE},
        {"{\"model_type\": 7}", "PATH: model_type = '': llama, mistral, qwen2 or qwen3 is needed", 0, 0, NULL,
         FALSE},
        {CONFIG(", \"_name_or_path\": 7"), NULL, 4, 16, NULL, FALSE},
        {CONFIG(", \"_name_or_path\": null"), NULL, 4, 16, NULL, FALSE},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_auto(NjArch) arch = {0};
        g_autofree char *path = write_scratch("config.json", rows[i].text);
        const gboolean ok = nj_arch_load(&arch, path, &error);
        if (rows[i].message != NULL) {
            ck_assert_msg(!ok, "%s: accepted", rows[i].text);
            assert_message(&error, rows[i].message, path, !rows[i].prefix);
            continue;
        }
        nj_assert_ok(ok, error);
        ck_assert_int_eq(arch.kv_heads, rows[i].kv_heads);
        ck_assert_int_eq(arch.head_dim, rows[i].head_dim);
        // A nameless configuration is called after its folder.
        g_autofree char *parent = g_path_get_basename(scratch);
        ck_assert_str_eq(arch.title, rows[i].title != NULL ? rows[i].title : parent);
    }
}
END_TEST

START_TEST(workloads)
{
    static const struct {
        const char *label;
        NjParallelism parallelism;
        int seq_len, vocab, ffn, kv_heads, heads;
        int first_stage; // layers, or 0: an even split
        const char *message;
    } rows[] = {
        {"fits", {4, 2, 2, 1}, 4096, 1024, 512, 4, 8, 0, NULL},
        {"key and value heads on two ranks each", {8, 1, 2, 1}, 4096, 1024, 512, 4, 8, 0, NULL},
        {"stages",
         {4, 1, 5, 1},
         4096,
         1024,
         512,
         4,
         8,
         0,
         "pp = 5: at most 4 stages (4 layers) are possible"},
        {"node",
         {8, 2, 1, 1},
         4096,
         1024,
         512,
         4,
         8,
         0,
         "tp x cp = 16: tensor and context parallelism stay inside a node of 8 GPUs"},
        {"no layer", {4, 1, 2, 1}, 4096, 1024, 512, 4, 8, -1, "stage 0 has -1 layers: at least 1 is needed"},
        {"sum", {4, 1, 2, 1}, 4096, 1024, 512, 4, 8, 3, "the stages' layers sum to 5 where small has 4"},
        {"heads",
         {4, 1, 1, 1},
         4096,
         1024,
         512,
         3,
         6,
         0,
         "the number of heads 6 is not a multiple of tp = 4"},
        {"kv heads",
         {4, 1, 1, 1},
         4096,
         1024,
         512,
         6,
         12,
         0,
         "the number of key and value heads 6 is not a multiple of tp = 4"},
        {"MLP", {8, 1, 1, 1}, 4096, 1024, 516, 8, 8, 0, "the MLP size 516 is not a multiple of tp = 8"},
        {"vocabulary",
         {8, 1, 1, 1},
         4096,
         1028,
         512,
         8,
         8,
         0,
         "the vocabulary 1028 is not a multiple of tp = 8"},
        // Each rank has two chunks, from the front and the back, so that causal attention is even.
        {"sequence",
         {2, 2, 1, 1},
         4098,
         1024,
         512,
         8,
         8,
         0,
         "the sequence length 4098 is not a multiple of 2 x cp = 4"},
        {"sequence without cp", {2, 1, 1, 1}, 4097, 1024, 512, 8, 8, 0, NULL},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_auto(NjWorkload) workload = {
            .arch = {.hidden = 64,
                     .layers = 4,
                     .heads = rows[i].heads,
                     .kv_heads = rows[i].kv_heads,
                     .head_dim = 16,
                     .ffn = rows[i].ffn,
                     .vocab = rows[i].vocab},
            .gpu = {.gpus_per_node = 8},
            .parallelism = rows[i].parallelism,
            .seq_len = rows[i].seq_len,
            .microbatch_size = 2,
            .microbatches = 1,
        };
        workload.arch.name = g_strdup("small");
        nj_workload_split_layers(&workload);
        if (rows[i].first_stage != 0)
            workload.layers[0] = rows[i].first_stage;
        const gboolean ok = nj_workload_check(&workload, &error);
        if (rows[i].message == NULL) {
            ck_assert_msg(ok, "%s: %s", rows[i].label, error != NULL ? error->message : "");
        } else {
            ck_assert_msg(!ok, "%s: accepted", rows[i].label);
            nj_assert_error(error, rows[i].message);
        }
    }
}
END_TEST

START_TEST(splits_and_names)
{
    static const struct {
        NjParallelism parallelism;
        const char *with_pp, *without_pp;
        int gpus;
        int layers[4]; // of 10
    } rows[] = {
        {{8, 1, 1, 1}, "tp8", "tp8", 8, {10}},
        {{4, 2, 2, 1}, "cp2tp4pp2", "cp2tp4", 16, {5, 5}},
        {{1, 1, 4, 3}, "tp1pp4dp3", "tp1dp3", 12, {3, 3, 2, 2}}, // the first stages take what is left over
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        const NjParallelism *p = &rows[i].parallelism;
        NjWorkload workload = {.arch = {.layers = 10}, .parallelism = *p};
        g_autofree char *with_pp = nj_parallelism_format(p, TRUE);
        g_autofree char *without_pp = nj_parallelism_format(p, FALSE);
        ck_assert_str_eq(with_pp, rows[i].with_pp);
        ck_assert_str_eq(without_pp, rows[i].without_pp);
        ck_assert_int_eq(nj_parallelism_gpus(p), rows[i].gpus);
        nj_workload_split_layers(&workload);
        for (int stage = 0; stage < p->pp; stage++)
            ck_assert_msg(workload.layers[stage] == rows[i].layers[stage], "%s: stage %d: %d layers", with_pp,
                          stage, workload.layers[stage]);
    }
}
END_TEST

#define N_MUTATIONS 1500

// Whatever a file holds, it is read or refused with a message.
START_TEST(any_file)
{
    static const struct {
        const char *name, *shipped, *text;
        gboolean gpu;
    } rows[] = {
        {"gpu.ini", "models/gpus/a40.ini", NULL, TRUE}, // takes over another's constants
        {"arch.ini", "models/archs/llama-3.2-3b.ini", NULL, FALSE},
        {"config.json", NULL, CONFIG(", \"num_key_value_heads\": 2, \"_name_or_path\": \"a/b\""), FALSE},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        guint n_read = 0, n_refused = 0;
        g_autofree char *text = rows[i].text != NULL ? g_strdup(rows[i].text) : shipped_text(rows[i].shipped);
        for (guint32 seed = 0; seed < N_MUTATIONS; seed++) {
            GError *error = NULL;
            NjGpu gpu;
            NjArch arch;
            g_autofree char *mutated = nj_test_mutate(text, seed);
            g_autofree char *path = write_scratch(rows[i].name, mutated);
            const gboolean ok =
                rows[i].gpu ? nj_gpu_load(&gpu, path, &error) : nj_arch_load(&arch, path, &error);
            ck_assert_msg(ok == (error == NULL), "%s, seed %u", rows[i].name, seed);
            if (ok) {
                n_read++;
                if (rows[i].gpu)
                    nj_gpu_clear(&gpu);
                else
                    nj_arch_clear(&arch);
                continue;
            }
            n_refused++;
            ck_assert_msg(strstr(error->message, path) != NULL, "%s, seed %u: no file in '%s'", rows[i].name,
                          seed, error->message);
            g_clear_error(&error);
        }
        ck_assert_msg(n_read > 0 && n_refused > 0, "%s: %u read, %u refused", rows[i].name, n_read,
                      n_refused);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("keyfiles");
    TCase *tests = tcase_create("keyfiles");
    tcase_add_checked_fixture(tests, make_scratch, remove_scratch);
    tcase_add_test(tests, gpus);
    tcase_add_test(tests, carried_over);
    tcase_add_test(tests, frequencies);
    tcase_add_test(tests, architectures);
    tcase_add_test(tests, hugging_face_configurations);
    tcase_add_test(tests, workloads);
    tcase_add_test(tests, splits_and_names);
    tcase_add_test(tests, any_file);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
