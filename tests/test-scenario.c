// SPDX-License-Identifier: MIT
#include "scenarios/scenario.h"
#include "tests/testing.h"

#include <glib/gstdio.h>
#include <string.h>

static const char *const valid = "[workload]\n"
                                 "model = llama-3.2-3b\n"
                                 "seq_len = 4096\n"
                                 "microbatch_size = 8\n"
                                 "microbatches = 8\n"
                                 "[cluster]\n"
                                 "gpu = a100-sxm4-40gb\n"
                                 "parallelism = tp8\n"
                                 "pipeline_stages = 2\n"
                                 "layers_per_stage = 15;13\n"
                                 "[execution]\n"
                                 "method = megatron\n";

// Loads the valid scenario with one line replaced (or, where old is NULL, a line added at the end).
static gboolean load(const char *old, const char *new, NjScenario *scenario, GError **error)
{
    g_autofree char *text = NULL;
    if (old != NULL) {
        g_auto(GStrv) parts = g_strsplit(valid, old, 2);
        ck_assert_msg(parts[0] != NULL && parts[1] != NULL, "no '%s' in the scenario", old);
        text = g_strconcat(parts[0], new, parts[1], NULL);
    } else {
        text = g_strconcat(valid, new, NULL);
    }
    g_autoptr(GKeyFile) file = g_key_file_new();
    ck_assert(g_key_file_load_from_data(file, text, strlen(text), G_KEY_FILE_NONE, NULL));
    return nj_scenario_from_keyfile(scenario, file, "dir/s.ini", error);
}

START_TEST(reads)
{
    g_autoptr(GError) error = NULL;
    g_auto(NjScenario) scenario = {0};
    nj_assert_ok(load(NULL, "", &scenario, &error), error);
    ck_assert_str_eq(scenario.workload.arch.name, "llama-3.2-3b");
    ck_assert_int_eq(scenario.workload.parallelism.tp, 8);
    ck_assert_int_eq(scenario.workload.parallelism.pp, 2);
    ck_assert_int_eq(scenario.workload.layers[0], 15);
    ck_assert_int_eq(scenario.workload.layers[1], 13);
    ck_assert_int_eq(scenario.method, NJ_METHOD_MEGATRON);
    ck_assert_str_eq(scenario.schedule->name, "1f1b");
    ck_assert(scenario.point_to_point);
}
END_TEST

START_TEST(errors_say_file_group_key_value_and_what_would_be_right)
{
    static const struct {
        const char *old, *new, *message;
    } rows[] = {
        {"seq_len = 4096", "seq_len = 4k",
         "dir/s.ini: [workload] seq_len = 4k: an integer from 1 to 16777216 tokens is needed"},
        {"microbatch_size = 8\n", "",
         "dir/s.ini: [workload] microbatch_size: missing; needed: sequences of a microbatch (sequences)"},
        {"microbatches = 8", "microbatches = 0",
         "dir/s.ini: [workload] microbatches = 0: an integer from 1 to 65536 is needed"},
        {"parallelism = tp8", "parallelism = 8",
         "dir/s.ini: [cluster] parallelism = 8: degrees such as tp8, cp2tp4 or tp4pp2 are needed"},
        {"parallelism = tp8", "parallelism = tp8pp4",
         "dir/s.ini: [cluster] parallelism = tp8pp4: it differs from pipeline_stages = 2"},
        {"parallelism = tp8", "parallelism = tp7",
         "dir/s.ini: the number of heads 24 is not a multiple of tp = 7"},
        {"parallelism = tp8", "parallelism = cp2tp8",
         "dir/s.ini: tp x cp = 16: tensor and context parallelism stay inside a node of 8 GPUs"},
        {"seq_len = 4096\n", "seq_len = 4097\n", NULL}, // fine without context parallelism
        {"layers_per_stage = 15;13", "layers_per_stage = 15;14",
         "dir/s.ini: the stages' layers sum to 29 where llama-3.2-3b has 28"},
        {"layers_per_stage = 15;13", "layers_per_stage = 28",
         "dir/s.ini: [cluster] layers_per_stage = 28: 2 positive integers that sum to 28, separated by ';', "
         "are needed"},
        {"layers_per_stage = 15;13", "layers_per_stage = 15;13;", NULL}, // a list may end in its separator
        {"layers_per_stage = 15;13", "layers_per_stage = 28;0",
         "dir/s.ini: [cluster] layers_per_stage = 28;0: 2 positive integers that sum to 28, separated by "
         "';', are needed"},
        {"parallelism = tp8\npipeline_stages = 2\nlayers_per_stage = 15;13", "parallelism = tp8pp65",
         "dir/s.ini: [cluster] parallelism = tp8pp65: at most 64 stages are possible"},
        {"parallelism = tp8\npipeline_stages = 2\nlayers_per_stage = 15;13", "parallelism = tp8pp29",
         "dir/s.ini: pp = 29: at most 28 stages (28 layers) are possible"},
        {"method = megatron", "method = megatron\ndeadline_s = 5",
         "dir/s.ini: [execution] deadline_s = 5: only a method that plans, without frequency_mhz and "
         "freqs_file, can meet it"},
        {"method = megatron", "method = kareus\ndeadline_s = 5\nfrequency_mhz = 1410",
         "dir/s.ini: [execution] deadline_s = 5: only a method that plans, without frequency_mhz and "
         "freqs_file, can meet it"},
        {"method = megatron", "method = kareus\ndeadline_s = soon",
         "dir/s.ini: [execution] deadline_s = soon: a number from 1e-06 to 1000000 s is needed"},
        {"method = megatron", "method = kareus\ndeadline_s = 5", NULL},
        {"method = megatron", "method = megatron\nrecompute = half",
         "dir/s.ini: [execution] recompute = half: full, selective or none is needed"},
        {"method = megatron", "method = magic",
         "dir/s.ini: [execution] method = magic: megatron, megatron+perseus, nanobatching+perseus or kareus "
         "is needed"},
        {"method = megatron", "method = megatron\nfrequency_mhz = 1000",
         "dir/s.ini: [execution] frequency_mhz = 1000: NVIDIA A100-SXM4-40GB has 900 to 1410 MHz in steps of "
         "30"},
        {"method = megatron", "method = megatron\nschedule = gpipe",
         "dir/s.ini: [execution] schedule = gpipe: 1f1b is needed"},
        {"method = megatron", "method = megatron\nscheds_file = s.py",
         "dir/s.ini: [execution] scheds_file = s.py: it needs the freqs_file of the same plan"},
        {"method = megatron", "method = megatron\npoint_to_point = yes",
         "dir/s.ini: [execution] point_to_point = yes: true or false is needed"},
        {"method = megatron", "method = megatron\ndeadline_s = 5",
         "dir/s.ini: [execution] deadline_s = 5: only a method that plans, without frequency_mhz and "
         "freqs_file, can meet it"},
        {"method = megatron", "method = kareus\nfrequency_mhz = 1410\ndeadline_s = 5.5",
         "dir/s.ini: [execution] deadline_s = 5.5: only a method that plans, without frequency_mhz and "
         "freqs_file, can meet it"},
        {"method = megatron", "method = kareus\ndeadline_s = 5\n", NULL},
        {"[execution]", "[exec]",
         "dir/s.ini: [exec]: unknown group; known groups: workload, cluster, execution"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_auto(NjScenario) scenario = {0};
        const gboolean ok = load(rows[i].old, rows[i].new, &scenario, &error);
        if (rows[i].message == NULL) {
            nj_assert_ok(ok, error);
            continue;
        }
        ck_assert(!ok);
        nj_assert_error(error, rows[i].message);
    }
}
END_TEST

START_TEST(errors_list_what_is_known)
{
    static const struct {
        const char *old, *new, *starts;
    } rows[] = {
        {"seq_len = 4096", "seqlen = 4096",
         "dir/s.ini: [workload] seqlen: unknown key; known keys: model, seq_len, "},
        {"model = llama-3.2-3b", "model = llama-9",
         "dir/s.ini: [workload] model = llama-9: llama-9: not in models/archs; shipped: "},
        {"gpu = a100-sxm4-40gb", "gpu = b200",
         "dir/s.ini: [cluster] gpu = b200: b200: not in models/gpus; shipped: "},
        {"method = megatron", "method = megatron\nstack = my-stack",
         "dir/s.ini: [execution] stack = my-stack: my-stack: not in models/stacks; shipped: "},
        {"model = llama-3.2-3b", "model = none/config.json",
         "dir/s.ini: [workload] model = none/config.json: "},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_auto(NjScenario) scenario = {0};
        ck_assert(!load(rows[i].old, rows[i].new, &scenario, &error));
        ck_assert_msg(g_str_has_prefix(error->message, rows[i].starts), "%s", error->message);
    }
}
END_TEST

// Where the clocks come from, as reports say it.
START_TEST(plans_in_words)
{
    static const struct {
        const char *method, *words;
        gboolean unlocked;
    } rows[] = {
        {"method = megatron", "clocks unlocked, at 1410 MHz", TRUE},
        {"method = megatron\nfrequency_mhz = 900", "all instructions at 900 MHz", FALSE},
        {"method = kareus", "its fastest plan", FALSE},
        {"method = kareus\ndeadline_s = 5.5", "its plan of least energy within 5.5 s", FALSE},
        {"method = megatron+perseus\nfreqs_file = f.py", "clocks of its plan files", FALSE},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_auto(NjScenario) scenario = {0};
        nj_assert_ok(load("method = megatron", rows[i].method, &scenario, &error), error);
        g_autofree char *words = nj_scenario_describe_plan(&scenario);
        ck_assert_str_eq(words, rows[i].words);
        ck_assert_msg(nj_scenario_execute_options(&scenario).unlocked == rows[i].unlocked, "%s",
                      rows[i].method);
    }
}
END_TEST

// A path is relative to the scenario, a name is not.
START_TEST(paths)
{
    static const struct {
        const char *name, *resolved;
    } rows[] = {
        {"llama-3.2-3b", "llama-3.2-3b"}, {"my.ini", "dir/my.ini"}, {"sub/x", "dir/sub/x"},
        {"/a/b.ini", "/a/b.ini"},         {"c.json", "dir/c.json"}, {"f.py", "dir/f.py"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *resolved = nj_scenario_resolve("dir/s.ini", rows[i].name);
        ck_assert_str_eq(resolved, rows[i].resolved);
    }
}
END_TEST

// Whatever a scenario says, it is read or refused with a message that begins with its file.
START_TEST(any_scenario)
{
    guint n_read = 0, n_refused = 0;
    for (guint32 seed = 0; seed < 3000; seed++) {
        GError *error = NULL;
        g_auto(NjScenario) scenario = {0};
        g_autoptr(GKeyFile) file = g_key_file_new();
        g_autofree char *text = nj_test_mutate(valid, seed);
        if (!g_key_file_load_from_data(file, text, strlen(text), G_KEY_FILE_NONE, NULL))
            continue;
        const gboolean ok = nj_scenario_from_keyfile(&scenario, file, "dir/s.ini", &error);
        ck_assert_msg(ok == (error == NULL), "seed %u", seed);
        n_read += ok;
        n_refused += !ok;
        ck_assert_msg(ok || g_str_has_prefix(error->message, "dir/s.ini: "), "seed %u: %s", seed,
                      ok ? "" : error->message);
        g_clear_error(&error);
    }
    ck_assert_uint_gt(n_read, 0);
    ck_assert_uint_gt(n_refused, 100);
}
END_TEST

START_TEST(parallelism_texts)
{
    static const struct {
        const char *text;
        NjParallelism wanted; // tp 0: refused
    } rows[] = {
        {"tp8", {8, 1, 2, 1}}, {"cp2tp4", {4, 2, 2, 1}}, {"tp4cp2pp3dp5", {4, 2, 3, 5}},
        {"", {0, 0, 0, 0}},    {"tp", {0, 0, 0, 0}},     {"tp8tp8", {0, 0, 0, 0}},
        {"tp0", {0, 0, 0, 0}}, {"tp8 ", {0, 0, 0, 0}},   {"ep8", {0, 0, 0, 0}},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        NjParallelism p;
        const gboolean ok = nj_parallelism_parse(rows[i].text, 2, &p);
        ck_assert_msg(ok == (rows[i].wanted.tp > 0), "'%s'", rows[i].text);
        if (ok)
            ck_assert_mem_eq(&p, &rows[i].wanted, sizeof p);
    }
}
END_TEST

static char *write_json(const char *text)
{
    g_autofree char *folder = g_dir_make_tmp("nanojoule-XXXXXX", NULL);
    char *path = g_build_filename(folder, "config.json", NULL);
    ck_assert(g_file_set_contents(path, text, -1, NULL));
    return path;
}

static void remove_json(const char *path)
{
    g_autofree char *folder = g_path_get_dirname(path);
    g_remove(path);
    g_rmdir(folder);
}

START_TEST(hugging_face_configurations)
{
    static const struct {
        const char *text, *shipped, *message; // message: after the path
    } rows[] = {
        {"{\"model_type\": \"llama\", \"hidden_size\": 3072, \"num_hidden_layers\": 28, "
         "\"num_attention_heads\": 24,"
         " \"num_key_value_heads\": 8, \"head_dim\": 128, \"intermediate_size\": 8192, \"vocab_size\": "
         "128256}",
         "llama-3.2-3b", NULL},
        {"{\"model_type\": \"qwen3\", \"hidden_size\": 2048, \"num_hidden_layers\": 28, "
         "\"num_attention_heads\": 16,"
         " \"num_key_value_heads\": 8, \"head_dim\": 128, \"intermediate_size\": 6144, \"vocab_size\": "
         "151936,"
         " \"tie_word_embeddings\": true}",
         "qwen-3-1.7b", NULL},
        {"{\"model_type\": 7}", NULL, ": model_type = '': llama, mistral, qwen2 or qwen3 is needed"},
        {"{\"model_type\": \"bert\"}", NULL,
         ": model_type = 'bert': llama, mistral, qwen2 or qwen3 is needed"},
        {"{\"model_type\": \"llama\", \"hidden_size\": \"big\"}", NULL,
         ": hidden_size: a positive integer is needed"},
        {"[1]", NULL, ": a Hugging Face config.json (one JSON object) is needed"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_autofree char *path = write_json(rows[i].text);
        g_auto(NjArch) arch = {0};
        const gboolean ok = nj_arch_load(&arch, path, &error);
        if (rows[i].message != NULL) {
            g_autofree char *message = g_strconcat(path, rows[i].message, NULL);
            ck_assert(!ok);
            nj_assert_error(error, message);
        } else {
            g_auto(NjArch) shipped = {0};
            nj_assert_ok(ok, error);
            nj_assert_ok(nj_arch_load(&shipped, rows[i].shipped, &error), error);
            ck_assert_double_eq(nj_arch_parameters(&arch), nj_arch_parameters(&shipped));
            ck_assert_int_eq(arch.heads, shipped.heads);
            ck_assert_int_eq(arch.head_dim, shipped.head_dim);
            ck_assert_int_eq(arch.qk_norm, shipped.qk_norm);
            ck_assert_double_eq(nj_arch_flop_per_token(&arch, 4096), nj_arch_flop_per_token(&shipped, 4096));
        }
        remove_json(path);
    }
}
END_TEST

// Published sizes, from the models' cards.
START_TEST(parameters)
{
    static const struct {
        const char *name;
        double billions;
    } rows[] = {
        {"llama-3.2-1b", 1.236}, {"llama-3.2-3b", 3.607}, {"qwen-3-1.7b", 1.721}, {"llama-3.3-70b", 70.55}};
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(NjArch) arch = {0};
        ck_assert(nj_arch_load(&arch, rows[i].name, NULL));
        ck_assert_double_eq_tol(nj_arch_parameters(&arch) / 1e9 / rows[i].billions, 1, 0.001);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scenario");
    TCase *tests = tcase_create("scenario");
    tcase_add_test(tests, reads);
    tcase_add_test(tests, errors_say_file_group_key_value_and_what_would_be_right);
    tcase_add_test(tests, errors_list_what_is_known);
    tcase_add_test(tests, plans_in_words);
    tcase_add_test(tests, paths);
    tcase_add_test(tests, any_scenario);
    tcase_add_test(tests, parallelism_texts);
    tcase_add_test(tests, hugging_face_configurations);
    tcase_add_test(tests, parameters);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
