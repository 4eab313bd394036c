// SPDX-License-Identifier: MIT
#pragma once
// What sweep.c and merge.c share.

#include "scenarios/sweep.h"

// The header of a sweep's journal: what it is about and the columns of its records.
GByteArray *nj_sweep_header_encode(const NjStoreInfo *info, const NjGrid *grid, const NjEvaluator *evaluator);
// Fills info (transfer full); FALSE where the header is not one, or is of records with other columns.
gboolean nj_sweep_header_decode(const GByteArray *header, const NjGrid *grid, const NjEvaluator *evaluator,
                                NjStoreInfo *info);
