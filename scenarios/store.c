// SPDX-License-Identifier: MIT
#include "scenarios/store.h"

#include "scenarios/store-private.h"
#include "sim/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

// ---- The row of /scenario

static const NjColumn info_columns[NJ_STORE_INFO_COLUMNS] = {
    {"text", NJ_COLUMN_TEXT, 0, "", "the scenario file, byte for byte"},
    {"hash", NJ_COLUMN_TEXT, 0, "", "SHA-256 of text"},
    {"version", NJ_COLUMN_TEXT, 0, "", "version of nanojoule that computed the rows"},
    {"inputs", NJ_COLUMN_TEXT, 0, "", "data files the scenario refers to, a line of name and SHA-256 each"},
    {"where", NJ_COLUMN_TEXT, 0, "", "condition that selected the points, empty for none"},
    {"limit", NJ_COLUMN_INTEGER, 0, "1", "largest number of points selected, 0 for all"},
    {"shard", NJ_COLUMN_INTEGER, 0, "1", "shard of the selection in this file, from 0"},
    {"n_shards", NJ_COLUMN_INTEGER, 0, "1", "shards the selection was split into, 0 for none"},
    {"n_points", NJ_COLUMN_INTEGER, 0, "1", "points of the whole grid"},
};

const NjColumn *nj_store_info_columns(void)
{
    return info_columns;
}

void nj_store_info_clear(NjStoreInfo *info)
{
    g_free(info->text);
    g_free(info->hash);
    g_free(info->version);
    g_free(info->inputs);
    g_free(info->where);
    *info = (NjStoreInfo){0};
}

void nj_store_info_copy(NjStoreInfo *to, const NjStoreInfo *from)
{
    *to = *from;
    to->text = g_strdup(from->text);
    to->hash = g_strdup(from->hash);
    to->version = g_strdup(from->version);
    to->inputs = g_strdup(from->inputs);
    to->where = g_strdup(from->where);
}

NjTable *nj_store_info_to_table(const NjStoreInfo *info)
{
    NjTable *table = nj_table_new(info_columns, NJ_STORE_INFO_COLUMNS);
    nj_table_add_row(table);
    nj_table_set_text(table, 0, info->text);
    nj_table_set_text(table, 1, info->hash);
    nj_table_set_text(table, 2, info->version);
    nj_table_set_text(table, 3, info->inputs);
    nj_table_set_text(table, 4, info->where);
    nj_table_set_integer(table, 5, info->limit);
    nj_table_set_integer(table, 6, info->shard);
    nj_table_set_integer(table, 7, info->n_shards);
    nj_table_set_integer(table, 8, info->n_points);
    return table;
}

static char *text_or_empty(const NjTable *table, guint column)
{
    const char *text = nj_table_get_text(table, 0, column);
    return g_strdup(text != NULL ? text : "");
}

void nj_store_info_from_table(const NjTable *table, NjStoreInfo *info)
{
    *info = (NjStoreInfo){
        .text = text_or_empty(table, 0),
        .hash = text_or_empty(table, 1),
        .version = text_or_empty(table, 2),
        .inputs = text_or_empty(table, 3),
        .where = text_or_empty(table, 4),
        .limit = nj_table_get_integer(table, 0, 5),
        .shard = nj_table_get_integer(table, 0, 6),
        .n_shards = nj_table_get_integer(table, 0, 7),
        .n_points = nj_table_get_integer(table, 0, 8),
    };
}

// ---- Errors of the HDF5 library

// Why the first HDF5 call failed since the last report, as errno is kept: any later call, if only to close
// what was opened, empties the library's own error stack.
static _Thread_local char hdf5_reason[256];

static herr_t keep_innermost(unsigned n, const H5E_error2_t *record, void *data)
{
    (void)n;
    (void)data;
    g_strlcpy(hdf5_reason, record->desc != NULL ? record->desc : "", sizeof hdf5_reason);
    return 0;
}

// Called by the library for each call that fails. The stack's last record is where it began; a system error
// there names errno's text.
static herr_t keep_reason(hid_t stack, void *data)
{
    static const char mark[] = "error message = '";
    if (hdf5_reason[0] != '\0')
        return 0;
    H5Ewalk2(stack, H5E_WALK_DOWNWARD, keep_innermost, data);
    const char *text = strstr(hdf5_reason, mark);
    if (text != NULL) {
        memmove(hdf5_reason, text + sizeof mark - 1, strlen(text + sizeof mark - 1) + 1);
        hdf5_reason[strcspn(hdf5_reason, "'")] = '\0';
    }
    return 0;
}

void nj_store_hdf5_init(void)
{
    // Without its exit handler the library does not try, and complain about, files that a full disk left
    // open. The call may be made only before the library starts, and fails harmlessly afterwards.
    H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, keep_reason, NULL);
    hdf5_reason[0] = '\0';
}

gboolean nj_store_hdf5_error(const char *path, const char *what, GError **error)
{
    g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "%s: %s: %s", path, what,
                hdf5_reason[0] != '\0' ? hdf5_reason : "the HDF5 library failed");
    hdf5_reason[0] = '\0';
    return FALSE;
}

// ---- The seal

static gboolean file_error(const char *path, const char *what, int code, GError **error)
{
    g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "%s: %s: %s", path, what, g_strerror(code));
    return FALSE;
}

#define SEAL_LINE "nanojoule result store, schema "

// The seal's bytes for a schema and a checksum; the rest of the block is NUL.
static void format_seal(char seal[NJ_STORE_SEAL_SIZE], guint schema, const char *checksum)
{
    memset(seal, 0, NJ_STORE_SEAL_SIZE);
    g_snprintf(seal, NJ_STORE_SEAL_SIZE,
               SEAL_LINE "%u\nsha256 %s\n"
                         "An HDF5 file begins at byte 512; HDF5 programs read this file as it is.\n",
               schema, checksum);
}

// SHA-256 of the schema and of all bytes behind the seal.
static char *checksum_file(int fd, const char *path, guint schema, GError **error)
{
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    g_autofree char *head = g_strdup_printf("%u\n", schema);
    g_checksum_update(checksum, (const guchar *)head, -1);
    const gsize size = 1 << 16;
    g_autofree guchar *buffer = g_malloc(size);
    off_t offset = NJ_STORE_SEAL_SIZE;
    for (;;) {
        const ssize_t n = pread(fd, buffer, size, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            file_error(path, "cannot read", errno, error);
            return NULL;
        }
        if (n == 0)
            return g_strdup(g_checksum_get_string(checksum));
        g_checksum_update(checksum, buffer, n);
        offset += n;
    }
}

gboolean nj_store_seal(const char *path, guint schema, GError **error)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return file_error(path, "cannot open", errno, error);
    char seal[NJ_STORE_SEAL_SIZE];
    g_autofree char *checksum = checksum_file(fd, path, schema, error);
    gboolean good = checksum != NULL;
    if (good) {
        format_seal(seal, schema, checksum);
        good = pwrite(fd, seal, sizeof seal, 0) == sizeof seal && fsync(fd) == 0;
        if (!good)
            file_error(path, "cannot write", errno, error);
    }
    close(fd);
    return good;
}

static gboolean is_hdf5(int fd)
{
    static const char signature[8] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
    char bytes[8];
    for (off_t offset = 0; offset <= 1 << 20; offset = offset == 0 ? 512 : 2 * offset)
        if (pread(fd, bytes, sizeof bytes, offset) == sizeof bytes && memcmp(bytes, signature, 8) == 0)
            return TRUE;
    return FALSE;
}

static gboolean check_seal(int fd, const char *path, GError **error)
{
    char seal[NJ_STORE_SEAL_SIZE + 1] = {0}, expected[NJ_STORE_SEAL_SIZE];
    const ssize_t n = pread(fd, seal, NJ_STORE_SEAL_SIZE, 0);
    if (n < 0)
        return file_error(path, "cannot read", errno, error);
    if (!g_str_has_prefix(seal, SEAL_LINE)) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: %s", path,
                    n == 0        ? "the file is empty, not a nanojoule result store"
                    : is_hdf5(fd) ? "an HDF5 file, but not a nanojoule result store"
                                  : "not a nanojoule result store");
        return FALSE;
    }
    const guint schema = (guint)g_ascii_strtoull(seal + strlen(SEAL_LINE), NULL, 10);
    g_autofree char *checksum = checksum_file(fd, path, schema, error);
    if (checksum == NULL)
        return FALSE;
    format_seal(expected, schema, checksum);
    if (n != NJ_STORE_SEAL_SIZE || memcmp(seal, expected, NJ_STORE_SEAL_SIZE) != 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s: damaged: its checksum does not match its content (truncated, or changed since "
                    "nanojoule wrote it)",
                    path);
        return FALSE;
    }
    if (schema != NJ_STORE_SCHEMA) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s: result store of schema %u; this nanojoule reads %d: %s", path, schema,
                    NJ_STORE_SCHEMA,
                    schema > NJ_STORE_SCHEMA ? "use a newer nanojoule" : "sweep again into a new file");
        return FALSE;
    }
    return TRUE;
}

gboolean nj_store_check_seal(const char *path, GError **error)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return file_error(path, "cannot open", errno, error);
    const gboolean good = check_seal(fd, path, error);
    close(fd);
    return good;
}

// ---- Rows

static hid_t column_type(const NjColumn *column, gsize size)
{
    if (column->type == NJ_COLUMN_INTEGER)
        return H5Tcopy(H5T_STD_I64LE);
    if (column->type == NJ_COLUMN_REAL)
        return H5Tcopy(H5T_IEEE_F64LE);
    const hid_t type = H5Tcopy(H5T_C_S1);
    if (type >= 0 && (H5Tset_size(type, size) < 0 || H5Tset_strpad(type, H5T_STR_NULLPAD) < 0 ||
                      H5Tset_cset(type, H5T_CSET_UTF8) < 0)) {
        H5Tclose(type);
        return H5I_INVALID_HID;
    }
    return type;
}

gboolean nj_store_layout_init(NjStoreLayout *layout, const NjColumn *columns, guint n_columns,
                              const gsize *text_sizes)
{
    // Cells are copied into rows as they are in memory.
    G_STATIC_ASSERT(G_BYTE_ORDER == G_LITTLE_ENDIAN);
    *layout = (NjStoreLayout){.n_columns = n_columns,
                              .offsets = g_new0(gsize, n_columns),
                              .sizes = g_new0(gsize, n_columns),
                              .type = H5I_INVALID_HID};
    for (guint c = 0; c < n_columns; c++) {
        layout->offsets[c] = layout->row_size;
        layout->sizes[c] = 8;
        if (columns[c].type == NJ_COLUMN_TEXT)
            layout->sizes[c] = text_sizes != NULL ? MAX(text_sizes[c], 1) : 1;
        layout->row_size += layout->sizes[c];
    }
    layout->type = H5Tcreate(H5T_COMPOUND, layout->row_size);
    gboolean good = layout->type >= 0;
    for (guint c = 0; good && c < n_columns; c++) {
        const hid_t type = column_type(&columns[c], layout->sizes[c]);
        good = type >= 0 && H5Tinsert(layout->type, columns[c].name, layout->offsets[c], type) >= 0;
        if (type >= 0)
            H5Tclose(type);
    }
    return good;
}

void nj_store_layout_clear(NjStoreLayout *layout)
{
    if (layout->type > 0)
        H5Tclose(layout->type);
    g_free(layout->offsets);
    g_free(layout->sizes);
    *layout = (NjStoreLayout){.type = H5I_INVALID_HID};
}
