// SPDX-License-Identifier: MIT
#include "scenarios/fold.h"
#include "scenarios/progress.h"
#include "scenarios/sweep.h"
#include "tests/synthetic.h"
#include "tests/testing.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

static Job make_job(void)
{
    Job job = {.text = SCENARIO, .inputs = "gpu.ini 89ab\n", .jobs = 2};
    synthetic_init(&job.synthetic);
    return job;
}

static NjGrid *make_grid(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GKeyFile) file = g_key_file_new();
    nj_assert_ok(g_key_file_load_from_data(file, text, (gsize)-1, G_KEY_FILE_NONE, &error), error);
    NjGrid *grid = nj_grid_new(file, "s.ini", NULL, &error);
    nj_assert_ok(grid != NULL, error);
    return grid;
}

static gboolean run_job(const Job *job, const char *output, NjSweepSummary *summary, GError **error)
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

static NjSweepSummary run_ok(const Job *job, const char *output)
{
    g_autoptr(GError) error = NULL;
    NjSweepSummary summary;
    nj_assert_ok(run_job(job, output, &summary, &error), error);
    return summary;
}

static void run_fails(const Job *job, const char *output, const char *format, ...) G_GNUC_PRINTF(3, 4);

static void run_fails(const Job *job, const char *output, const char *format, ...)
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

static void make_folder(void)
{
    folder = g_dir_make_tmp("nanojoule-sweep-XXXXXX", NULL);
    ck_assert_ptr_nonnull(folder);
    output = g_build_filename(folder, "grid.h5", NULL);
    journal = g_build_filename(folder, "grid.h5.journal", NULL);
    reference = g_build_filename(folder, "reference.h5", NULL);
}

static void remove_folder(void)
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

static gboolean exists(const char *path)
{
    return g_file_test(path, G_FILE_TEST_EXISTS);
}

static void assert_same_bytes(const char *a, const char *b)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *a_bytes = NULL, *b_bytes = NULL;
    gsize a_size, b_size;
    nj_assert_ok(g_file_get_contents(a, &a_bytes, &a_size, &error), error);
    nj_assert_ok(g_file_get_contents(b, &b_bytes, &b_size, &error), error);
    ck_assert_msg(a_size == b_size && memcmp(a_bytes, b_bytes, a_size) == 0, "%s and %s differ", a, b);
}

// The output is what an undisturbed sweep of the default job writes, and nothing lies beside it.
static void assert_as_undisturbed(void)
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
static GHashTable *journalled_points(void)
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
static GArray *logged_points(int log_fd, off_t offset)
{
    GArray *points = g_array_new(FALSE, FALSE, sizeof(guint));
    guint point;
    for (; pread(log_fd, &point, sizeof point, offset) == sizeof point; offset += (off_t)sizeof point)
        g_array_append_val(points, point);
    return points;
}

static int open_log(void)
{
    g_autofree char *path = g_build_filename(folder, "log", NULL);
    const int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    return fd;
}

// Runs a job in a process of its own, which ends with 0, or with 1 and the message in *pipe_end.
static pid_t start_job(const Job *job, int *pipe_end)
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

static int end_job(pid_t child, int pipe_end, char **message)
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

// ---- What a sweep writes

START_TEST(writes_all_tables)
{
    const Job job = make_job();
    const NjSweepSummary summary = run_ok(&job, output);
    ck_assert_uint_eq(summary.n_points, N_POINTS);
    ck_assert_uint_eq(summary.n_computed, N_POINTS);
    ck_assert_uint_eq(summary.n_before, 0);
    ck_assert_uint_eq(summary.n_impossible, 33);
    ck_assert(!exists(journal));

    g_autoptr(GError) error = NULL;
    g_autoptr(NjStore) store = nj_store_open(output, &error);
    nj_assert_ok(store != NULL, error);
    ck_assert_str_eq(nj_store_info(store)->text, SCENARIO);
    ck_assert_int_eq(nj_store_info(store)->n_points, N_POINTS);
    NjTable *tables[NJ_N_RESULTS];
    for (guint kind = 0; kind < NJ_N_RESULTS; kind++) {
        const int index = nj_store_find_table(store, nj_result_name((NjResultKind)kind), &error);
        ck_assert_int_ge(index, 0);
        tables[kind] = nj_store_new_table(store, (guint)index);
        nj_assert_ok(
            nj_store_read(store, (guint)index, 0, nj_store_n_rows(store, (guint)index), tables[kind], &error),
            error);
    }
    NjTable *points = tables[NJ_RESULT_POINTS];
    ck_assert_uint_eq(nj_table_n_rows(points), N_POINTS);
    static const char *const names[] = {"point",  "name",   "count",  "share",   "status",
                                        "reason", "square", "time_s", "energy_j"};
    ck_assert_uint_eq(nj_table_n_columns(points), G_N_ELEMENTS(names));
    for (guint c = 0; c < G_N_ELEMENTS(names); c++)
        ck_assert_str_eq(nj_table_column(points, c)->name, names[c]);
    // Point 227 = 2 x 77 + 6 x 11 + 7; 227 = 3 modulo 7.
    ck_assert_int_eq(nj_table_get_integer(points, 227, 0), 227);
    ck_assert_str_eq(nj_table_get_text(points, 227, 1), "größer");
    ck_assert_int_eq(nj_table_get_integer(points, 227, 2), 64);
    ck_assert_double_eq_tol(nj_table_get_real(points, 227, 3), 0.7, 1e-12);
    ck_assert_str_eq(nj_table_get_text(points, 227, 4), "impossible");
    ck_assert_str_eq(nj_table_get_text(points, 227, 5), "227 is 3 modulo 7 µ");
    ck_assert_int_eq(nj_table_get_integer(points, 227, 6), 227 * 227);
    ck_assert(nj_table_is_missing(points, 227, 7));
    ck_assert_str_eq(nj_table_get_text(points, 228, 4), "ok");
    ck_assert(nj_table_is_missing(points, 228, 5));
    ck_assert_double_eq(nj_table_get_real(points, 228, 8), 22800);
    guint n_frontiers = 0, n_breakdown = 0;
    for (guint point = 0; point < N_POINTS; point++) {
        n_frontiers += point % 7 == 3 ? 0 : point % 4;
        n_breakdown += point % 7 == 3 ? 0 : 3;
    }
    ck_assert_uint_eq(nj_table_n_rows(tables[NJ_RESULT_FRONTIERS]), n_frontiers);
    ck_assert_uint_eq(nj_table_n_rows(tables[NJ_RESULT_BREAKDOWN]), n_breakdown);
    ck_assert_int_eq(nj_table_get_integer(tables[NJ_RESULT_FRONTIERS], n_frontiers - 1, 0), 230);
    ck_assert_str_eq(nj_table_get_text(tables[NJ_RESULT_FRONTIERS], n_frontiers - 1, 2), "F230 B1");
    for (guint kind = 0; kind < NJ_N_RESULTS; kind++)
        nj_table_free(tables[kind]);
}
END_TEST

START_TEST(same_bytes_for_any_jobs)
{
    static const guint jobs[] = {1, 2, 5, 500};
    for (guint i = 0; i < G_N_ELEMENTS(jobs); i++) {
        Job job = make_job();
        job.jobs = jobs[i];
        job.synthetic.delay_us = 50;
        run_ok(&job, output);
        assert_as_undisturbed();
        ck_assert_int_eq(g_remove(output), 0);
    }
}
END_TEST

START_TEST(a_finished_sweep_computes_nothing)
{
    Job job = make_job();
    job.synthetic.log_fd = open_log();
    run_ok(&job, output);
    ck_assert_int_eq(lseek(job.synthetic.log_fd, 0, SEEK_END), (off_t)(N_POINTS * sizeof(guint)));
    const NjSweepSummary summary = run_ok(&job, output);
    ck_assert_uint_eq(summary.n_before, N_POINTS);
    ck_assert_uint_eq(summary.n_computed, 0);
    ck_assert_int_eq(lseek(job.synthetic.log_fd, 0, SEEK_END), (off_t)(N_POINTS * sizeof(guint)));
    close(job.synthetic.log_fd);
    assert_as_undisturbed();
}
END_TEST

// ---- Interruptions

// The points from an offset of the log on were not in the journal before.
static void assert_nothing_twice(int log_fd, off_t offset, GHashTable *before)
{
    g_autoptr(GArray) points = logged_points(log_fd, offset);
    for (guint i = 0; i < points->len; i++)
        ck_assert_msg(!g_hash_table_contains(before, GUINT_TO_POINTER(g_array_index(points, guint, i))),
                      "point %u was finished and computed again", g_array_index(points, guint, i));
}

START_TEST(killed_at_50_moments)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(20250701);
    Job job = make_job();
    job.synthetic.log_fd = open_log();
    job.synthetic.delay_us = 400;
    const gint64 start_us = g_get_monotonic_time();
    int whole_end;
    const pid_t whole = start_job(&job, &whole_end);
    ck_assert_int_eq(end_job(whole, whole_end, NULL), 0);
    const double whole_us = (double)(g_get_monotonic_time() - start_us);
    assert_as_undisturbed();
    ck_assert_int_eq(g_remove(output), 0);
    guint n_killed = 0, n_finished = 0, n_while_folding = 0, most = 0;
    while (n_killed < 50) {
        g_autoptr(GHashTable) before = journalled_points();
        const off_t offset = lseek(job.synthetic.log_fd, 0, SEEK_END);
        int pipe_end;
        const pid_t child = start_job(&job, &pipe_end);
        // Any moment of the run, and some beyond its end: the file is written and renamed in its last
        // milliseconds.
        const double left = 1 - (double)g_hash_table_size(before) / N_POINTS;
        g_usleep((gulong)g_rand_double_range(random, 0, whole_us * (0.7 + 0.5 * left)));
        kill(child, SIGKILL);
        const int status = end_job(child, pipe_end, NULL);
        assert_nothing_twice(job.synthetic.log_fd, offset, before);
        g_autoptr(GHashTable) after = journalled_points();
        if (exists(journal) && g_hash_table_size(after) > 0) {
            ck_assert_uint_ge(g_hash_table_size(after), g_hash_table_size(before)); // nothing lost
            most = MAX(most, g_hash_table_size(after));
            n_while_folding += g_hash_table_size(after) == N_POINTS;
        }
        if (WIFSIGNALED(status)) {
            n_killed++;
        } else {
            ck_assert_int_eq(status, 0);
        }
        if (exists(output) && (!exists(journal) || WIFEXITED(status))) {
            n_finished++;
            assert_as_undisturbed();
            ck_assert_int_eq(g_remove(output), 0);
        }
    }
    run_ok(&job, output);
    assert_as_undisturbed();
    close(job.synthetic.log_fd);
    // The moments were worth it: sweeps went on to their end, and far ones were hit.
    ck_assert_uint_ge(n_finished, 1);
    ck_assert_uint_ge(most, N_POINTS / 2);
    g_printerr("killed %u times, finished %u sweeps, %u kills with all points in the journal\n", n_killed,
               n_finished, n_while_folding);
}
END_TEST

START_TEST(signals_stop_cleanly)
{
    static const int signals[] = {SIGINT, SIGTERM};
    for (guint i = 0; i < G_N_ELEMENTS(signals); i++) {
        Job job = make_job();
        job.synthetic.log_fd = open_log();
        job.synthetic.delay_us = 4000;
        int pipe_end;
        const pid_t child = start_job(&job, &pipe_end);
        g_usleep(100000);
        kill(child, signals[i]);
        g_autofree char *message = NULL;
        const int status = end_job(child, pipe_end, &message);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 1, "status %d", status);
        g_autoptr(GHashTable) before = journalled_points();
        const guint n = g_hash_table_size(before);
        g_autofree char *expected = g_strdup_printf(
            "stopped after %u of %d points, which are kept: the same command goes on from there", n,
            N_POINTS);
        ck_assert_str_eq(message, expected);
        ck_assert_uint_gt(n, 0);
        ck_assert_uint_lt(n, N_POINTS);
        ck_assert(!exists(output));
        const off_t offset = lseek(job.synthetic.log_fd, 0, SEEK_END);
        job.synthetic.delay_us = 0;
        const NjSweepSummary summary = run_ok(&job, output);
        ck_assert_uint_eq(summary.n_before, n);
        ck_assert_uint_eq(summary.n_computed, N_POINTS - n);
        assert_nothing_twice(job.synthetic.log_fd, offset, before);
        assert_as_undisturbed();
        ck_assert_int_eq(g_remove(output), 0);
        close(job.synthetic.log_fd);
    }
}
END_TEST

START_TEST(a_second_signal_ends_at_once)
{
    Job job = make_job();
    job.synthetic.delay_us = 20000000;
    int pipe_end;
    const gint64 start = g_get_monotonic_time();
    const pid_t child = start_job(&job, &pipe_end);
    g_usleep(100000);
    kill(child, SIGINT);
    g_usleep(200000);
    kill(child, SIGINT);
    const int status = end_job(child, pipe_end, NULL);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    ck_assert_int_lt(g_get_monotonic_time() - start, 5000000);
}
END_TEST

START_TEST(a_torn_record_is_cut_off)
{
    Job job = make_job();
    job.synthetic.fail_at = 100;
    job.jobs = 1;
    run_fails(
        &job, output,
        "stopped after 100 of 231 points, which are kept: point 100 (name = y, count = 4, share = 0.1): "
        "synthetic failure");
    job.synthetic.fail_at = -1;
    GStatBuf status;
    ck_assert_int_eq(g_stat(journal, &status), 0);
    // A record torn in its payload, one torn in its frame, and rubbish behind the last: 99 of 100 points are
    // left.
    ck_assert_int_eq(truncate(journal, status.st_size - 1), 0);
    NjSweepSummary summary;
    GError *error = NULL;
    job.synthetic.fail_at = 99;
    ck_assert(!run_job(&job, output, &summary, &error));
    g_clear_error(&error);
    ck_assert_uint_eq(summary.n_before, 99);
    ck_assert_uint_gt(summary.n_cut_bytes, 0);
    FILE *file = fopen(journal, "a");
    ck_assert_int_ge(fprintf(file, "rubbish, longer than the frame of a record"), 0);
    fclose(file);
    job.synthetic.fail_at = -1;
    summary = run_ok(&job, output);
    ck_assert_uint_eq(summary.n_before, 99);
    ck_assert_uint_eq(summary.n_cut_bytes, strlen("rubbish, longer than the frame of a record"));
    assert_as_undisturbed();
}
END_TEST

// Killed before its header was whole, a journal is as good as none.
START_TEST(a_journal_without_header_is_new)
{
    static const char *const beginnings[] = {"", "nanojoule jou", "nanojoule journal 1\n",
                                             "nanojoule journal 1\n\x20\x00\x00"};
    for (guint i = 0; i < G_N_ELEMENTS(beginnings); i++) {
        ck_assert(g_file_set_contents(journal, beginnings[i], -1, NULL));
        const Job job = make_job();
        run_ok(&job, output);
        assert_as_undisturbed();
        ck_assert_int_eq(g_remove(output), 0);
    }
}
END_TEST

// Killed after the store was renamed into place and before its journal was removed.
START_TEST(a_journal_left_beside_its_store)
{
    Job job = make_job();
    g_autofree char *part = g_strconcat(output, ".part", NULL);
    ck_assert_int_eq(g_mkdir(part, 0700), 0); // nothing can be written aside
    GError *error = NULL;
    NjSweepSummary summary;
    ck_assert(!run_job(&job, output, &summary, &error));
    ck_assert_msg(g_str_has_prefix(error->message, part), "%s", error->message);
    ck_assert_msg(g_str_has_suffix(error->message, "Is a directory"), "%s", error->message);
    g_clear_error(&error);
    ck_assert_int_eq(g_rmdir(part), 0);
    g_autofree char *bytes = NULL;
    gsize size;
    ck_assert(g_file_get_contents(journal, &bytes, &size, NULL));
    summary = run_ok(&job, output);
    ck_assert_uint_eq(summary.n_before, N_POINTS);
    assert_as_undisturbed();
    ck_assert(g_file_set_contents(journal, bytes, (gssize)size, NULL));
    summary = run_ok(&job, output);
    ck_assert_uint_eq(summary.n_before, N_POINTS);
    assert_as_undisturbed();
}
END_TEST

START_TEST(a_full_disk)
{
    Job job = make_job();
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {20000, 20000};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        GError *error = NULL;
        NjSweepSummary summary;
        if (!run_job(&job, output, &summary, &error))
            (void)!write(ends[1], error->message, strlen(error->message));
        _exit(0);
    }
    close(ends[1]);
    g_autofree char *message = NULL;
    ck_assert_int_eq(end_job(child, ends[0], &message), 0);
    g_autoptr(GHashTable) points = journalled_points();
    g_autofree char *expected =
        g_strdup_printf("stopped after %u of %d points, which are kept: %s: cannot write: File too large",
                        g_hash_table_size(points), N_POINTS, journal);
    ck_assert_str_eq(message, expected);
    ck_assert_uint_gt(g_hash_table_size(points), 10);
    const NjSweepSummary summary = run_ok(&job, output);
    ck_assert_uint_eq(summary.n_before, g_hash_table_size(points));
    assert_as_undisturbed();
}
END_TEST

// ---- Selections, shards

START_TEST(a_selection_can_grow_but_not_shrink)
{
    Job job = make_job();
    job.selection.limit = 50;
    NjSweepSummary summary = run_ok(&job, output);
    ck_assert_uint_eq(summary.n_points, 50);
    job.selection = (NjSelection){0};
    summary = run_ok(&job, output);
    ck_assert_uint_eq(summary.n_before, 50);
    ck_assert_uint_eq(summary.n_computed, N_POINTS - 50);
    assert_as_undisturbed();
    job.selection.where = "count = 4";
    run_fails(&job, output,
              "%s: holds points that this --where, --limit or --shard leaves out; give another output",
              output);
    job.selection.where = "count = 3";
    run_fails(&job, output, "s.ini: no point of the grid is selected");
    job.selection.where = "size = 3";
    run_fails(&job, output, "--where \"size = 3\": no column 'size'; there are: name, count, share");
    assert_as_undisturbed();
}
END_TEST

// The same points under another --limit: only the note in /scenario changes, and is what an undisturbed sweep
// has.
START_TEST(the_stored_selection_is_the_last_one)
{
    Job job = make_job();
    job.selection.limit = N_POINTS;
    run_ok(&job, output);
    job.selection.limit = 0;
    const NjSweepSummary summary = run_ok(&job, output);
    ck_assert_uint_eq(summary.n_before, N_POINTS);
    assert_as_undisturbed();
}
END_TEST

static gboolean merge(const char *const *paths, guint n, const char *to, GError **error)
{
    const Job job = make_job();
    g_autoptr(NjGrid) grid = make_grid(job.text);
    return nj_sweep_merge(paths, n, grid, &job.synthetic.base, to, error);
}

static void merge_fails(const char *const *paths, guint n, const char *to, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

static void merge_fails(const char *const *paths, guint n, const char *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *message = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    GError *error = NULL;
    ck_assert(!merge(paths, n, to, &error));
    nj_assert_error(error, message);
}

START_TEST(shards_merge_into_the_same_bytes)
{
    g_autoptr(GError) error = NULL;
    char *shards[5];
    for (guint i = 0; i < 5; i++) {
        g_autofree char *name = g_strdup_printf("shard%u.h5", i);
        shards[i] = g_build_filename(folder, name, NULL);
        Job job = make_job();
        job.selection.shard = i % 3;
        job.selection.n_shards = i < 3 ? 3 : 4;
        if (i == 4)
            job.text = "[a]\nname = x;z;größer\n[b]\ncount = 1..64 *2\nshare = 0:1:0.1\nmore = 1\n";
        run_ok(&job, shards[i]);
    }
    const char *const good[] = {shards[2], shards[0], shards[1]};
    nj_assert_ok(merge(good, 3, output, &error), error);
    assert_as_undisturbed();
    merge_fails(good, 3, output, "%s: exists already", output);
    ck_assert_int_eq(g_remove(output), 0);

    merge_fails(good, 2, output, "%s: belongs to a sweep of which these shards are missing: 1/3", shards[2]);
    const char *const twice[] = {shards[0], shards[1], shards[0]};
    merge_fails(twice, 3, output, "%s: the same shard 0/3 as %s", shards[0], shards[0]);
    const char *const mixed[] = {shards[0], shards[3]};
    merge_fails(mixed, 2, output, "%s: one of 4 shards, but %s is one of 3", shards[3], shards[0]);
    const char *const other[] = {shards[0], shards[4]};
    merge_fails(
        other, 2, output,
        "%s: belongs to another sweep: [a] name = x;z;größer there, x;y;größer here; [b] more = 1 only "
        "there; [b] fixed = 12 only here",
        shards[4]);
    const char *const whole[] = {reference};
    merge_fails(whole, 1, output, "%s: not a shard: a sweep with --shard writes one", reference);
    const char *const absent[] = {output};
    merge_fails(absent, 1, reference, "%s: cannot open: No such file or directory", output);
    ck_assert(!exists(journal));

    // A sweep with the same output that has begun is not overrun.
    Job begun = make_job();
    begun.synthetic.fail_at = 200;
    GError *stopped = NULL;
    NjSweepSummary summary;
    ck_assert(!run_job(&begun, output, &summary, &stopped));
    g_clear_error(&stopped);
    merge_fails(good, 3, output, "%s: is of a sweep that is not finished; give another output", journal);
    ck_assert(exists(journal));

    Job narrow = make_job();
    narrow.selection = (NjSelection){.where = "count = 4", .shard = 1, .n_shards = 3};
    ck_assert_int_eq(g_remove(shards[1]), 0);
    run_ok(&narrow, shards[1]);
    const char *const selections[] = {shards[0], shards[1], shards[2]};
    merge_fails(selections, 3, output, "%s: another --where or --limit than %s", shards[1], shards[0]);
    for (guint i = 0; i < 5; i++)
        g_free(shards[i]);
}
END_TEST

// More shards than points: some are empty, and the whole is the same.
START_TEST(empty_shards)
{
    g_autoptr(GError) error = NULL;
    char *shards[5];
    for (guint i = 0; i < 5; i++) {
        g_autofree char *name = g_strdup_printf("shard%u.h5", i);
        shards[i] = g_build_filename(folder, name, NULL);
        Job job = make_job();
        job.selection = (NjSelection){.limit = 3, .shard = i, .n_shards = 5};
        run_ok(&job, shards[i]);
    }
    nj_assert_ok(merge((const char *const *)shards, 5, output, &error), error);
    Job job = make_job();
    job.selection.limit = 3;
    run_ok(&job, reference);
    assert_same_bytes(output, reference);
    for (guint i = 0; i < 5; i++)
        g_free(shards[i]);
}
END_TEST

// ---- Refusals

START_TEST(another_sweep_is_refused)
{
    Job job = make_job();
    job.jobs = 1;
    job.synthetic.fail_at = 100;
    GError *error = NULL;
    NjSweepSummary summary;
    ck_assert(!run_job(&job, output, &summary, &error)); // leaves a journal
    g_clear_error(&error);
    job.synthetic.fail_at = -1;
    for (guint round = 0; round < 2; round++) { // against the journal, then against the store
        const char *const path = round == 0 ? journal : output;
        Job other = make_job();
        other.text = "[a]\nname = x;y;größer\n[b]\ncount = 1;2\nshare = 0:1:0.1\nfixed = 13\n";
        run_fails(&other, output,
                  "%s: belongs to another sweep: [b] count = 1..64 *2 there, 1;2 here; [b] fixed = 12 there, "
                  "13 here",
                  path);
        other = make_job();
        other.inputs = "gpu.ini 0000\n";
        run_fails(&other, output, "%s: belongs to another sweep: the file gpu.ini has another content", path);
        // Comments and blanks are no difference.
        other = make_job();
        other.text =
            "# a comment\n[a]\nname =  x;y;größer\n[b]\ncount = 1..64 *2\n\nshare = 0:1:0.1\nfixed = 12\n";
        other.synthetic.fail_at = 101;
        other.jobs = 1;
        if (round == 0)
            run_fails(
                &other, output,
                "stopped after 101 of 231 points, which are kept: point 101 (name = y, count = 4, share = "
                "0.2): synthetic failure");
        run_ok(&job, output);
    }
    assert_as_undisturbed();
}
END_TEST

START_TEST(things_in_the_way)
{
    const Job job = make_job();
    ck_assert(g_file_set_contents(journal, "my diary", -1, NULL));
    run_fails(&job, output, "%s: not a journal of a sweep; it is in the way", journal);
    ck_assert(exists(journal));
    ck_assert_int_eq(g_remove(journal), 0);

    g_autoptr(GError) error = NULL;
    g_autoptr(NjJournal) other = nj_journal_open(journal, &error);
    nj_assert_ok(other != NULL, error);
    run_fails(&job, output, "%s: another sweep is writing it", journal);
    g_clear_pointer(&other, nj_journal_free);
    ck_assert(!exists(journal));

    ck_assert(g_file_set_contents(output, "time_s,energy_j\n", -1, NULL));
    run_fails(&job, output, "%s: not a nanojoule result store", output);
    ck_assert(!exists(journal));
    ck_assert_int_eq(g_chmod(output, 0444), 0);
    run_fails(&job, output, "%s: is read-only", output);

    Job named = make_job();
    named.text = "[a]\ntime_s = 1;2\n";
    run_fails(&named, reference, "s.ini: [a] time_s cannot be an axis: results have a column of that name");
}
END_TEST

// ---- Estimates, progress, memory

START_TEST(estimates_without_writing)
{
    Job job = make_job();
    job.synthetic.delay_us = 2000; // about 2 ms a point: 20 points make 40 ms, 231 on 2 jobs 231 ms
    g_autoptr(NjGrid) grid = make_grid(job.text);
    const NjSweepOptions options = {.output = output,
                                    .scenario_path = "s.ini",
                                    .scenario_text = job.text,
                                    .inputs = job.inputs,
                                    .jobs = 2};
    g_autoptr(GError) error = NULL;
    NjSweepEstimate estimate;
    nj_assert_ok(nj_sweep_estimate(grid, &job.synthetic.base, &options, &estimate, &error), error);
    ck_assert_uint_eq(estimate.n_points, N_POINTS);
    ck_assert_uint_eq(estimate.n_sampled, 20);
    ck_assert_double_gt(estimate.sampled_s, 0.02);
    ck_assert_double_eq_tol(estimate.estimated_s, estimate.sampled_s / 20 * N_POINTS / 2, 1e-9);
    ck_assert(!exists(output) && !exists(journal));

    job.synthetic.delay_us = 0;
    run_ok(&job, output);
    nj_assert_ok(nj_sweep_estimate(grid, &job.synthetic.base, &options, &estimate, &error), error);
    ck_assert_uint_eq(estimate.n_before, N_POINTS);
    ck_assert_uint_eq(estimate.n_sampled, 0);
    ck_assert_double_eq(estimate.estimated_s, 0);
}
END_TEST

START_TEST(progress_lines)
{
    NjProgress progress;
    nj_progress_init(&progress, NULL, "points", 1000, 200);
    static const struct {
        guint n_done;
        double elapsed_s;
        const char *line;
    } rows[] = {
        {200, 1, "200 of 1000 points"},
        {300, 10, "300 of 1000 points, 10 a second, 1 min 10 s left"},
        {201, 1, "201 of 1000 points, 1.00 a second, 13 min 19 s left"},
        {201, 20, "201 of 1000 points, 0.05 a second, 4 h 26 min left"},
        {1000, 2, "1000 of 1000 points, 400 a second, 0 s left"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *line = nj_progress_line(&progress, rows[i].n_done, rows[i].elapsed_s);
        ck_assert_str_eq(line, rows[i].line);
    }
}
END_TEST

START_TEST(a_log_gets_plain_lines)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = tmpfile();
    ck_assert_ptr_nonnull(out);
    NjProgress progress;
    nj_progress_init(&progress, out, "points", 10, 0);
    nj_progress_show(&progress, 1); // too early
    g_usleep(1100000);
    nj_progress_show(&progress, 5);
    nj_progress_show(&progress, 6); // too early again
    nj_progress_end(&progress);
    rewind(out);
    ck_assert_int_gt(getdelim(&text, &size, '\0', out), 0);
    ck_assert_msg(g_str_has_prefix(text, "5 of 10 points, 4.") &&
                      g_str_has_suffix(text, " a second, 1 s left\n"),
                  "%s", text);
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
    free(text);
    fclose(out);
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__)
// 100,000 points with 8 rows of breakdown each, in a process of its own.
START_TEST(memory_of_100000_points)
{
    Job job = make_job();
    job.text = "[a]\nx = 1:1000:1\ny = 1:100:1\n";
    job.synthetic.n_breakdown = 8;
    int pipe_end;
    const pid_t child = start_job(&job, &pipe_end);
    char rest[256] = {0};
    ck_assert_int_eq(read(pipe_end, rest, sizeof rest - 1), 0);
    close(pipe_end);
    int status;
    struct rusage usage;
    ck_assert_int_eq(wait4(child, &status, 0, &usage), child);
    ck_assert_int_eq(status, 0);
    g_printerr("100,000 points: %ld MB, %.1f s of processor\n", usage.ru_maxrss / 1024,
               (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec * 1e-6);
    ck_assert_int_lt(usage.ru_maxrss, 300 * 1024);
}
END_TEST
#endif

int main(void)
{
    Suite *suite = suite_create("sweep");
    TCase *tests = tcase_create("sweep");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, writes_all_tables);
    tcase_add_test(tests, same_bytes_for_any_jobs);
    tcase_add_test(tests, a_finished_sweep_computes_nothing);
    tcase_add_test(tests, killed_at_50_moments);
    tcase_add_test(tests, signals_stop_cleanly);
    tcase_add_test(tests, a_second_signal_ends_at_once);
    tcase_add_test(tests, a_torn_record_is_cut_off);
    tcase_add_test(tests, a_journal_without_header_is_new);
    tcase_add_test(tests, a_journal_left_beside_its_store);
    tcase_add_test(tests, a_full_disk);
    tcase_add_test(tests, a_selection_can_grow_but_not_shrink);
    tcase_add_test(tests, the_stored_selection_is_the_last_one);
    tcase_add_test(tests, shards_merge_into_the_same_bytes);
    tcase_add_test(tests, empty_shards);
    tcase_add_test(tests, another_sweep_is_refused);
    tcase_add_test(tests, things_in_the_way);
    tcase_add_test(tests, estimates_without_writing);
    tcase_add_test(tests, progress_lines);
    tcase_add_test(tests, a_log_gets_plain_lines);
#if !defined(__SANITIZE_ADDRESS__)
    tcase_add_test(tests, memory_of_100000_points);
#endif
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
