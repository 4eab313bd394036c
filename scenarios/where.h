// SPDX-License-Identifier: MIT
#pragma once
// Conditions on the rows of a table, as --where takes them: column OP value, joined by "and".
//   OP is one of = (or ==) != < <= > >= ; a value is a number, a word, or text in '...' or "...".
//   Numbers compare as numbers; text columns know = and != only. A missing cell meets no condition.
// Example: seq_len=4096 and parallelism != tp8 and time_s <= 2.5

#include "scenarios/table.h"

#include <glib.h>

G_BEGIN_DECLS

typedef struct NjWhere NjWhere;

// Reads a condition against the columns of a table. Errors (NJ_ERROR_USAGE) quote the text and say what is
// wrong with it. Transfer full.
NjWhere *nj_where_new(const char *text, const NjColumn *columns, guint n_columns, GError **error);
void nj_where_free(NjWhere *where);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjWhere, nj_where_free)

// Whether a row of a table with these columns meets the condition.
gboolean nj_where_match(const NjWhere *where, const NjTable *table, guint row);

G_END_DECLS
