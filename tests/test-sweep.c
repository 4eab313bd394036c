// SPDX-License-Identifier: MIT
// What sweeps write, selections and shards, refusals, estimates, progress.
#include "scenarios/progress.h"
#include "tests/sweep-testing.h"

#include <sys/resource.h>

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
                  "13 here; give another output, or remove it",
                  path);
        other = make_job();
        other.inputs = "gpu.ini 0000\n";
        run_fails(&other, output,
                  "%s: belongs to another sweep: the file gpu.ini has another content; give another output, "
                  "or remove it",
                  path);
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
