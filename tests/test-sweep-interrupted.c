// SPDX-License-Identifier: MIT
// Sweeps that are killed, stopped, out of disk or fail, and go on.
#include "tests/sweep-testing.h"

#include <signal.h>
#include <sys/resource.h>

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

int main(void)
{
    Suite *suite = suite_create("sweep-interrupted");
    TCase *tests = tcase_create("sweep-interrupted");
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, killed_at_50_moments);
    tcase_add_test(tests, signals_stop_cleanly);
    tcase_add_test(tests, a_second_signal_ends_at_once);
    tcase_add_test(tests, a_torn_record_is_cut_off);
    tcase_add_test(tests, a_journal_without_header_is_new);
    tcase_add_test(tests, a_journal_left_beside_its_store);
    tcase_add_test(tests, a_full_disk);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
