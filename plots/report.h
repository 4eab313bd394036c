// SPDX-License-Identifier: MIT
#pragma once
// A sweep's results as one HTML page that needs nothing else: no network, no script. It has the best points,
// heat maps around the best one, frontiers where the sweep has them, all points, the scenario, and the data
// files the numbers rest on, whose comments say where each constant comes from. The page is well-formed XML,
// so that programs read it too.

#include "scenarios/store.h"

G_BEGIN_DECLS

// The page of a store; path names it in the page. It needs gnuplot, as nj_figure_draw(). Transfer full.
char *nj_report_html(NjStore *store, const char *path, GError **error);

G_END_DECLS
