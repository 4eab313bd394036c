// SPDX-License-Identifier: MIT
#pragma once
// How far a long run is: a bar that redraws itself on a terminal, a plain line now and then in a log. Rate
// and time left come from this run alone, not from what an earlier one had finished.

#include <glib.h>
#include <stdio.h>

G_BEGIN_DECLS

typedef struct {
    FILE *out;         // NULL: silent
    gboolean terminal; // out is one
    const char *what;  // "points"
    guint n_total;     // including n_before
    guint n_before;    // done by an earlier run
    double start_s;    // monotonic clock
    double shown_s;    // when something was last shown
    gboolean drawn;    // a bar is on the screen
} NjProgress;

// out may be NULL. Whether it is a terminal decides the form.
void nj_progress_init(NjProgress *progress, FILE *out, const char *what, guint n_total, guint n_before);
// Shows n_done (including n_before) where it is time to: on a terminal ten times a second, in a log after 1,
// 2, 4, ... then every 30 seconds.
void nj_progress_show(NjProgress *progress, guint n_done);
// Wipes the bar, so that what is printed next stands alone.
void nj_progress_end(NjProgress *progress);

// "41 s", "12 min 5 s", "3 h 12 min". Transfer full.
char *nj_progress_format_seconds(double seconds);
// The line of a log, or what stands behind the bar. Transfer full.
char *nj_progress_line(const NjProgress *progress, guint n_done, double elapsed_s);

G_END_DECLS
