// SPDX-License-Identifier: MIT
// One training iteration of every configuration of the published testbed, as a whole process from start to
// exit: reading files, the run itself, the report. The bar is for that; methods that plan first profile their
// instructions, search launch choices and solve, and have no bar. Processor time, user and system, the least
// of several runs: the machine may be busy. Run: meson test -C build --benchmark --verbose
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define BAR_S 0.05
#define N_RUNS 7

typedef struct {
    const char *model, *parallelism;
    guint microbatch_size, seq_len;
} Configuration;

static const Configuration configurations[] = {
    {"llama-3.2-3b", "tp8", 8, 4096},    {"llama-3.2-3b", "cp2tp4", 8, 4096},
    {"llama-3.2-3b", "cp2tp4", 8, 8192}, {"llama-3.2-3b", "cp2tp4", 16, 4096},
    {"qwen-3-1.7b", "tp8", 8, 4096},     {"qwen-3-1.7b", "tp8", 8, 8192},
    {"qwen-3-1.7b", "tp8", 16, 4096},    {"qwen-3-1.7b", "cp2tp4", 8, 4096},
    {"qwen-3-1.7b", "cp2tp4", 8, 8192},  {"qwen-3-1.7b", "cp2tp4", 16, 4096},
};
// The first does not plan.
static const char *const methods[] = {"megatron", "megatron+perseus", "nanobatching+perseus", "kareus"};

static char *scenario_of(const Configuration *c, const char *method)
{
    return g_strdup_printf("[workload]\nmodel = %s\nseq_len = %u\nmicrobatch_size = %u\nmicrobatches = 8\n"
                           "[cluster]\ngpu = a100-sxm4-40gb\nparallelism = %s\npipeline_stages = 2\n"
                           "layers_per_stage = 15;13\n[execution]\nmethod = %s\n",
                           c->model, c->seq_len, c->microbatch_size, c->parallelism, method);
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

// Of all processes that have been waited for.
static double processor_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Seconds of one process, or a negative number where it failed.
static double run(const char *path)
{
    const char *const argv[] = {g_getenv("NANOJOULE"), "simulate", path, "--format", "csv", NULL};
    int status = 1;
    const double before_s = processor_s();
    const gboolean ran = g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL,
                                      NULL, &status, NULL);
    return ran && status == 0 ? processor_s() - before_s : -1;
}

int main(void)
{
    g_autofree char *path = g_strdup_printf("%s/bench-simulate-%u.ini", g_get_tmp_dir(), g_random_int());
    gboolean met = TRUE;
    printf("ms of processor time; bar of the first method: %g ms\n%-34s", 1e3 * BAR_S, "");
    for (guint m = 0; m < G_N_ELEMENTS(methods); m++)
        printf("%22s", methods[m]);
    printf("\n");
    for (guint c = 0; c < G_N_ELEMENTS(configurations); c++) {
        const Configuration *configuration = &configurations[c];
        g_autofree char *label =
            g_strdup_printf("%s %s %u x %u", configuration->model, configuration->parallelism,
                            configuration->microbatch_size, configuration->seq_len);
        printf("%-34s", label);
        for (guint m = 0; m < G_N_ELEMENTS(methods); m++) {
            g_autofree char *text = scenario_of(configuration, methods[m]);
            double best = G_MAXDOUBLE;
            if (!g_file_set_contents(path, text, -1, NULL))
                return EXIT_FAILURE;
            for (guint i = 0; i < N_RUNS; i++)
                best = MIN(best, run(path));
            printf("%22.1f", 1e3 * best);
            met &= best >= 0 && (m > 0 || best <= BAR_S);
        }
        printf("\n");
    }
    g_remove(path);
    return met ? EXIT_SUCCESS : EXIT_FAILURE;
}
