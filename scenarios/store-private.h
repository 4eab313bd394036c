// SPDX-License-Identifier: MIT
#pragma once
// What writer and reader of the store share: the seal before the HDF5 file, the layout of a row, and errors
// of the HDF5 library as sentences.

#include "scenarios/table.h"

#include <glib.h>
#include <hdf5.h>

#define NJ_STORE_SEAL_SIZE 512 // bytes; the smallest user block HDF5 knows

// The missing integer; see store.h.
#define NJ_STORE_MISSING_INTEGER G_MININT64

// Quietens the HDF5 library: it prints neither when a call fails nor when the process ends. Call before any
// other HDF5 function, any number of times.
void nj_store_hdf5_init(void);

// Sets an error that says what failed and why, the reason being that of the first HDF5 call that failed since
// the last error or init. Returns FALSE.
gboolean nj_store_hdf5_error(const char *path, const char *what, GError **error);

// Writes the seal over the user block of a finished HDF5 file and makes the file durable.
gboolean nj_store_seal(const char *path, guint schema, GError **error);

// Checks that a file is a store of the known schema and undamaged.
gboolean nj_store_check_seal(const char *path, GError **error);

// A row in memory and in the file: columns one behind the other without gaps.
typedef struct {
    guint n_columns;
    gsize *offsets; // [n_columns] bytes from the start of the row
    gsize *sizes;   // [n_columns] bytes
    gsize row_size; // bytes
    hid_t type;     // compound type, in memory and (on little-endian machines) in the file
} NjStoreLayout;

// text_sizes as in nj_store_writer_begin(). FALSE where the HDF5 library fails.
gboolean nj_store_layout_init(NjStoreLayout *layout, const NjColumn *columns, guint n_columns,
                              const gsize *text_sizes);
void nj_store_layout_clear(NjStoreLayout *layout);
