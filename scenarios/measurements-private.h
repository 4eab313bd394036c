// SPDX-License-Identifier: MIT
#pragma once
// Forms of measurement files: each is one file that exports one NjMeasurementForm.

#include "scenarios/calibrate.h"
#include "schedules/csv.h"

G_BEGIN_DECLS

typedef struct {
    const char *const *columns; // NULL-terminated: a header with all of them has this form
    gboolean (*read)(NjMeasurementSet *set, const NjCsv *csv, const NjMeasurementOptions *options,
                     GError **error);
} NjMeasurementForm;

extern const NjMeasurementForm nj_measurement_form_kernels;
extern const NjMeasurementForm nj_measurement_form_plans;
extern const NjMeasurementForm nj_measurement_form_profile;

// Index of a configuration's name in the set, added where it is new.
guint nj_measurement_configuration(NjMeasurementSet *set, const char *name);

G_END_DECLS
