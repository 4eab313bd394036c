// SPDX-License-Identifier: MIT
#include "scenarios/comparison.h"

#include "scenarios/scenario.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

#define GROUP "comparison"

static const char *const metric_names[NJ_N_METRICS] = {
    [NJ_METRIC_TIME_REDUCTION] = "time_reduction",
    [NJ_METRIC_ENERGY_REDUCTION] = "energy_reduction",
    [NJ_METRIC_ISO_TIME] = "iso_time_energy_reduction",
    [NJ_METRIC_ISO_ENERGY] = "iso_energy_time_reduction",
};

const char *nj_metric_name(NjMetric metric)
{
    return metric_names[metric];
}

// What [comparison] says.
typedef struct {
    char *table, *title, *source, *gpu, *metrics, *methods, *include;
    int pipeline_stages, microbatches;
} Header;

#define TEXT(member, what)                                                                                   \
    {                                                                                                        \
        GROUP, #member, NJ_FIELD_TEXT, offsetof(Header, member), FALSE, 0, 0, "", what                       \
    }
#define COUNT(member, high, what)                                                                            \
    {                                                                                                        \
        GROUP, #member, NJ_FIELD_INT, offsetof(Header, member), FALSE, 1, high, "", what                     \
    }

static const NjField header_fields[] = {
    TEXT(table, "the table's name"),
    TEXT(title, "its heading"),
    TEXT(source, "where published cells come from"),
    TEXT(gpu, "the GPU"),
    TEXT(metrics, "metrics of every cell"),
    TEXT(methods, "methods of every row"),
    TEXT(include, "other comparison files"),
    COUNT(pipeline_stages, NJ_MAX_STAGES, "pipeline stages"),
    COUNT(microbatches, 1 << 16, "microbatches of an iteration"),
};

static void header_clear(Header *header)
{
    char **texts[] = {&header->table,   &header->title,   &header->source, &header->gpu,
                      &header->metrics, &header->methods, &header->include};
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        g_clear_pointer(texts[i], g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Header, header_clear)

// A file being read.
typedef struct {
    NjComparison *comparison;
    const char *path;
    GKeyFile *file;
    const Header *header;
    guint table;
    NjMetric metrics[NJ_N_METRICS];
    guint n_metrics;
    NjMethod methods[NJ_N_METHODS];
    guint n_methods;
} Reader;

static gboolean read_header(const char *path, GKeyFile *file, Header *header, GError **error)
{
    // Other groups are configurations: look at this one alone.
    g_autoptr(GKeyFile) only = g_key_file_new();
    g_auto(GStrv) keys = g_key_file_get_keys(file, GROUP, NULL, NULL);
    if (keys == NULL) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: [" GROUP "]: missing; is this a comparison file?",
                    path);
        return FALSE;
    }
    for (guint i = 0; keys[i] != NULL; i++) {
        g_autofree char *value = g_key_file_get_value(file, GROUP, keys[i], NULL);
        g_key_file_set_value(only, GROUP, keys[i], value);
    }
    if (!nj_keyfile_read(only, path, header_fields, G_N_ELEMENTS(header_fields), header, error))
        return FALSE;
    if (header->include != NULL)
        return TRUE;
    const struct {
        const char *key;
        gboolean there;
    } needed[] = {
        {"table", header->table != NULL},
        {"title", header->title != NULL},
        {"gpu", header->gpu != NULL},
        {"metrics", header->metrics != NULL},
        {"methods", header->methods != NULL},
        {"pipeline_stages", header->pipeline_stages > 0},
        {"microbatches", header->microbatches > 0},
    };
    for (guint i = 0; i < G_N_ELEMENTS(needed); i++) {
        if (needed[i].there)
            continue;
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: [" GROUP "] %s: missing", path, needed[i].key);
        return FALSE;
    }
    return TRUE;
}

static gboolean read_lists(Reader *reader, GError **error)
{
    g_auto(GStrv) metrics = g_strsplit(reader->header->metrics, ";", -1);
    for (guint i = 0; metrics[i] != NULL; i++) {
        guint m = 0;
        while (m < NJ_N_METRICS && !g_str_equal(metric_names[m], g_strstrip(metrics[i])))
            m++;
        if (m == NJ_N_METRICS || reader->n_metrics == NJ_N_METRICS) {
            nj_keyfile_error(error, reader->path, GROUP, "metrics", metrics[i],
                             "up to four of time_reduction, energy_reduction, iso_time_energy_reduction and "
                             "iso_energy_time_reduction, separated by ';', are needed");
            return FALSE;
        }
        reader->metrics[reader->n_metrics++] = (NjMetric)m;
    }
    g_auto(GStrv) methods = g_strsplit(reader->header->methods, ";", -1);
    for (guint i = 0; methods[i] != NULL; i++) {
        NjMethod method;
        if (!nj_method_parse(g_strstrip(methods[i]), &method) || reader->n_methods == NJ_N_METHODS) {
            nj_keyfile_error(
                error, reader->path, GROUP, "methods", methods[i],
                "megatron+perseus, nanobatching+perseus and kareus, separated by ';', are possible");
            return FALSE;
        }
        reader->methods[reader->n_methods++] = method;
    }
    return TRUE;
}

static void configuration_free(gpointer data)
{
    NjComparisonConfiguration *configuration = data;
    for (guint i = 0; i < NJ_N_METHODS; i++) {
        nj_frontier_clear(&configuration->frontiers[i]);
        g_free(configuration->failures[i]);
    }
    nj_workload_clear(&configuration->workload);
    g_free(configuration);
}

// "llama-3.2-3b tp8 8 x 4096" as a scenario, so that it is read and checked as one.
static NjComparisonConfiguration *read_configuration(const Reader *reader, const char *group, GError **error)
{
    g_auto(GStrv) words = g_strsplit(group, " ", -1);
    if (g_strv_length(words) != 5 || !g_str_equal(words[3], "x")) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s: [%s]: a group is named MODEL PARALLELISM MICROBATCH_SIZE x SEQ_LEN, such as "
                    "[llama-3.2-3b tp8 8 x 4096]",
                    reader->path, group);
        return NULL;
    }
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autofree char *layers = g_key_file_get_value(reader->file, group, "layers_per_stage", NULL);
    g_key_file_set_value(file, "workload", "model", words[0]);
    g_key_file_set_value(file, "workload", "microbatch_size", words[2]);
    g_key_file_set_value(file, "workload", "seq_len", words[4]);
    g_key_file_set_integer(file, "workload", "microbatches", reader->header->microbatches);
    g_key_file_set_value(file, "cluster", "gpu", reader->header->gpu);
    g_key_file_set_value(file, "cluster", "parallelism", words[1]);
    g_key_file_set_integer(file, "cluster", "pipeline_stages", reader->header->pipeline_stages);
    if (layers != NULL)
        g_key_file_set_value(file, "cluster", "layers_per_stage", layers);
    g_key_file_set_value(file, "execution", "method", "megatron");
    g_auto(NjScenario) scenario = {0};
    if (!nj_scenario_from_keyfile(&scenario, file, reader->path, error)) {
        g_prefix_error(error, "[%s]: ", group);
        return NULL;
    }
    NjComparisonConfiguration *configuration = g_new0(NjComparisonConfiguration, 1);
    configuration->workload = scenario.workload;
    scenario.workload = (NjWorkload){0}; // its insides have moved
    return configuration;
}

static gboolean same_workload(const NjWorkload *a, const NjWorkload *b)
{
    return g_str_equal(a->arch.name, b->arch.name) && g_str_equal(a->gpu.name, b->gpu.name) &&
           memcmp(&a->parallelism, &b->parallelism, sizeof a->parallelism) == 0 &&
           a->microbatch_size == b->microbatch_size && a->microbatches == b->microbatches &&
           a->seq_len == b->seq_len && memcmp(a->layers, b->layers, sizeof a->layers) == 0;
}

static guint share_configuration(NjComparison *comparison, NjComparisonConfiguration *configuration)
{
    for (guint i = 0; i < comparison->configurations->len; i++) {
        const NjComparisonConfiguration *other = comparison->configurations->pdata[i];
        if (same_workload(&other->workload, &configuration->workload)) {
            configuration_free(configuration);
            return i;
        }
    }
    g_ptr_array_add(comparison->configurations, configuration);
    return comparison->configurations->len - 1;
}

static gboolean parse_cell(char *text, NjCellValue *cell)
{
    char *end = NULL;
    g_strstrip(text);
    *cell = (NjCellValue){g_str_equal(text, "none") ? NJ_CELL_NONE : NJ_CELL_EMPTY, 0};
    if (cell->state == NJ_CELL_NONE || g_str_equal(text, "-"))
        return TRUE;
    *cell = (NjCellValue){NJ_CELL_VALUE, g_ascii_strtod(text, &end)};
    return end != text && *end == '\0' && isfinite(cell->value);
}

// The values of a key such as "kareus" or "kareus.rerun", one a metric; all empty where the key is absent.
static gboolean read_cells(const Reader *reader, const char *group, const char *key, NjCellValue *cells,
                           GError **error)
{
    memset(cells, 0, reader->n_metrics * sizeof *cells);
    g_autofree char *text = g_key_file_get_value(reader->file, group, key, NULL);
    if (text == NULL)
        return TRUE;
    g_auto(GStrv) parts = g_strsplit(text, ";", -1);
    gboolean ok = g_strv_length(parts) == reader->n_metrics;
    for (guint i = 0; ok && i < reader->n_metrics; i++)
        ok = parse_cell(parts[i], &cells[i]);
    if (!ok) {
        g_autofree char *wanted = g_strdup_printf(
            "%u values (a number, none or -), one a metric, separated by ';', are needed", reader->n_metrics);
        nj_keyfile_error(error, reader->path, group, key, text, wanted);
    }
    return ok;
}

static gboolean check_group_keys(const Reader *reader, const char *group, GError **error)
{
    g_auto(GStrv) keys = g_key_file_get_keys(reader->file, group, NULL, NULL);
    for (guint i = 0; keys[i] != NULL; i++) {
        gboolean known = g_str_equal(keys[i], "layers_per_stage");
        for (guint m = 0; m < reader->n_methods; m++) {
            const char *name = nj_method_name(reader->methods[m]);
            g_autofree char *rerun = g_strconcat(name, ".rerun", NULL);
            known = known || g_str_equal(keys[i], name) || g_str_equal(keys[i], rerun);
        }
        if (!known) {
            g_set_error(
                error, NJ_ERROR, NJ_ERROR_INPUT,
                "%s: [%s] %s: unknown key; known keys: layers_per_stage, a method, a method with .rerun",
                reader->path, group, keys[i]);
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean read_row(const Reader *reader, const char *group, GError **error)
{
    if (!check_group_keys(reader, group, error))
        return FALSE;
    NjComparisonConfiguration *configuration = read_configuration(reader, group, error);
    if (configuration == NULL)
        return FALSE;
    const guint index = share_configuration(reader->comparison, configuration);
    configuration = reader->comparison->configurations->pdata[index];
    configuration->needed[NJ_METHOD_MEGATRON] = configuration->needed[NJ_METHOD_MEGATRON_PERSEUS] = TRUE;
    for (guint m = 0; m < reader->n_methods; m++) {
        const char *name = nj_method_name(reader->methods[m]);
        g_autofree char *rerun_key = g_strconcat(name, ".rerun", NULL);
        NjCellValue published[NJ_N_METRICS], rerun[NJ_N_METRICS];
        configuration->needed[reader->methods[m]] = TRUE;
        if (!read_cells(reader, group, name, published, error) ||
            !read_cells(reader, group, rerun_key, rerun, error))
            return FALSE;
        for (guint i = 0; i < reader->n_metrics; i++) {
            const NjComparisonCell cell = {
                .table = reader->table,
                .configuration = index,
                .method = reader->methods[m],
                .metric = reader->metrics[i],
                .published = published[i],
                .rerun = rerun[i],
            };
            g_array_append_val(reader->comparison->cells, cell);
        }
    }
    return TRUE;
}

static gboolean load_file(NjComparison *comparison, const char *path, guint depth, GError **error)
{
    g_auto(Header) header = {0};
    g_autoptr(GKeyFile) file = nj_keyfile_load(path, error);
    if (file == NULL || !read_header(path, file, &header, error))
        return FALSE;
    g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);
    if (header.include != NULL) {
        if (depth > 4 || g_strv_length(groups) > 1) {
            nj_keyfile_error(
                error, path, GROUP, "include", header.include,
                "a file that includes others has no rows of its own, and is not included in itself");
            return FALSE;
        }
        g_auto(GStrv) names = g_strsplit(header.include, ";", -1);
        g_autofree char *folder = g_path_get_dirname(path);
        for (guint i = 0; names[i] != NULL; i++) {
            g_autofree char *other = g_build_filename(folder, g_strstrip(names[i]), NULL);
            if (*names[i] != '\0' && !load_file(comparison, other, depth + 1, error))
                return FALSE;
        }
        return TRUE;
    }

    Reader reader = {.comparison = comparison, .path = path, .file = file, .header = &header};
    if (!read_lists(&reader, error))
        return FALSE;
    const NjComparisonTable table = {g_strdup(header.table), g_strdup(header.title), g_strdup(header.source)};
    g_array_append_val(comparison->tables, table);
    reader.table = comparison->tables->len - 1;
    for (guint i = 0; groups[i] != NULL; i++)
        if (!g_str_equal(groups[i], GROUP) && !read_row(&reader, groups[i], error))
            return FALSE;
    return TRUE;
}

gboolean nj_comparison_load(NjComparison *comparison, const char *path, GError **error)
{
    *comparison = (NjComparison){
        .tables = g_array_new(FALSE, FALSE, sizeof(NjComparisonTable)),
        .configurations = g_ptr_array_new_with_free_func(configuration_free),
        .cells = g_array_new(FALSE, FALSE, sizeof(NjComparisonCell)),
    };
    if (load_file(comparison, path, 0, error))
        return TRUE;
    nj_comparison_clear(comparison);
    return FALSE;
}

void nj_comparison_clear(NjComparison *comparison)
{
    for (guint i = 0; comparison->tables != NULL && i < comparison->tables->len; i++) {
        NjComparisonTable *table = &g_array_index(comparison->tables, NjComparisonTable, i);
        g_free(table->name);
        g_free(table->title);
        g_free(table->source);
    }
    g_clear_pointer(&comparison->tables, g_array_unref);
    g_clear_pointer(&comparison->configurations, g_ptr_array_unref);
    g_clear_pointer(&comparison->cells, g_array_unref);
}

static const NjExecutedPlan *plan_at(const NjFrontier *frontier, guint i)
{
    return &g_array_index(frontier->plans, NjExecutedPlan, i);
}

static NjCellValue reduction(double value, double reference)
{
    return (NjCellValue){NJ_CELL_VALUE, 100.0 * (1.0 - value / reference)};
}

NjCellValue nj_metric_value(NjMetric metric, const NjFrontier *method, const NjFrontier *megatron,
                            const NjFrontier *megatron_perseus)
{
    const gboolean is_iso = metric == NJ_METRIC_ISO_TIME || metric == NJ_METRIC_ISO_ENERGY;
    double best = HUGE_VAL;
    if (method->plans == NULL || (is_iso ? megatron_perseus : megatron)->plans == NULL)
        return (NjCellValue){NJ_CELL_NONE, 0};
    switch (metric) {
    case NJ_METRIC_TIME_REDUCTION:
        return reduction(nj_frontier_fastest(method)->time_s, nj_frontier_fastest(megatron)->time_s);
    case NJ_METRIC_ENERGY_REDUCTION:
        return reduction(nj_frontier_fastest(method)->energy_j, nj_frontier_fastest(megatron)->energy_j);
    case NJ_METRIC_ISO_TIME: {
        const NjExecutedPlan *reference = nj_frontier_fastest(megatron_perseus);
        for (guint i = 0; i < method->plans->len; i++)
            if (plan_at(method, i)->time_s <= reference->time_s)
                best = fmin(best, plan_at(method, i)->energy_j);
        return isfinite(best) ? reduction(best, reference->energy_j) : (NjCellValue){NJ_CELL_NONE, 0};
    }
    case NJ_METRIC_ISO_ENERGY: {
        const NjExecutedPlan *reference = nj_frontier_least_energy(megatron_perseus);
        for (guint i = 0; i < method->plans->len; i++)
            if (plan_at(method, i)->energy_j <= reference->energy_j)
                best = fmin(best, plan_at(method, i)->time_s);
        return isfinite(best) ? reduction(best, reference->time_s) : (NjCellValue){NJ_CELL_NONE, 0};
    }
    case NJ_N_METRICS:
        break;
    }
    g_assert_not_reached();
}

// One method of one configuration: what a thread works on.
typedef struct {
    NjComparisonConfiguration *configuration;
    NjMethod method;
    GError *error;
} Job;

typedef struct {
    const volatile int *stop;
    GMutex lock;
    GCond done;
    guint n_done; // under the lock
} Work;

static void run_job(gpointer data, gpointer user)
{
    Work *work = user;
    Job *job = data;
    const NjFrontierOptions options = {
        .step_s = NJ_FRONTIER_STEP_S, .n_points = 0, .point_to_point = TRUE, .stop = work->stop};
    nj_frontier_run(&job->configuration->workload, job->method, &nj_schedule_1f1b, &options,
                    &job->configuration->frontiers[job->method], &job->error);
    g_mutex_lock(&work->lock);
    work->n_done++;
    g_cond_signal(&work->done);
    g_mutex_unlock(&work->lock);
}

// Until all are done, told now and then.
static void wait_for_jobs(Work *work, guint n_jobs, NjProgress *progress)
{
    g_mutex_lock(&work->lock);
    while (work->n_done < n_jobs) {
        g_cond_wait_until(&work->done, &work->lock, g_get_monotonic_time() + G_USEC_PER_SEC / 10);
        if (progress != NULL)
            nj_progress_show(progress, work->n_done);
    }
    g_mutex_unlock(&work->lock);
    if (progress != NULL)
        nj_progress_end(progress);
}

// Takes the jobs' errors: what cannot exist is said of its configuration, the first other one is handed on.
static gboolean take_errors(GArray *jobs, GError **error)
{
    gboolean ok = TRUE;
    for (guint i = 0; i < jobs->len; i++) {
        Job *job = &g_array_index(jobs, Job, i);
        if (job->error == NULL)
            continue;
        if (g_error_matches(job->error, NJ_ERROR, NJ_ERROR_IMPOSSIBLE)) {
            job->configuration->failures[job->method] = g_strdup(job->error->message);
        } else if (ok) {
            ok = FALSE;
            if (g_error_matches(job->error, NJ_ERROR, NJ_ERROR_STOPPED))
                g_set_error_literal(error, NJ_ERROR, NJ_ERROR_STOPPED, job->error->message);
            else
                g_set_error(error, job->error->domain, job->error->code, "%s, %s: %s",
                            job->configuration->workload.arch.name, nj_method_name(job->method),
                            job->error->message);
        }
        g_clear_error(&job->error);
    }
    return ok;
}

gboolean nj_comparison_run(NjComparison *comparison, guint jobs, NjProgress *progress,
                           const volatile int *stop, GError **error)
{
    // Dearest methods first, so that the threads end together.
    static const NjMethod order[] = {NJ_METHOD_KAREUS, NJ_METHOD_NANOBATCHING_PERSEUS,
                                     NJ_METHOD_MEGATRON_PERSEUS, NJ_METHOD_MEGATRON};
    g_autoptr(GArray) all = g_array_new(FALSE, TRUE, sizeof(Job));
    for (guint m = 0; m < G_N_ELEMENTS(order); m++) {
        for (guint i = 0; i < comparison->configurations->len; i++) {
            const Job job = {comparison->configurations->pdata[i], order[m], NULL};
            if (job.configuration->needed[order[m]])
                g_array_append_val(all, job);
        }
    }
    Work work = {.stop = stop};
    g_mutex_init(&work.lock);
    g_cond_init(&work.done);
    if (progress != NULL)
        progress->n_total = all->len;
    GThreadPool *pool = g_thread_pool_new(run_job, &work, (gint)MAX(jobs, 1), FALSE, NULL);
    for (guint i = 0; i < all->len; i++)
        g_thread_pool_push(pool, &g_array_index(all, Job, i), NULL);
    wait_for_jobs(&work, all->len, progress);
    g_thread_pool_free(pool, FALSE, TRUE);
    g_mutex_clear(&work.lock);
    g_cond_clear(&work.done);

    if (!take_errors(all, error))
        return FALSE;
    for (guint i = 0; i < comparison->cells->len; i++) {
        NjComparisonCell *cell = &g_array_index(comparison->cells, NjComparisonCell, i);
        const NjComparisonConfiguration *c = comparison->configurations->pdata[cell->configuration];
        cell->simulated =
            nj_metric_value(cell->metric, &c->frontiers[cell->method], &c->frontiers[NJ_METHOD_MEGATRON],
                            &c->frontiers[NJ_METHOD_MEGATRON_PERSEUS]);
    }
    return TRUE;
}
