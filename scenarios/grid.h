// SPDX-License-Identifier: MIT
#pragma once
// A grid: the cartesian product of every list in a scenario's key file. A value is a list when it holds one
// of
//   a;b;c               the values themselves (text or numbers; a ; at the end is allowed)
//   start:stop:step     numbers from start in steps up to stop, which belongs to it where a step meets it
//   start..stop *factor start, start x factor, ... up to stop
// and the three mix: 1;2;8:32:8. Every list is an axis, in the order of the file. Points are numbered from 0
// with the last axis running fastest, so a number stands for the same point on every machine and at any
// number of threads; selections (where, limit, shard) pick numbers and never renumber.

#include "scenarios/table.h"

#include <glib.h>

G_BEGIN_DECLS

// More points than this are a mistake in the scenario rather than a wish.
#define NJ_GRID_MAX_POINTS 10000000

typedef struct {
    char *group;       // of the key file
    char *key;         // as in the key file
    char *name;        // column name: the key, or group_key where two axes share a key
    char *unit;        // of the column; "1" for numbers and "" for text until somebody knows better
    char *description; // one line for the column
    NjColumnType type; // INTEGER or REAL where all values are such numbers, else TEXT
    guint n_values;
    char **values; // [n_values] as a scenario would give them, NULL-terminated
} NjAxis;

typedef struct {
    NjAxis *axes; // [n_axes]
    guint n_axes;
    guint n_points; // product of the axes' values; 1 without axes
} NjGrid;

// Finds the axes of a key file. path is for messages. literal names keys ("key" or "group.key",
// NULL-terminated; may be NULL) whose values are lists in themselves and never axes. Errors name file, group
// and key. Transfer full.
NjGrid *nj_grid_new(GKeyFile *file, const char *path, const char *const *literal, GError **error);
void nj_grid_free(NjGrid *grid);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjGrid, nj_grid_free)

// The value of an axis at a point; owned by the grid.
const char *nj_grid_value(const NjGrid *grid, guint point, guint axis);

// Sets every axis key of a scenario (a copy of the key file the grid came from) to its value at the point.
void nj_grid_apply(const NjGrid *grid, guint point, GKeyFile *scenario);

// The point in words, for messages: "microbatch_size = 8, seq_len = 4096". Transfer full.
char *nj_grid_describe(const NjGrid *grid, guint point);

// Columns of the axes, one each, into columns[n_axes]; the strings belong to the grid.
void nj_grid_columns(const NjGrid *grid, NjColumn *columns);

// Sets the axis cells of the last row of a table, the first axis in column first.
void nj_grid_fill_row(const NjGrid *grid, guint point, NjTable *table, guint first);

// Which points of a grid a run is about.
typedef struct {
    const char *where;     // condition on the axes as in scenarios/where.h, or NULL
    guint limit;           // the first so many that match; 0: all
    guint shard, n_shards; // of those, every n-th beginning with the shard-th (from 0); n_shards 0: all
} NjSelection;

// The selected points in ascending order (guint elements). A wrong condition or shard is an error of
// NJ_ERROR_USAGE. Transfer full.
GArray *nj_grid_select(const NjGrid *grid, const NjSelection *selection, GError **error);

// Reads "i/n" with 0 <= i < n.
gboolean nj_shard_parse(const char *text, guint *shard, guint *n_shards, GError **error);

G_END_DECLS
