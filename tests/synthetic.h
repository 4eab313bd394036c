// SPDX-License-Identifier: MIT
#pragma once
// An evaluator that needs no model: its rows follow from the point's number, it takes as long as it is told,
// and it can keep a log of the points it was asked for, or fail at one.

#include "scenarios/evaluator.h"
#include "sim/error.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    NjEvaluator base;
    guint delay_us;    // of every point
    int log_fd;        // each point's number is appended as 4 bytes before it is computed; -1: none
    int fail_at;       // point that fails; -1: none
    guint n_breakdown; // rows of a point in breakdown
} Synthetic;

static const NjColumn synthetic_points[] = {
    {"square", NJ_COLUMN_INTEGER, 0, "1", "number of the point, squared"},
    {"time_s", NJ_COLUMN_REAL, 3, "s", "a time"},
    {"energy_j", NJ_COLUMN_REAL, 1, "J", "an energy"},
};
static const NjColumn synthetic_frontiers[] = {
    {"time_s", NJ_COLUMN_REAL, 3, "s", "a time"},
    {"plan", NJ_COLUMN_TEXT, 0, "", "a plan"},
};
static const NjColumn synthetic_breakdown[] = {
    {"kind", NJ_COLUMN_TEXT, 0, "", "kind of kernel"},
    {"time_s", NJ_COLUMN_REAL, 3, "s", "a time"},
    {"energy_j", NJ_COLUMN_REAL, 1, "J", "an energy"},
};

static inline gboolean synthetic_evaluate(NjEvaluator *evaluator, const NjGrid *grid, guint point,
                                          NjPointResult *result, GError **error)
{
    const Synthetic *self = (const Synthetic *)evaluator;
    (void)grid;
    if (self->log_fd >= 0 && write(self->log_fd, &point, sizeof point) != sizeof point)
        g_error("log of a test");
    // Uneven on purpose: points end in another order than they begin.
    if (self->delay_us > 0)
        g_usleep(self->delay_us / 2 + self->delay_us * (point * 7 % 11) / 10);
    if ((int)point == self->fail_at) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "synthetic failure");
        return FALSE;
    }
    NjTable *points = result->tables[NJ_RESULT_POINTS];
    nj_table_set_integer(points, 0, (gint64)point * point);
    if (point % 7 == 3) {
        result->reason = g_strdup_printf("%u is 3 modulo 7 µ", point);
        return TRUE;
    }
    nj_table_set_real(points, 1, 1.0 / (1 + point));
    nj_table_set_real(points, 2, 100.0 * point);
    for (guint i = 0; i < point % 4; i++) {
        NjTable *frontiers = result->tables[NJ_RESULT_FRONTIERS];
        g_autofree char *plan = g_strdup_printf("F%u B%u", point, i);
        nj_table_add_row(frontiers);
        nj_table_set_real(frontiers, 0, point + 0.25 * i);
        nj_table_set_text(frontiers, 1, plan);
    }
    static const char *const kinds[] = {"gemm", "attention", "memory", "collective"};
    for (guint i = 0; i < self->n_breakdown; i++) {
        NjTable *breakdown = result->tables[NJ_RESULT_BREAKDOWN];
        nj_table_add_row(breakdown);
        nj_table_set_text(breakdown, 0, kinds[i % G_N_ELEMENTS(kinds)]);
        nj_table_set_real(breakdown, 1, point + 0.125 * i);
        nj_table_set_real(breakdown, 2, point * 3.0 / (1 + i));
    }
    return TRUE;
}

static inline NjEvaluator *synthetic_clone(const NjEvaluator *evaluator)
{
    return (NjEvaluator *)g_memdup2(evaluator, sizeof(Synthetic));
}

static inline void synthetic_free(NjEvaluator *evaluator)
{
    g_free(evaluator);
}

static inline void synthetic_init(Synthetic *self)
{
    *self = (Synthetic){
        .base = {.results = {{synthetic_points, G_N_ELEMENTS(synthetic_points)},
                             {synthetic_frontiers, G_N_ELEMENTS(synthetic_frontiers)},
                             {synthetic_breakdown, G_N_ELEMENTS(synthetic_breakdown)}},
                 .evaluate = synthetic_evaluate,
                 .clone = synthetic_clone,
                 .free = synthetic_free},
        .log_fd = -1,
        .fail_at = -1,
        .n_breakdown = 3,
    };
}
