// SPDX-License-Identifier: MIT
#include "scenarios/store-private.h"
#include "scenarios/store.h"
#include "sim/error.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES (256 << 10) // a chunk of rows before compression; well inside HDF5's chunk cache of 1 MiB
#define DEFLATE_LEVEL 4         // level 9 is 3 times slower for a few per cent

struct NjStoreWriter {
    char *path; // where the file will be
    char *part; // where it grows
    gboolean has_part;
    hid_t file;
    // The table that was begun last.
    char *table;
    hid_t dataset;
    NjStoreLayout layout;
    guint64 n_rows;    // written to the dataset
    gsize chunk_rows;  // rows a chunk
    guint8 *buffer;    // [chunk_rows * row_size] rows on their way to the dataset
    gsize n_in_buffer; // rows
};

static gboolean failed(NjStoreWriter *writer, GError **error)
{
    g_autofree char *what =
        writer->table != NULL ? g_strdup_printf("cannot write /%s", writer->table) : g_strdup("cannot write");
    return nj_store_hdf5_error(writer->part, what, error);
}

gboolean nj_store_check_writable(const char *path, GError **error)
{
    const char *what = NULL;
    GStatBuf status;
    g_autofree char *folder = g_path_get_dirname(path);
    if (g_stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            what = "is a folder; a file name is needed";
        else if (!S_ISREG(status.st_mode))
            what = "is not a regular file";
        // The mode counts for root too, who could write it all the same: somebody protected this file.
        else if ((status.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0 || g_access(path, W_OK) != 0)
            what = "is read-only";
    } else if (!g_file_test(folder, G_FILE_TEST_IS_DIR)) {
        what = "its folder does not exist";
    } else if (g_access(folder, W_OK) != 0) {
        what = "its folder cannot be written";
    }
    if (what == NULL)
        return TRUE;
    g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "%s: %s", path, what);
    return FALSE;
}

static gboolean write_text_attribute(hid_t object, const char *name, const char *text)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    const hid_t space = H5Screate(H5S_SCALAR);
    gboolean good = type >= 0 && space >= 0 && H5Tset_size(type, strlen(text) + 1) >= 0 &&
                    H5Tset_cset(type, H5T_CSET_UTF8) >= 0;
    if (good) {
        const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
        good = attribute >= 0 && H5Awrite(attribute, type, text) >= 0;
        if (attribute >= 0)
            good = H5Aclose(attribute) >= 0 && good;
    }
    H5Tclose(type);
    H5Sclose(space);
    return good;
}

static gboolean write_texts_attribute(hid_t object, const char *name, const char *const *texts, guint n)
{
    gsize size = 1;
    for (guint i = 0; i < n; i++)
        size = MAX(size, strlen(texts[i]));
    g_autofree char *bytes = g_malloc0(n * size);
    for (guint i = 0; i < n; i++)
        memcpy(bytes + i * size, texts[i], strlen(texts[i]));
    const hid_t type = H5Tcopy(H5T_C_S1);
    const hsize_t length = n;
    const hid_t space = H5Screate_simple(1, &length, NULL);
    gboolean good = type >= 0 && space >= 0 && H5Tset_size(type, size) >= 0 &&
                    H5Tset_strpad(type, H5T_STR_NULLPAD) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0;
    if (good) {
        const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
        good = attribute >= 0 && H5Awrite(attribute, type, bytes) >= 0;
        if (attribute >= 0)
            good = H5Aclose(attribute) >= 0 && good;
    }
    H5Tclose(type);
    H5Sclose(space);
    return good;
}

static gboolean write_integer_attribute(hid_t object, const char *name, gint64 value)
{
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t attribute = H5Acreate2(object, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    gboolean good = attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_INT64, &value) >= 0;
    if (attribute >= 0)
        good = H5Aclose(attribute) >= 0 && good;
    H5Sclose(space);
    return good;
}

static hid_t create_file(const char *path)
{
    const hid_t creation = H5Pcreate(H5P_FILE_CREATE);
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    hid_t file = H5I_INVALID_HID;
    // Object headers of version 1.8 carry checksums, and every HDF5 since 2008 reads them.
    if (H5Pset_userblock(creation, NJ_STORE_SEAL_SIZE) >= 0 && H5Pset_obj_track_times(creation, 0) >= 0 &&
        H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST) >= 0)
        file = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
    H5Pclose(creation);
    H5Pclose(access);
    return file;
}

NjStoreWriter *nj_store_writer_new(const char *path, const NjStoreInfo *info, GError **error)
{
    if (!nj_store_check_writable(path, error))
        return NULL;
    nj_store_hdf5_init();
    g_autoptr(NjStoreWriter) writer = g_new0(NjStoreWriter, 1);
    writer->path = g_strdup(path);
    writer->part = g_strconcat(path, ".part", NULL);
    writer->dataset = H5I_INVALID_HID;
    writer->layout.type = H5I_INVALID_HID;
    writer->has_part = TRUE; // even a failed creation leaves one
    writer->file = create_file(writer->part);
    if (writer->file < 0 || !write_text_attribute(writer->file, "format", "nanojoule result store") ||
        !write_integer_attribute(writer->file, "schema", NJ_STORE_SCHEMA)) {
        failed(writer, error);
        return NULL;
    }
    g_autoptr(NjTable) scenario = nj_store_info_to_table(info);
    if (!nj_store_writer_add(writer, "scenario", "What the other tables are about", scenario, error))
        return NULL;
    return g_steal_pointer(&writer);
}

static hid_t create_dataset(NjStoreWriter *writer)
{
    const hsize_t none = 0, unlimited = H5S_UNLIMITED, chunk = writer->chunk_rows;
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const hid_t space = H5Screate_simple(1, &none, &unlimited);
    hid_t dataset = H5I_INVALID_HID;
    // Attributes stay in the object header, where its checksum covers them. Allocation and fill are those of
    // chunked storage by default: a chunk exists once it is written.
    if (H5Pset_chunk(creation, 1, &chunk) >= 0 && H5Pset_shuffle(creation) >= 0 &&
        H5Pset_deflate(creation, DEFLATE_LEVEL) >= 0 && H5Pset_fletcher32(creation) >= 0 &&
        H5Pset_obj_track_times(creation, 0) >= 0 && H5Pset_attr_phase_change(creation, 4096, 0) >= 0)
        dataset = H5Dcreate2(writer->file, writer->table, writer->layout.type, space, H5P_DEFAULT, creation,
                             H5P_DEFAULT);
    H5Pclose(creation);
    H5Sclose(space);
    return dataset;
}

static gboolean describe_columns(hid_t dataset, const NjColumn *columns, guint n_columns)
{
    static const char *const parts[] = {"NAME", "UNIT", "DESCRIPTION"};
    g_autofree const char **units = g_new0(const char *, n_columns);
    g_autofree const char **descriptions = g_new0(const char *, n_columns);
    for (guint c = 0; c < n_columns; c++) {
        units[c] = columns[c].unit;
        descriptions[c] = columns[c].description;
        const char *const values[] = {columns[c].name, columns[c].unit, columns[c].description};
        for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
            g_autofree char *name = g_strdup_printf("FIELD_%u_%s", c, parts[i]);
            if (!write_text_attribute(dataset, name, values[i]))
                return FALSE;
        }
        g_autofree char *digits = g_strdup_printf("FIELD_%u_DIGITS", c);
        if (!write_integer_attribute(dataset, digits, columns[c].digits))
            return FALSE;
    }
    return write_texts_attribute(dataset, "unit", units, n_columns) &&
           write_texts_attribute(dataset, "description", descriptions, n_columns) &&
           write_integer_attribute(dataset, "missing_integer", NJ_STORE_MISSING_INTEGER);
}

// Moves the buffered rows to the dataset.
static gboolean flush_rows(NjStoreWriter *writer, GError **error)
{
    if (writer->n_in_buffer == 0)
        return TRUE;
    const hsize_t start = writer->n_rows, count = writer->n_in_buffer, total = start + count;
    gboolean good = H5Dset_extent(writer->dataset, &total) >= 0;
    const hid_t rows = H5Screate_simple(1, &count, NULL);
    const hid_t all = H5Dget_space(writer->dataset);
    good = good && H5Sselect_hyperslab(all, H5S_SELECT_SET, &start, NULL, &count, NULL) >= 0 &&
           H5Dwrite(writer->dataset, writer->layout.type, rows, all, H5P_DEFAULT, writer->buffer) >= 0;
    if (!good)
        failed(writer, error);
    H5Sclose(rows);
    H5Sclose(all);
    writer->n_rows = total;
    writer->n_in_buffer = 0;
    return good;
}

static gboolean end_table(NjStoreWriter *writer, GError **error)
{
    if (writer->dataset < 0)
        return TRUE;
    gboolean good = flush_rows(writer, error);
    if (H5Dclose(writer->dataset) < 0 && good)
        good = failed(writer, error);
    writer->dataset = H5I_INVALID_HID;
    nj_store_layout_clear(&writer->layout);
    g_clear_pointer(&writer->buffer, g_free);
    g_clear_pointer(&writer->table, g_free);
    return good;
}

gboolean nj_store_writer_begin(NjStoreWriter *writer, const char *name, const char *title,
                               const NjColumn *columns, guint n_columns, const gsize *text_sizes,
                               GError **error)
{
    if (!end_table(writer, error))
        return FALSE;
    writer->table = g_strdup(name);
    if (!nj_store_layout_init(&writer->layout, columns, n_columns, text_sizes))
        return failed(writer, error);
    writer->n_rows = 0;
    writer->chunk_rows = MAX(CHUNK_BYTES / writer->layout.row_size, 1);
    writer->buffer = g_malloc(writer->chunk_rows * writer->layout.row_size);
    writer->dataset = create_dataset(writer);
    if (writer->dataset < 0 || !write_text_attribute(writer->dataset, "CLASS", "TABLE") ||
        !write_text_attribute(writer->dataset, "VERSION", "3.0") ||
        !write_text_attribute(writer->dataset, "TITLE", title) ||
        !describe_columns(writer->dataset, columns, n_columns))
        return failed(writer, error);
    return TRUE;
}

static void pack_row(const NjStoreLayout *layout, const NjTable *table, guint row, guint8 *to)
{
    memset(to, 0, layout->row_size);
    for (guint c = 0; c < layout->n_columns; c++) {
        guint8 *cell = to + layout->offsets[c];
        const gboolean missing = nj_table_is_missing(table, row, c);
        switch (nj_table_column(table, c)->type) {
        case NJ_COLUMN_TEXT: {
            const char *text = missing ? "" : nj_table_get_text(table, row, c);
            g_assert(strlen(text) <= layout->sizes[c]);
            memcpy(cell, text, strlen(text));
            break;
        }
        case NJ_COLUMN_INTEGER: {
            const gint64 value = missing ? NJ_STORE_MISSING_INTEGER : nj_table_get_integer(table, row, c);
            memcpy(cell, &value, sizeof value);
            break;
        }
        case NJ_COLUMN_REAL: {
            const double value = nj_table_get_real(table, row, c);
            memcpy(cell, &value, sizeof value);
            break;
        }
        }
    }
}

gboolean nj_store_writer_append(NjStoreWriter *writer, const NjTable *rows, GError **error)
{
    g_assert(writer->dataset >= 0 && nj_table_n_columns(rows) == writer->layout.n_columns);
    for (guint row = 0; row < nj_table_n_rows(rows); row++) {
        pack_row(&writer->layout, rows, row, writer->buffer + writer->n_in_buffer * writer->layout.row_size);
        if (++writer->n_in_buffer == writer->chunk_rows && !flush_rows(writer, error))
            return FALSE;
    }
    return TRUE;
}

gboolean nj_store_writer_add(NjStoreWriter *writer, const char *name, const char *title, const NjTable *table,
                             GError **error)
{
    const guint n_columns = nj_table_n_columns(table);
    g_autofree gsize *sizes = g_new0(gsize, n_columns);
    for (guint c = 0; c < n_columns; c++)
        for (guint row = 0; row < nj_table_n_rows(table); row++)
            if (nj_table_column(table, c)->type == NJ_COLUMN_TEXT && !nj_table_is_missing(table, row, c))
                sizes[c] = MAX(sizes[c], strlen(nj_table_get_text(table, row, c)));
    return nj_store_writer_begin(writer, name, title, nj_table_column(table, 0), n_columns, sizes, error) &&
           nj_store_writer_append(writer, table, error);
}

// Makes a rename durable; a file system that cannot do that is no reason to fail.
static void sync_folder(const char *path)
{
    g_autofree char *folder = g_path_get_dirname(path);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

gboolean nj_store_writer_finish(NjStoreWriter *writer, GError **error)
{
    if (!end_table(writer, error))
        return FALSE;
    const herr_t flushed = H5Fflush(writer->file, H5F_SCOPE_LOCAL);
    if (flushed < 0)
        return failed(writer, error);
    const herr_t closed = H5Fclose(writer->file);
    writer->file = H5I_INVALID_HID;
    if (closed < 0)
        return failed(writer, error);
    if (!nj_store_seal(writer->part, NJ_STORE_SCHEMA, error))
        return FALSE;
    if (g_rename(writer->part, writer->path) != 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "%s: cannot be replaced: %s", writer->path,
                    g_strerror(errno));
        return FALSE;
    }
    writer->has_part = FALSE;
    sync_folder(writer->path);
    return TRUE;
}

void nj_store_writer_free(NjStoreWriter *writer)
{
    if (writer == NULL)
        return;
    if (writer->dataset >= 0)
        H5Dclose(writer->dataset);
    nj_store_layout_clear(&writer->layout);
    if (writer->file >= 0)
        H5Fclose(writer->file);
    if (writer->has_part)
        g_unlink(writer->part);
    g_free(writer->buffer);
    g_free(writer->table);
    g_free(writer->part);
    g_free(writer->path);
    g_free(writer);
}
