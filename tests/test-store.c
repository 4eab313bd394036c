// SPDX-License-Identifier: MIT
// Round trips, damage of every kind, and a file for the Python test: test-store --write PATH.
#include "scenarios/store-private.h"
#include "scenarios/store.h"
#include "tests/scratch.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_ROWS 20000

static const NjColumn columns[] = {
    {"point", NJ_COLUMN_INTEGER, 0, "1", "number of the point"},
    {"name", NJ_COLUMN_TEXT, 0, "", "a name, Größe µ"},
    {"time_s", NJ_COLUMN_REAL, 3, "s", "a time"},
};

static NjTable *make_table(guint n_rows)
{
    NjTable *table = nj_table_new(columns, G_N_ELEMENTS(columns));
    for (guint i = 0; i < n_rows; i++) {
        nj_table_add_row(table);
        nj_table_set_integer(table, 0, i);
        if (i % 3 == 0)
            nj_table_set_text(table, 1, i % 2 == 0 ? "größer µs" : "x");
        if (i % 5 != 0)
            nj_table_set_real(table, 2, 1.0 / (1 + i));
    }
    nj_table_add_row(table); // a row of missing cells
    return table;
}

static gboolean write_store(const char *path, guint n_rows, GError **error)
{
    const NjStoreInfo info = {.text = (char *)"[a]\nk = 1;2\n",
                              .hash = (char *)"0123",
                              .version = (char *)"0.1",
                              .inputs = (char *)"gpu.ini 89ab\n",
                              .where = (char *)"",
                              .limit = 7,
                              .n_points = 20};
    g_autoptr(NjTable) table = make_table(n_rows);
    g_autoptr(NjTable) empty = nj_table_new(columns, G_N_ELEMENTS(columns));
    g_autoptr(NjStoreWriter) writer = nj_store_writer_new(path, &info, error);
    return writer != NULL && nj_store_writer_add(writer, "points", "Points", table, error) &&
           nj_store_writer_add(writer, "frontiers", "Frontiers", empty, error) &&
           nj_store_writer_finish(writer, error);
}

static void read_file(const char *path, char **bytes, gsize *size)
{
    g_autoptr(GError) error = NULL;
    nj_assert_ok(g_file_get_contents(path, bytes, size, &error), error);
}

static void write_file(const char *path, const char *bytes, gsize size)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

static void assert_open_fails(const char *path, const char *what)
{
    GError *error = NULL;
    g_autofree char *message = g_strdup_printf("%s: %s", path, what);
    ck_assert_ptr_null(nj_store_open(path, &error));
    nj_assert_error(error, message);
}

START_TEST(round_trip)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = in_scratch("a.h5");
    nj_assert_ok(write_store(path, N_ROWS, &error), error);
    g_autofree char *part = in_scratch("a.h5.part");
    ck_assert(!g_file_test(part, G_FILE_TEST_EXISTS));
    g_autoptr(NjStore) store = nj_store_open(path, &error);
    nj_assert_ok(store != NULL, error);

    const NjStoreInfo *info = nj_store_info(store);
    ck_assert_str_eq(info->text, "[a]\nk = 1;2\n");
    ck_assert_str_eq(info->hash, "0123");
    ck_assert_str_eq(info->version, "0.1");
    ck_assert_str_eq(info->inputs, "gpu.ini 89ab\n");
    ck_assert_str_eq(info->where, "");
    ck_assert_int_eq(info->limit, 7);
    ck_assert_int_eq(info->n_points, 20);

    ck_assert_uint_eq(nj_store_n_tables(store), 3);
    ck_assert_str_eq(nj_store_table_name(store, 0), "frontiers");
    const int points = nj_store_find_table(store, "points", &error);
    ck_assert_int_eq(points, 1);
    ck_assert_uint_eq(nj_store_n_rows(store, 0), 0);
    ck_assert_uint_eq(nj_store_n_rows(store, 1), N_ROWS + 1);
    for (guint c = 0; c < G_N_ELEMENTS(columns); c++) {
        const NjColumn *column = &nj_store_columns(store, 1)[c];
        ck_assert_str_eq(column->name, columns[c].name);
        ck_assert_str_eq(column->unit, columns[c].unit);
        ck_assert_str_eq(column->description, columns[c].description);
        ck_assert_int_eq(column->type, columns[c].type);
        ck_assert_int_eq(column->digits, columns[c].digits);
    }
    g_autoptr(NjTable) expected = make_table(N_ROWS);
    g_autoptr(NjTable) table = nj_store_new_table(store, 1);
    // In two reads that do not end where a chunk does.
    nj_assert_ok(nj_store_read(store, 1, 0, 12345, table, &error), error);
    nj_assert_ok(nj_store_read(store, 1, 12345, N_ROWS + 1 - 12345, table, &error), error);
    ck_assert_uint_eq(nj_table_n_rows(table), N_ROWS + 1);
    for (guint row = 0; row <= N_ROWS; row++) {
        for (guint c = 0; c < G_N_ELEMENTS(columns); c++)
            ck_assert_int_eq(nj_table_is_missing(table, row, c), nj_table_is_missing(expected, row, c));
        ck_assert_int_eq(nj_table_get_integer(table, row, 0), nj_table_get_integer(expected, row, 0));
        ck_assert_pstr_eq(nj_table_get_text(table, row, 1), nj_table_get_text(expected, row, 1));
        const double value = nj_table_get_real(expected, row, 2);
        if (!nj_table_is_missing(expected, row, 2))
            ck_assert_double_eq(nj_table_get_real(table, row, 2), value);
    }

    GError *unknown = NULL;
    g_autofree char *message =
        g_strdup_printf("%s: no table 'x'; there are: frontiers, points, scenario", path);
    ck_assert_int_eq(nj_store_find_table(store, "x", &unknown), -1);
    nj_assert_error(unknown, message);
}
END_TEST

START_TEST(same_content_same_bytes)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *first = in_scratch("a.h5"), *second = in_scratch("b.h5");
    nj_assert_ok(write_store(first, N_ROWS, &error), error);
    g_usleep(1100000); // HDF5 would store seconds
    nj_assert_ok(write_store(second, N_ROWS, &error), error);
    g_autofree char *a = NULL, *b = NULL;
    gsize a_size, b_size;
    read_file(first, &a, &a_size);
    read_file(second, &b, &b_size);
    ck_assert_uint_eq(a_size, b_size);
    ck_assert_mem_eq(a, b, a_size);
}
END_TEST

#define DAMAGED                                                                                              \
    "damaged: its checksum does not match its content (truncated, or changed since nanojoule wrote it)"

START_TEST(every_truncation_and_flip_is_found)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = in_scratch("a.h5"), *broken = in_scratch("broken.h5");
    nj_assert_ok(write_store(path, 40, &error), error);
    g_autofree char *bytes = NULL;
    gsize size;
    read_file(path, &bytes, &size);
    g_autoptr(GRand) random = g_rand_new_with_seed(1);
    for (guint i = 0; i < 400; i++) {
        // Every bit of the seal's text once, then the whole file at random.
        const gsize byte = i < 200 ? i : (gsize)g_rand_int_range(random, 0, (gint32)size);
        const char bit = (char)(1 << (i % 8));
        bytes[byte] ^= bit;
        write_file(broken, bytes, size);
        bytes[byte] ^= bit;
        assert_open_fails(broken, byte < strlen("nanojoule result store, schema ")
                                      ? "an HDF5 file, but not a nanojoule result store"
                                      : DAMAGED);
    }
    for (guint i = 0; i < 100; i++) {
        const gsize length = i < 50 ? size - 1 - i : (gsize)g_rand_int_range(random, 40, (gint32)size);
        write_file(broken, bytes, length);
        assert_open_fails(broken, DAMAGED);
    }
}
END_TEST

// A file whose seal is in order may still be none of ours: the HDF5 library's own complaints become errors.
START_TEST(sealed_rubbish)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = in_scratch("a.h5");
    char rubbish[4096];
    memset(rubbish, 'x', sizeof rubbish);
    nj_assert_ok(g_file_set_contents(path, rubbish, sizeof rubbish, &error), error);
    nj_assert_ok(nj_store_seal(path, NJ_STORE_SCHEMA, &error), error);
    GError *broken = NULL;
    ck_assert_ptr_null(nj_store_open(path, &broken));
    g_autofree char *prefix = g_strdup_printf("%s: cannot be read: ", path);
    ck_assert_msg(g_str_has_prefix(broken->message, prefix), "%s", broken->message);
    g_clear_error(&broken);

    // A whole HDF5 file without /scenario.
    const hid_t creation = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_userblock(creation, NJ_STORE_SEAL_SIZE);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, creation, H5P_DEFAULT);
    H5Pclose(creation);
    ck_assert_int_ge(H5Fclose(file), 0);
    nj_assert_ok(nj_store_seal(path, NJ_STORE_SCHEMA, &error), error);
    assert_open_fails(path, "/scenario is not a table of schema 1");

    // A group where a table should be.
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    H5Gclose(H5Gcreate2(file, "points", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    ck_assert_int_ge(H5Fclose(file), 0);
    nj_assert_ok(nj_store_seal(path, NJ_STORE_SCHEMA, &error), error);
    ck_assert_ptr_null(nj_store_open(path, &broken));
    g_autofree char *group = g_strdup_printf("%s: /points is not a table of this schema: ", path);
    ck_assert_msg(g_str_has_prefix(broken->message, group), "%s", broken->message);
    g_clear_error(&broken);
}
END_TEST

START_TEST(foreign_files)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = in_scratch("a.h5");
    assert_open_fails(path, "cannot open: No such file or directory");
    nj_assert_ok(g_file_set_contents(path, "", 0, &error), error);
    assert_open_fails(path, "the file is empty, not a nanojoule result store");
    nj_assert_ok(g_file_set_contents(path, "time_s,energy_j\n1,2\n", -1, &error), error);
    assert_open_fails(path, "not a nanojoule result store");
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert_int_ge(H5Fclose(file), 0);
    assert_open_fails(path, "an HDF5 file, but not a nanojoule result store");
    assert_open_fails(scratch, "cannot read: Is a directory");
}
END_TEST

START_TEST(other_schemas)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = in_scratch("a.h5");
    nj_assert_ok(write_store(path, 40, &error), error);
    nj_assert_ok(nj_store_seal(path, NJ_STORE_SCHEMA + 1, &error), error);
    assert_open_fails(path, "result store of schema 2; this nanojoule reads 1: use a newer nanojoule");
    nj_assert_ok(nj_store_seal(path, NJ_STORE_SCHEMA - 1, &error), error);
    assert_open_fails(path, "result store of schema 0; this nanojoule reads 1: sweep again into a new file");
}
END_TEST

static void assert_write_fails(const char *path, const char *what)
{
    GError *error = NULL;
    g_autofree char *message = g_strdup_printf("%s: %s", path, what);
    ck_assert(!write_store(path, 40, &error));
    nj_assert_error(error, message);
}

START_TEST(places_that_cannot_be_written)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = in_scratch("a.h5"), *nowhere = in_scratch("none/a.h5");
    assert_write_fails(scratch, "is a folder; a file name is needed");
    assert_write_fails(nowhere, "its folder does not exist");
    assert_write_fails("/dev/null", "is not a regular file");
    nj_assert_ok(write_store(path, 40, &error), error);
    g_autofree char *before = NULL, *after = NULL;
    gsize before_size, after_size;
    read_file(path, &before, &before_size);
    ck_assert_int_eq(g_chmod(path, 0444), 0);
    assert_write_fails(path, "is read-only");
    read_file(path, &after, &after_size);
    ck_assert_uint_eq(before_size, after_size);
    ck_assert_mem_eq(before, after, before_size);
    if (geteuid() != 0) { // root may write every folder
        ck_assert_int_eq(g_chmod(path, 0644), 0);
        ck_assert_int_eq(g_chmod(scratch, 0555), 0);
        g_autofree char *other = in_scratch("b.h5");
        assert_write_fails(other, "its folder cannot be written");
        ck_assert_int_eq(g_chmod(scratch, 0755), 0);
    }
}
END_TEST

// Writes a store in a process that may write no file beyond a size, and gives the error's message, NULL where
// there was none. The HDF5 library leaks what a failed close leaves behind, so the process ends without being
// checked.
static char *write_with_limit(const char *path, rlim_t size)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        GError *error = NULL;
        const struct rlimit limit = {size, size};
        if (setrlimit(RLIMIT_FSIZE, &limit) == 0 && !write_store(path, N_ROWS, &error))
            (void)!write(ends[1], error->message, strlen(error->message));
        _exit(0);
    }
    close(ends[1]);
    char message[1024] = {0};
    ck_assert_int_ge(read(ends[0], message, sizeof message - 1), 0);
    close(ends[0]);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    return message[0] != '\0' ? g_strdup(message) : NULL;
}

// A full disk, played by that limit: whatever was there stays, nothing is left aside.
START_TEST(full_disk)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = in_scratch("a.h5"), *part = in_scratch("a.h5.part");
    nj_assert_ok(write_store(path, 40, &error), error);
    static const rlim_t sizes[] = {300, 2000, 20000, 60000};
    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autofree char *message = write_with_limit(path, sizes[i]);
        ck_assert_msg(message != NULL, "%d bytes were enough", (int)sizes[i]);
        ck_assert_msg(g_str_has_prefix(message, part) && g_str_has_suffix(message, ": File too large"), "%s",
                      message);
        ck_assert(!g_file_test(part, G_FILE_TEST_EXISTS));
        g_autoptr(NjStore) store = nj_store_open(path, &error);
        nj_assert_ok(store != NULL, error);
        ck_assert_uint_eq(nj_store_n_rows(store, 1), 41);
    }
}
END_TEST

START_TEST(place_taken_meanwhile)
{
    g_autofree char *path = in_scratch("a.h5"), *inside = in_scratch("a.h5/x"),
                    *part = in_scratch("a.h5.part");
    const NjStoreInfo info = {.text = (char *)"",
                              .hash = (char *)"",
                              .version = (char *)"",
                              .inputs = (char *)"",
                              .where = (char *)""};
    GError *error = NULL;
    NjStoreWriter *writer = nj_store_writer_new(path, &info, &error);
    nj_assert_ok(writer != NULL, error);
    ck_assert_int_eq(g_mkdir_with_parents(inside, 0700), 0);
    g_autofree char *message = g_strdup_printf("%s: cannot be replaced: Is a directory", path);
    ck_assert(!nj_store_writer_finish(writer, &error));
    nj_assert_error(error, message);
    nj_store_writer_free(writer);
    ck_assert(!g_file_test(part, G_FILE_TEST_EXISTS));
    ck_assert_int_eq(g_rmdir(inside), 0);
    ck_assert_int_eq(g_rmdir(path), 0);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc == 3 && g_str_equal(argv[1], "--write")) {
        g_autoptr(GError) error = NULL;
        if (write_store(argv[2], N_ROWS, &error))
            return EXIT_SUCCESS;
        g_printerr("%s\n", error->message);
        return EXIT_FAILURE;
    }
    nj_store_hdf5_init();
    Suite *suite = suite_create("store");
    TCase *tests = tcase_create("store");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, make_scratch, remove_scratch);
    tcase_add_test(tests, round_trip);
    tcase_add_test(tests, same_content_same_bytes);
    tcase_add_test(tests, every_truncation_and_flip_is_found);
    tcase_add_test(tests, sealed_rubbish);
    tcase_add_test(tests, foreign_files);
    tcase_add_test(tests, other_schemas);
    tcase_add_test(tests, places_that_cannot_be_written);
    tcase_add_test(tests, full_disk);
    tcase_add_test(tests, place_taken_meanwhile);
    suite_add_tcase(suite, tests);
    return nj_test_run(suite);
}
