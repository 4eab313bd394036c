// SPDX-License-Identifier: MIT
#pragma once
// Reading GLib key files against a table of fields: every key of the file must be in the table, every
// required field in the file, every value of its type and within its bounds. Errors name file, group, key,
// value and what would be right. Used for architectures, GPUs, software stacks and scenarios alike.

#include <glib.h>

G_BEGIN_DECLS

typedef enum {
    NJ_FIELD_INT,    // int
    NJ_FIELD_REAL,   // double
    NJ_FIELD_TEXT,   // char *, owned by the struct
    NJ_FIELD_BOOL,   // gboolean
    NJ_FIELD_CHOICE, // int: index into choices
} NjFieldType;

typedef struct {
    const char *group, *key;
    NjFieldType type;
    gsize offset; // of the member in the struct that is filled
    gboolean required;
    double minimum, maximum;    // inclusive, for numbers
    const char *unit;           // for messages and documentation
    const char *description;    // one line, with the source where it is a constant
    const char *const *choices; // NJ_FIELD_CHOICE: names, NULL-terminated
} NjField;

// Loads a key file; errors name the path. Transfer full.
GKeyFile *nj_keyfile_load(const char *path, GError **error);

// Fills the struct at target from the file. Members of absent optional fields are left as they are.
gboolean nj_keyfile_read(GKeyFile *file, const char *path, const NjField *fields, guint n_fields,
                         gpointer target, GError **error);

// Sets an error "path: [group] key = value: wanted".
void nj_keyfile_error(GError **error, const char *path, const char *group, const char *key, const char *value,
                      const char *wanted);

G_END_DECLS
