// SPDX-License-Identifier: MIT
#pragma once
// Looking into a result store: rows of a table that meet a condition, sorted, some of their columns; and the
// best row of each group.

#include "scenarios/store.h"
#include "scenarios/table.h"

G_BEGIN_DECLS

// The rows of a stored table that meet a condition (NULL: all). The table must not outlive the store.
// Transfer full.
NjTable *nj_query_read(NjStore *store, guint table, const char *where, GError **error);

// The same with the point's axes in front of each row but for /points, which has them: point, every axis that
// has not the name of a column of the table, the table's other columns. Transfer full.
NjTable *nj_query_read_with_axes(NjStore *store, guint table, const char *where, GError **error);

// Index of the column an option names, or -1 and an error that lists those there are.
int nj_query_column(const NjTable *table, const char *option, const char *name, GError **error);
// Indices of columns "a,b,c" (guint). Transfer full.
GArray *nj_query_columns(const NjTable *table, const char *option, const char *names, GError **error);

// Order of all rows (guint) by a column: missing cells last, equal ones as they stand. Transfer full.
GArray *nj_query_sort(const NjTable *table, guint column, gboolean descending);

// For each group of rows that agree in the columns by, the first row of an order; in the order of the groups'
// first rows in the table. Rows whose cell in the column `present` is missing are left out. Transfer full.
GArray *nj_query_first_of_groups(const NjTable *table, const GArray *order, const GArray *by, guint present);

// A table with the chosen rows and columns, at most limit rows (0: all). Transfer full.
NjTable *nj_query_pick(const NjTable *table, const GArray *rows, const GArray *columns, guint limit);

G_END_DECLS
