// SPDX-License-Identifier: MIT
#include "scenarios/scenario.h"

#include "models/keyfile.h"
#include "schedules/plan-files.h"
#include "sim/error.h"

#include <stddef.h>
#include <string.h>

// The file's values before they are looked up and checked against each other.
typedef struct {
    char *model, *gpu, *parallelism, *layers_per_stage, *method, *schedule, *freqs_file, *scheds_file, *stack;
    int seq_len, microbatch_size, microbatches, pipeline_stages, frequency_mhz;
    int recompute;
    double deadline_s;
    gboolean point_to_point, optimizer;
} Values;

#define TEXT(group, member, required, what)                                                                  \
    {                                                                                                        \
        group, #member, NJ_FIELD_TEXT, offsetof(Values, member), required, 0, 0, "", what                    \
    }
#define COUNT(group, member, required, low, high, unit, what)                                                \
    {                                                                                                        \
        group, #member, NJ_FIELD_INT, offsetof(Values, member), required, low, high, unit, what              \
    }

static const NjField fields[] = {
    TEXT("workload", model, TRUE, "a shipped architecture, or the path of a key file or config.json"),
    COUNT("workload", seq_len, TRUE, 1, 1 << 24, "tokens", "tokens of a sequence"),
    COUNT("workload", microbatch_size, TRUE, 1, 1 << 16, "sequences", "sequences of a microbatch"),
    COUNT("workload", microbatches, TRUE, 1, 1 << 16, "", "microbatches of an iteration"),
    TEXT("cluster", gpu, TRUE, "a shipped GPU, or the path of a key file"),
    TEXT("cluster", parallelism, TRUE, "degrees of parallelism, such as tp8 or cp2tp4"),
    COUNT("cluster", pipeline_stages, FALSE, 1, NJ_MAX_STAGES, "stages", "pipeline stages"),
    TEXT("cluster", layers_per_stage, FALSE, "layers of every stage, such as 15;13"),
    TEXT("execution", method, TRUE, "megatron, megatron+perseus, nanobatching+perseus or kareus"),
    TEXT("execution", schedule, FALSE, "pipeline schedule"),
    COUNT("execution", frequency_mhz, FALSE, 1, 10000, "MHz", "SM clock of every instruction"),
    TEXT("execution", freqs_file, FALSE, "a plan's freqs_pipeline_NNNNN.py"),
    TEXT("execution", scheds_file, FALSE, "a plan's scheds_pipeline_NNNNN.py"),
    {"execution", "deadline_s", NJ_FIELD_REAL, offsetof(Values, deadline_s), FALSE, 1e-6, 1e6, "s",
     "latest iteration time of a planned method's plan"},
    {"execution", "point_to_point", NJ_FIELD_BOOL, offsetof(Values, point_to_point), FALSE, 0, 1, "",
     "whether transfers between stages take time"},
    TEXT("execution", stack, FALSE, "a shipped software stack, or the path of a key file"),
    {"execution", "recompute", NJ_FIELD_CHOICE, offsetof(Values, recompute), FALSE, 0, 0, "",
     "what a backward repeats of the forward", nj_recompute_names},
    {"execution", "optimizer", NJ_FIELD_BOOL, offsetof(Values, optimizer), FALSE, 0, 1, "",
     "whether the iteration ends with the optimizer's step"},
};

const NjField *nj_scenario_fields(guint *n_fields)
{
    *n_fields = G_N_ELEMENTS(fields);
    return fields;
}

static void values_clear(Values *values)
{
    char **texts[] = {&values->model,  &values->gpu,      &values->parallelism, &values->layers_per_stage,
                      &values->method, &values->schedule, &values->freqs_file,  &values->scheds_file,
                      &values->stack};
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        g_clear_pointer(texts[i], g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Values, values_clear)

char *nj_scenario_resolve(const char *path, const char *name)
{
    const gboolean is_path = strchr(name, '/') != NULL || g_str_has_suffix(name, ".ini") ||
                             g_str_has_suffix(name, ".json") || g_str_has_suffix(name, ".py");
    if (!is_path || g_path_is_absolute(name))
        return g_strdup(name);
    g_autofree char *folder = g_path_get_dirname(path);
    return g_build_filename(folder, name, NULL);
}

static gboolean load_parts(NjScenario *scenario, const Values *values, GError **error)
{
    g_autofree char *model = nj_scenario_resolve(scenario->path, values->model);
    g_autofree char *gpu = nj_scenario_resolve(scenario->path, values->gpu);
    if (!nj_arch_load(&scenario->workload.arch, model, error)) {
        g_prefix_error(error, "%s: [workload] model = %s: ", scenario->path, values->model);
        return FALSE;
    }
    if (!nj_gpu_load(&scenario->workload.gpu, gpu, error)) {
        g_prefix_error(error, "%s: [cluster] gpu = %s: ", scenario->path, values->gpu);
        return FALSE;
    }
    g_autofree char *stack =
        values->stack != NULL ? nj_scenario_resolve(scenario->path, values->stack) : NULL;
    if (stack != NULL && !nj_stack_load(&scenario->workload.stack, stack, error)) {
        g_prefix_error(error, "%s: [execution] stack = %s: ", scenario->path, values->stack);
        return FALSE;
    }
    scenario->workload.recompute = (NjRecompute)values->recompute;
    return TRUE;
}

static gboolean read_layers(NjScenario *scenario, const char *text, GError **error)
{
    NjWorkload *workload = &scenario->workload;
    if (text == NULL) {
        nj_workload_split_layers(workload);
        return TRUE;
    }
    g_auto(GStrv) parts = g_strsplit(text, ";", -1);
    guint n = g_strv_length(parts);
    if (n > 0 && *parts[n - 1] == '\0')
        n--; // a list may end in its separator
    gboolean ok = (int)n == workload->parallelism.pp;
    for (guint i = 0; ok && i < n; i++) {
        gint64 layers;
        ok = g_ascii_string_to_signed(g_strstrip(parts[i]), 10, 1, workload->arch.layers, &layers, NULL);
        workload->layers[i] = ok ? (int)layers : 0;
    }
    if (!ok) {
        g_autofree char *wanted =
            g_strdup_printf("%d positive integers that sum to %d, separated by ';', are needed",
                            workload->parallelism.pp, workload->arch.layers);
        nj_keyfile_error(error, scenario->path, "cluster", "layers_per_stage", text, wanted);
    }
    return ok;
}

static gboolean read_cluster(NjScenario *scenario, const Values *values, GError **error)
{
    NjWorkload *workload = &scenario->workload;
    if (!nj_parallelism_parse(values->parallelism, values->pipeline_stages > 0 ? values->pipeline_stages : 1,
                              &workload->parallelism)) {
        nj_keyfile_error(error, scenario->path, "cluster", "parallelism", values->parallelism,
                         "degrees such as tp8, cp2tp4 or tp4pp2 are needed");
        return FALSE;
    }
    if (values->pipeline_stages > 0 && workload->parallelism.pp != values->pipeline_stages) {
        g_autofree char *wanted =
            g_strdup_printf("it differs from pipeline_stages = %d", values->pipeline_stages);
        nj_keyfile_error(error, scenario->path, "cluster", "parallelism", values->parallelism, wanted);
        return FALSE;
    }
    if (workload->parallelism.pp > NJ_MAX_STAGES) {
        nj_keyfile_error(error, scenario->path, "cluster", "parallelism", values->parallelism,
                         "at most 64 stages are possible");
        return FALSE;
    }
    return read_layers(scenario, values->layers_per_stage, error);
}

static gboolean read_execution(NjScenario *scenario, const Values *values, GError **error)
{
    const NjGpu *gpu = &scenario->workload.gpu;
    if (!nj_method_parse(values->method, &scenario->method)) {
        nj_keyfile_error(error, scenario->path, "execution", "method", values->method,
                         "megatron, megatron+perseus, nanobatching+perseus or kareus is needed");
        return FALSE;
    }
    const char *schedule = values->schedule != NULL ? values->schedule : nj_schedule_1f1b.name;
    scenario->schedule = nj_pipeline_schedule_find(schedule);
    if (scenario->schedule == NULL) {
        g_autoptr(GString) wanted = g_string_new(NULL);
        for (const NjPipelineSchedule *const *s = nj_pipeline_schedules(); *s != NULL; s++)
            g_string_append_printf(wanted, "%s%s", wanted->len > 0 ? ", " : "", (*s)->name);
        g_string_append(wanted, " is needed");
        nj_keyfile_error(error, scenario->path, "execution", "schedule", schedule, wanted->str);
        return FALSE;
    }
    scenario->frequency_mhz = values->frequency_mhz;
    if (values->frequency_mhz > 0 && !nj_gpu_has_freq(gpu, values->frequency_mhz)) {
        g_autofree char *value = g_strdup_printf("%d", values->frequency_mhz);
        g_autofree char *wanted = g_strdup_printf("%s has %d to %d MHz in steps of %d", gpu->name,
                                                  gpu->freq_min_mhz, gpu->freq_max_mhz, gpu->freq_step_mhz);
        nj_keyfile_error(error, scenario->path, "execution", "frequency_mhz", value, wanted);
        if (error != NULL)
            (*error)->code = NJ_ERROR_IMPOSSIBLE; // another GPU may have it
        return FALSE;
    }
    if (values->deadline_s > 0 &&
        (scenario->method == NJ_METHOD_MEGATRON || values->frequency_mhz > 0 || values->freqs_file != NULL)) {
        g_autofree char *value = g_strdup_printf("%g", values->deadline_s);
        nj_keyfile_error(error, scenario->path, "execution", "deadline_s", value,
                         "only a method that plans, without frequency_mhz and freqs_file, can meet it");
        return FALSE;
    }
    if (values->scheds_file != NULL && values->freqs_file == NULL) {
        nj_keyfile_error(error, scenario->path, "execution", "scheds_file", values->scheds_file,
                         "it needs the freqs_file of the same plan");
        return FALSE;
    }
    scenario->freqs_file =
        values->freqs_file != NULL ? nj_scenario_resolve(scenario->path, values->freqs_file) : NULL;
    scenario->scheds_file =
        values->scheds_file != NULL ? nj_scenario_resolve(scenario->path, values->scheds_file) : NULL;
    scenario->deadline_s = values->deadline_s;
    scenario->point_to_point = values->point_to_point;
    scenario->optimizer = values->optimizer;
    return TRUE;
}

gboolean nj_scenario_from_keyfile(NjScenario *scenario, GKeyFile *file, const char *path, GError **error)
{
    g_auto(Values) values = {.point_to_point = TRUE};
    *scenario = (NjScenario){.path = g_strdup(path)};
    gboolean ok = nj_keyfile_read(file, path, fields, G_N_ELEMENTS(fields), &values, error) &&
                  load_parts(scenario, &values, error) && read_cluster(scenario, &values, error) &&
                  read_execution(scenario, &values, error);
    if (ok) {
        scenario->workload.seq_len = values.seq_len;
        scenario->workload.microbatch_size = values.microbatch_size;
        scenario->workload.microbatches = values.microbatches;
        ok = nj_workload_check(&scenario->workload, error);
        if (!ok)
            g_prefix_error(error, "%s: ", path);
    }
    if (!ok)
        nj_scenario_clear(scenario);
    return ok;
}

gboolean nj_scenario_load_with_arch(NjScenario *scenario, const char *path, const char *arch, GError **error)
{
    *scenario = (NjScenario){0};
    g_autoptr(GKeyFile) file = nj_keyfile_load(path, error);
    if (file == NULL)
        return FALSE;
    if (arch != NULL) {
        // Relative to where the user stands, not to the scenario.
        const gboolean is_path = strchr(arch, '/') != NULL || strchr(arch, '.') != NULL;
        g_autofree char *absolute = is_path && g_file_test(arch, G_FILE_TEST_EXISTS)
                                        ? g_canonicalize_filename(arch, NULL)
                                        : g_strdup(arch);
        g_key_file_set_string(file, "workload", "model", absolute);
    }
    return nj_scenario_from_keyfile(scenario, file, path, error);
}

gboolean nj_scenario_load(NjScenario *scenario, const char *path, GError **error)
{
    return nj_scenario_load_with_arch(scenario, path, NULL, error);
}

void nj_scenario_clear(NjScenario *scenario)
{
    nj_workload_clear(&scenario->workload);
    g_clear_pointer(&scenario->path, g_free);
    g_clear_pointer(&scenario->freqs_file, g_free);
    g_clear_pointer(&scenario->scheds_file, g_free);
}

NjExecution nj_scenario_execution(const NjScenario *scenario)
{
    return scenario->scheds_file != NULL ? NJ_EXECUTION_NANOBATCHED : nj_method_execution(scenario->method);
}

// Whether nobody says what the clocks are: the method does.
static gboolean left_to_method(const NjScenario *scenario)
{
    return scenario->freqs_file == NULL && scenario->frequency_mhz == 0;
}

NjExecuteOptions nj_scenario_execute_options(const NjScenario *scenario)
{
    return (NjExecuteOptions){
        .point_to_point = scenario->point_to_point,
        .optimizer = scenario->optimizer,
        .unlocked = left_to_method(scenario) && scenario->method == NJ_METHOD_MEGATRON,
    };
}

char *nj_scenario_describe_plan(const NjScenario *scenario)
{
    if (scenario->freqs_file != NULL)
        return g_strdup("clocks of its plan files");
    if (scenario->frequency_mhz > 0)
        return g_strdup_printf("all instructions at %d MHz", scenario->frequency_mhz);
    if (scenario->method == NJ_METHOD_MEGATRON)
        return g_strdup_printf("clocks unlocked, at %d MHz", scenario->workload.gpu.freq_max_mhz);
    if (scenario->deadline_s > 0)
        return g_strdup_printf("its plan of least energy within %g s", scenario->deadline_s);
    return g_strdup("its fastest plan");
}

static gboolean plan_by_method(const NjScenario *scenario, NjPlan *plan, GError **error)
{
    const NjFrontierOptions options = {
        .step_s = NJ_FRONTIER_STEP_S,
        .point_to_point = scenario->point_to_point,
        .optimizer = scenario->optimizer,
    };
    NjExecutedPlan planned;
    g_autoptr(NjPlanning) planning =
        nj_planning_new(&scenario->workload, scenario->method, scenario->schedule, &options, error);
    if (planning == NULL)
        return FALSE;
    if (!(scenario->deadline_s > 0 ? nj_planning_by(planning, scenario->deadline_s, FALSE, &planned, error)
                                   : nj_planning_fastest(planning, &planned, error))) {
        if (scenario->deadline_s > 0)
            g_prefix_error(error, "[execution] deadline_s = %g: ", scenario->deadline_s);
        return FALSE;
    }
    *plan = planned.plan; // its insides have moved
    return TRUE;
}

gboolean nj_scenario_plan(const NjScenario *scenario, const NjPipeline *pipeline, NjPlan *plan,
                          GError **error)
{
    if (scenario->freqs_file != NULL)
        return nj_plan_files_read(scenario->freqs_file, scenario->scheds_file, plan, NULL, error);
    if (left_to_method(scenario) && scenario->method != NJ_METHOD_MEGATRON)
        return plan_by_method(scenario, plan, error);
    const int freq_mhz =
        scenario->frequency_mhz > 0 ? scenario->frequency_mhz : scenario->workload.gpu.freq_max_mhz;
    nj_plan_uniform(pipeline, (guint)freq_mhz, plan);
    return TRUE;
}

void nj_split_layers_as_published(NjWorkload *workload)
{
    nj_workload_split_layers(workload);
    if (workload->parallelism.pp == 2 && workload->arch.layers % 2 == 0 && workload->arch.layers > 2) {
        workload->layers[0]++;
        workload->layers[1]--;
    }
}
