// SPDX-License-Identifier: MIT
#pragma once
// Sweeps of the synthetic evaluator as the tests of sweeps want them: one grid, a folder for every test, and
// what "the same as undisturbed" means.

#include "scenarios/fold.h"
#include "scenarios/sweep.h"
#include "tests/synthetic.h"
#include "tests/testing.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/wait.h>

#define SCENARIO "[a]\nname = x;y;größer\n[b]\ncount = 1..64 *2\nshare = 0:1:0.1\nfixed = 12\n"
#define N_POINTS 231 // 3 x 7 x 11

// One sweep as a test wants it.
typedef struct {
    const char *text;
    const char *inputs;
    NjSelection selection;
    guint jobs;
    Synthetic synthetic;
} Job;

static inline Job make_job(void)
{
    Job job = {.text = SCENARIO, .inputs = "gpu.ini 89ab\n", .jobs = 2};
    synthetic_init(&job.synthetic);
    return job;
}

static inline NjGrid *make_grid(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GKeyFile) file = g_key_file_new();
    nj_assert_ok(g_key_file_load_from_data(file, text, (gsize)-1, G_KEY_FILE_NONE, &error), error);
    NjGrid *grid = nj_grid_new(file, "s.ini", NULL, &error);
    nj_assert_ok(grid != NULL, error);
    return grid;
}

static inline gboolean run_job(const Job *job, const char *output, NjSweepSummary *summary, GError **error)
{
    g_autoptr(NjGrid) grid = make_grid(job->text);
    const NjSweepOptions options = {.output = output,
                                    .scenario_path = "s.ini",
                                    .scenario_text = job->text,
                                    .inputs = job->inputs,
                                    .selection = job->selection,
                                    .jobs = job->jobs};
    return nj_sweep_run(grid, &job->synthetic.base, &options, summary, error);
}

static inline NjSweepSummary run_ok(const Job *job, const char *output)
{
    g_autoptr(GError) error = NULL;
    NjSweepSummary summary;
    nj_assert_ok(run_job(job, output, &summary, &error), error);
    return summary;
}

static inline void run_fails(const Job *job, const char *output, const char *format, ...) G_GNUC_PRINTF(3, 4);

static inline void run_fails(const Job *job, const char *output, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *message = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    GError *error = NULL;
    NjSweepSummary summary;
    ck_assert(!run_job(job, output, &summary, &error));
    nj_assert_error(error, message);
}

// ---- A folder for every test

static char *folder, *output, *journal, *reference;

static inline void make_folder(void)
{
    folder = g_dir_make_tmp("nanojoule-sweep-XXXXXX", NULL);
    ck_assert_ptr_nonnull(folder);
    output = g_build_filename(folder, "grid.h5", NULL);
    journal = g_build_filename(folder, "grid.h5.journal", NULL);
    reference = g_build_filename(folder, "reference.h5", NULL);
}

static inline void remove_folder(void)
{
    GDir *dir = g_dir_open(folder, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir)) != NULL;) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_remove(path);
    }
    g_dir_close(dir);
    ck_assert_int_eq(g_rmdir(folder), 0);
    g_free(folder);
    g_free(output);
    g_free(journal);
    g_free(reference);
}

static inline gboolean exists(const char *path)
{
    return g_file_test(path, G_FILE_TEST_EXISTS);
}

static inline void assert_same_bytes(const char *a, const char *b)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *a_bytes = NULL, *b_bytes = NULL;
    gsize a_size, b_size;
    nj_assert_ok(g_file_get_contents(a, &a_bytes, &a_size, &error), error);
    nj_assert_ok(g_file_get_contents(b, &b_bytes, &b_size, &error), error);
    ck_assert_msg(a_size == b_size && memcmp(a_bytes, b_bytes, a_size) == 0, "%s and %s differ", a, b);
}

// The output is what an undisturbed sweep of the default job writes, and nothing lies beside it.
static inline void assert_as_undisturbed(void)
{
    const Job job = make_job();
    if (!exists(reference))
        run_ok(&job, reference);
    assert_same_bytes(output, reference);
    ck_assert(!exists(journal));
    g_autofree char *part = g_strconcat(output, ".part", NULL);
    ck_assert(!exists(part));
}

// Points of the journal in a set; empty where there is none.
static inline GHashTable *journalled_points(void)
{
    GHashTable *points = g_hash_table_new(NULL, NULL);
    if (!exists(journal))
        return points;
    g_autoptr(GError) error = NULL;
    g_autoptr(NjJournal) file = nj_journal_open(journal, &error);
    nj_assert_ok(file != NULL, error);
    for (guint i = 0; i < nj_journal_n_records(file); i++)
        ck_assert_msg(g_hash_table_add(points, GUINT_TO_POINTER(nj_journal_key(file, i))), "a point twice");
    return points;
}

// The points an evaluator's log has from an offset on.
static inline GArray *logged_points(int log_fd, off_t offset)
{
    GArray *points = g_array_new(FALSE, FALSE, sizeof(guint));
    guint point;
    for (; pread(log_fd, &point, sizeof point, offset) == sizeof point; offset += (off_t)sizeof point)
        g_array_append_val(points, point);
    return points;
}

static inline int open_log(void)
{
    g_autofree char *path = g_build_filename(folder, "log", NULL);
    const int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    return fd;
}

// Runs a job in a process of its own, which ends with 0, or with 1 and the message in *pipe_end.
static inline pid_t start_job(const Job *job, int *pipe_end)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        GError *error = NULL;
        NjSweepSummary summary;
        const gboolean good = run_job(job, output, &summary, &error);
        if (!good)
            (void)!write(ends[1], error->message, strlen(error->message));
        _exit(good ? 0 : 1);
    }
    close(ends[1]);
    *pipe_end = ends[0];
    return child;
}

static inline int end_job(pid_t child, int pipe_end, char **message)
{
    char buffer[1024] = {0};
    ck_assert_int_ge(read(pipe_end, buffer, sizeof buffer - 1), 0);
    close(pipe_end);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (message != NULL)
        *message = g_strdup(buffer);
    return status;
}
