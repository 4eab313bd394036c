// SPDX-License-Identifier: MIT
#pragma once
// Errors a user can cause (loading, validation, files). The message names file, key, value, unit and what
// would be right. A broken invariant past validation is a bug and is caught by g_assert, which is always on.

#include <glib.h>

G_BEGIN_DECLS

#define NJ_ERROR (nj_error_quark())

typedef enum {
    NJ_ERROR_INPUT,      // a file's content or a value in it is wrong
    NJ_ERROR_FILE,       // a file cannot be read or written
    NJ_ERROR_USAGE,      // the command line is wrong: exit status 2
    NJ_ERROR_IMPOSSIBLE, // values that are right by themselves do not go together: a point of a grid without
                         // result
    NJ_ERROR_STOPPED,    // interrupted by the user
} NjErrorCode;

GQuark nj_error_quark(void);

G_END_DECLS
