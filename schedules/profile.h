// SPDX-License-Identifier: MIT
#pragma once
// A measured profile: what one instruction of one stage takes at one frequency (and, with partitions, under
// one choice of launches), on one rank. All ranks of a stage are alike. CSV columns, in any order:
//
//   stage      from 0; every stage up to the last must be there
//   instruction  forward or backward (F, B); every stage needs both
//   frequency  MHz
//   time       s, above 0
//   energy     J of one rank over that time, static part included
//   launch     may be left out: the launches of the instruction's partitions as plan tables have them,
//              "norm_0@12,norm_0@18"; as many in every row of a kind of instruction
//
// Rows may come in any order; a combination of the first three columns and the launches may come once.

#include "schedules/plan.h"

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
    guint stage;
    NjPlanInstruction instruction; // kind, frequency and launches, ready for a plan
    double time_s;
    double energy_j;
    guint line; // of the file, for messages; 0: none
} NjProfileRow;

typedef struct {
    guint n_stages;
    guint n_rows;
    NjProfileRow *rows; // [n_rows] in file order; owned
} NjProfile;

// Reads and validates a profile ("-": standard input). NULL and NJ_ERROR_INPUT with file, line, column, value
// and what would be right otherwise. Transfer full.
NjProfile *nj_profile_read(const char *path, GError **error);
// Same from text in memory; path is used in messages only.
NjProfile *nj_profile_parse(const char *path, const char *text, GError **error);

void nj_profile_free(NjProfile *profile);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjProfile, nj_profile_free)

// Whether rows have launches.
gboolean nj_profile_has_launches(const NjProfile *profile);

// The profile as CSV, with a launch column where it has launches; numbers have the fewest digits that read
// back to the same ones. Transfer full.
char *nj_profile_format(const NjProfile *profile);

G_END_DECLS
