// SPDX-License-Identifier: MIT
#pragma once
// The result store: one HDF5 file that h5py, pandas, Julia and h5dump read without help. Every table is one
// dataset of compound rows at the root, laid out as the HDF5 table interface (H5TB) and PyTables lay tables
// out: attributes CLASS, VERSION, TITLE and FIELD_i_NAME, to which this store adds FIELD_i_UNIT,
// FIELD_i_DESCRIPTION and, for programs that like arrays, unit and description with one element a column.
// Text is UTF-8 of fixed width, padded with NUL. A missing number is NaN, a missing integer the smallest
// 64-bit one (attribute missing_integer), a missing text empty. Rows are chunked, shuffled, deflated and
// carry Fletcher-32 checksums.
//
// Before the HDF5 file there is a user block of 512 bytes, which HDF5 programs skip: a line that says what
// the file is and which schema it has, and the SHA-256 of the rest. It is checked before the HDF5 library
// sees a byte, so a damaged file is told from a good one without trusting a parser. No time, host or user is
// stored: the same tables give the same bytes. A file is written aside and renamed into place, so it is never
// half.
//
// /scenario is a table of one row that says what the others are about. HDF5 is used by one thread at a time.

#include "scenarios/table.h"

#include <glib.h>

G_BEGIN_DECLS

#define NJ_STORE_SCHEMA 1

// What a store is about: the row of /scenario. All strings non-NULL, owned; free with nj_store_info_clear().
typedef struct {
    char *text;      // the scenario file, byte for byte
    char *hash;      // SHA-256 of text, hexadecimal
    char *version;   // version of the program that computed the rows
    char *inputs;    // data files that the scenario refers to: a line "name sha256" each, sorted
    char *where;     // selection of the points: --where, "" for none
    gint64 limit;    // --limit, 0 for none
    gint64 shard;    // --shard i/n; 0/0 for all points
    gint64 n_shards; //
    gint64 n_points; // of the whole grid
} NjStoreInfo;

void nj_store_info_clear(NjStoreInfo *info);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjStoreInfo, nj_store_info_clear)
void nj_store_info_copy(NjStoreInfo *to, const NjStoreInfo *from);

// The columns of /scenario, a table with one row of them, and back.
#define NJ_STORE_INFO_COLUMNS 9
const NjColumn *nj_store_info_columns(void);
NjTable *nj_store_info_to_table(const NjStoreInfo *info);
void nj_store_info_from_table(const NjTable *table, NjStoreInfo *info);

// ---- Writing

typedef struct NjStoreWriter NjStoreWriter;

// Begins a store that will replace path; rows go to path.part until nj_store_writer_finish(). A path that is
// a directory or a read-only file, or whose folder cannot be written, is an error. Transfer full.
NjStoreWriter *nj_store_writer_new(const char *path, const NjStoreInfo *info, GError **error);

// Begins a table: its columns and, for each text column, the length in bytes of the longest text to come
// (text_sizes[n_columns]; NULL where there is none).
gboolean nj_store_writer_begin(NjStoreWriter *writer, const char *name, const char *title,
                               const NjColumn *columns, guint n_columns, const gsize *text_sizes,
                               GError **error);

// Appends all rows of a table with the columns of the last begin. May be called many times.
gboolean nj_store_writer_append(NjStoreWriter *writer, const NjTable *rows, GError **error);

// Begin and append of a table that is in memory as a whole.
gboolean nj_store_writer_add(NjStoreWriter *writer, const char *name, const char *title, const NjTable *table,
                             GError **error);

// Completes the file, makes it durable and moves it to its path. On failure path is as it was.
gboolean nj_store_writer_finish(NjStoreWriter *writer, GError **error);

// Frees; what was not finished is removed.
void nj_store_writer_free(NjStoreWriter *writer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjStoreWriter, nj_store_writer_free)

// An error for a path that cannot become a store: a directory, a read-only file, a missing folder.
gboolean nj_store_check_writable(const char *path, GError **error);

// ---- Reading

typedef struct NjStore NjStore;

// Opens a store after checking that it is one, that it is whole, and that its schema is known. Transfer full.
NjStore *nj_store_open(const char *path, GError **error);
void nj_store_free(NjStore *store);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjStore, nj_store_free)

const NjStoreInfo *nj_store_info(const NjStore *store);

// Tables in alphabetical order; /scenario is one of them.
guint nj_store_n_tables(const NjStore *store);
const char *nj_store_table_name(const NjStore *store, guint table);
// Index of a table, or -1 and an error of NJ_ERROR_USAGE that lists those there are.
int nj_store_find_table(const NjStore *store, const char *name, GError **error);

guint nj_store_n_rows(const NjStore *store, guint table);
guint nj_store_n_columns(const NjStore *store, guint table);
const NjColumn *nj_store_columns(const NjStore *store, guint table); // [n_columns], owned by the store

// An empty table with the columns of a stored one; it must not outlive the store. Transfer full.
NjTable *nj_store_new_table(const NjStore *store, guint table);

// Appends rows first .. first + n - 1 of a stored table to one from nj_store_new_table().
gboolean nj_store_read(NjStore *store, guint table, guint first, guint n, NjTable *into, GError **error);

G_END_DECLS
