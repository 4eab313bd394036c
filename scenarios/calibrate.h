// SPDX-License-Identifier: MIT
#pragma once
// Fits a GPU's model constants to measurements: nonlinear least squares on the logarithms of predicted over
// measured figures, made robust by reweighting (Huber), with a prior on every constant (its value in the
// GPU's file, and a width) and its physical bounds. What the data does not determine stays at its prior.
// Energies of a configuration may err together (another day, other boards): an offset of each, with a
// deviation of its own, is taken out of the fit and never added to a prediction. The host's constants
// (dispatch_...) belong to the software and are kept unless they are freed by name.
//
// Measurements come as sets; a set predicts all its figures for given constants. A figure belongs to a
// configuration; leaving one out in turn is what cross-validation does.

#include "models/gpu.h"

G_BEGIN_DECLS

// What a figure measures: each has its own noise.
typedef enum { NJ_FIGURE_TIME, NJ_FIGURE_ENERGY, NJ_N_FIGURES } NjFigure;

typedef struct {
    NjFigure figure;
    guint configuration; // index into the set's names
    double measured;     // > 0
    guint line;          // of the file
} NjMeasurement;

typedef struct NjMeasurementSet NjMeasurementSet;
struct NjMeasurementSet {
    char *path;
    GArray *measurements;      // NjMeasurement
    GPtrArray *configurations; // char *, names
    gpointer data;             // of the form that read it
    // Predicts every measurement's figure with these constants: [measurements->len].
    gboolean (*predict)(const NjMeasurementSet *set, const NjGpu *gpu, double *predicted, GError **error);
    void (*free_data)(gpointer data);
};

typedef struct {
    const NjGpu *gpu;     // whose clocks the frequencies must be
    const char *scenario; // what an instruction profile ran; NULL: none given
    const char *skip;     // rows whose name (a plan's id) matches this glob pattern are left out; NULL: none
} NjMeasurementOptions;

// Reads a file of measurements; the header line tells which form it has. Errors name file and line. Transfer
// full.
NjMeasurementSet *nj_measurements_read(const char *path, const NjMeasurementOptions *options, GError **error);
void nj_measurements_free(NjMeasurementSet *set);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjMeasurementSet, nj_measurements_free)

typedef struct {
    const NjField *field;
    double prior, width; // of the constant, in its unit; width: one standard deviation
    double value;        // fitted
    double error;        // standard error, in its unit
    gboolean determined; // the data narrows it well below the prior's width
} NjConstant;

typedef struct {
    const NjGpu *gpu;              // where the fit starts
    NjMeasurementSet *const *sets; // [n_sets]
    guint n_sets;
    const char *const *free_names; // NULL-terminated, or NULL: all
    const char *const *fix_names;  // NULL-terminated, or NULL: none
    guint jobs;                    // threads
    const volatile int *stop;      // set by a signal handler; may be NULL
    void (*progress)(gpointer user, const char *message);
    gpointer user;
} NjCalibrationInput;

typedef struct {
    char *configuration;
    guint n[NJ_N_FIGURES];
    double mean[NJ_N_FIGURES];     // signed relative error
    double mean_abs[NJ_N_FIGURES]; // absolute relative error
} NjErrors;

typedef struct {
    GArray *constants; // NjConstant
    GArray *errors;    // NjErrors on the fitted data by configuration, in order; the last is over all ("all")
    GArray *left_out;  // same on what was left out in turn; NULL where nothing was
} NjCalibration;

void nj_calibration_clear(NjCalibration *calibration);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjCalibration, nj_calibration_clear)

// Fits. result is initialised on success only.
gboolean nj_calibrate(const NjCalibrationInput *input, NjCalibration *result, GError **error);

// Same, and then fits with every configuration left out in turn: there must be at least two.
gboolean nj_cross_validate(const NjCalibrationInput *input, NjCalibration *result, GError **error);

// The GPU with fitted constants (shares the strings of the original).
NjGpu nj_calibration_apply(const NjCalibration *calibration, const NjGpu *gpu);

G_END_DECLS
