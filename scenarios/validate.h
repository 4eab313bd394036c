// SPDX-License-Identifier: MIT
#pragma once
// Validation: a file of measurements is predicted row by row, with nothing fitted, and the errors are summed
// up over all rows and by groups (size bands, number of GPUs, ...). What a file holds is told by its header;
// every known header is a form, and validate.c lists the forms. A form predicts rows; reading, statistics and
// printing are shared.
//
// The error of a row is 100 (predicted / measured - 1), in percent. Signed errors are averaged as they are;
// all else (mean, percentiles, largest) is of absolute errors. Percentiles interpolate between the two
// nearest rows.

#include "scenarios/table.h"
#include "schedules/csv.h"

G_BEGIN_DECLS

// What a user may choose; names or paths, NULL where left out.
typedef struct {
    const char *kernels;   // constants of single kernels
    const char *gpu;       // the GPU to predict for, where it is not the one that was measured
    const char *stack;     // of iterations: software stack
    const char *recompute; // of iterations: full, selective or none
} NjValidateOptions;

// Rows predicted so far.
typedef struct NjValidation NjValidation;

typedef struct {
    const char *name;          // "gemm"
    const char *description;   // one line
    const char *const *header; // columns, NULL-terminated; a file has exactly these, in any order
    const char *column;        // what is predicted, with its unit, as CSV output names it: "latency_ms"
    const char *ref_column;    // the measured one: "ref_latency_ms"
    const char *unit;
    // Predicts every row: for each, in file order, one nj_validation_add_row() and its groups. Errors name
    // file, line, column, value and what would be right.
    gboolean (*predict)(const NjCsv *csv, const NjValidateOptions *options, NjValidation *validation,
                        GError **error);
} NjValidateForm;

// All forms, NULL-terminated.
const NjValidateForm *const *nj_validate_forms(void);

// The next row; both in the form's unit, the measured one above 0.
void nj_validation_add_row(NjValidation *validation, double predicted, double measured);
// Puts the last row into a group as well: kind is what the groups divide by ("gpus"), value the one of this
// row ("4"), order sorts the values of a kind. Kinds are reported in the order of their first use. Strings
// are copied.
void nj_validation_add_to_group(NjValidation *validation, const char *kind, const char *value, double order);
// A sentence that every report of these rows must carry, such as which constants were carried over. Copied.
void nj_validation_set_note(NjValidation *validation, const char *note);

// Reads and predicts a file. Transfer full.
NjValidation *nj_validation_new(const char *path, const NjValidateOptions *options, GError **error);
void nj_validation_free(NjValidation *validation);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjValidation, nj_validation_free)

const char *nj_validation_note(const NjValidation *validation); // may be NULL
const char *nj_validation_path(const NjValidation *validation);
const NjValidateForm *nj_validation_form(const NjValidation *validation);

typedef struct {
    guint n_rows;
    double mean_pct, mean_abs_pct, median_abs_pct, p90_abs_pct, p99_abs_pct, max_abs_pct;
} NjErrorSummary;

// Over all rows (kind NULL), or of one group; n_rows is 0 where there is no such group.
NjErrorSummary nj_validation_summary(const NjValidation *validation, const char *kind, const char *value);

// A table with a row per group, overall first. With file and form in front, rows of several files may go into
// one. Transfer full; nj_validation_add_summary() appends a file's rows.
NjTable *nj_validation_summary_table(gboolean with_file);
void nj_validation_add_summary(const NjValidation *validation, NjTable *table, gboolean with_file);
// A table with a line per data row: row (from 1), predicted, measured. Transfer full.
NjTable *nj_validation_row_table(const NjValidation *validation);

// A number from the file that must be above 0; the error is as nj_csv_number()'s.
gboolean nj_validate_positive(const NjCsv *csv, guint row, int column, double *value, GError **error);

G_END_DECLS
