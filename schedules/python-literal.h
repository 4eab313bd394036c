// SPDX-License-Identifier: MIT
#pragma once
// Python literals as data: lists, tuples, strings, integers, floats and None, with trailing commas, line
// breaks and comments where Python allows them. Nothing is ever evaluated: names, calls and operators are
// errors. One text holds one literal; comments are kept with their lines.

#include <glib.h>

G_BEGIN_DECLS

typedef enum {
    NJ_PYTHON_NONE,
    NJ_PYTHON_INTEGER,
    NJ_PYTHON_FLOAT,
    NJ_PYTHON_STRING,
    NJ_PYTHON_LIST,
    NJ_PYTHON_TUPLE,
} NjPythonType;

typedef struct {
    NjPythonType type;
    guint line;       // where the value starts, from 1
    gint64 integer;   // INTEGER
    double real;      // FLOAT
    char *text;       // STRING: its characters, without quotes
    GPtrArray *items; // LIST, TUPLE: of NjPythonValue
} NjPythonValue;

typedef struct {
    guint line;
    char *text; // behind '#', without spaces at either end
} NjPythonComment;

typedef struct {
    NjPythonValue *value;
    GPtrArray *comments; // of NjPythonComment, in order
} NjPythonFile;

// Parses length bytes of text that are followed by a NUL; path is used in messages only. NULL and
// NJ_ERROR_INPUT with file and line otherwise. Transfer full.
NjPythonFile *nj_python_parse(const char *path, const char *text, gsize length, GError **error);
void nj_python_file_free(NjPythonFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjPythonFile, nj_python_file_free)

// "a list", "a string", ... for messages.
const char *nj_python_type_name(NjPythonType type);

// A value as Python shows it, cut to about 40 characters, for messages. Transfer full.
char *nj_python_show(const NjPythonValue *value);

// Appends a finite number as Python's repr() writes a float: fewest digits that read back to the same number.
void nj_python_append_float(double value, GString *out);

G_END_DECLS
