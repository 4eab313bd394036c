// SPDX-License-Identifier: MIT
#pragma once
// A folder of its own for each test of a program: make_scratch() and remove_scratch() are its fixture.

#include "tests/testing.h"

#include <glib/gstdio.h>
#include <stdio.h>

static char *scratch;

static inline void make_scratch(void)
{
    scratch = g_dir_make_tmp("nanojoule-XXXXXX", NULL);
    ck_assert_ptr_nonnull(scratch);
}

static inline void remove_tree(const char *path)
{
    GDir *dir = g_dir_open(path, 0, NULL);
    for (const char *name; dir != NULL && (name = g_dir_read_name(dir)) != NULL;) {
        g_autofree char *entry = g_build_filename(path, name, NULL);
        remove_tree(entry);
    }
    if (dir != NULL)
        g_dir_close(dir);
    ck_assert_int_eq(g_remove(path), 0);
}

static inline void remove_scratch(void)
{
    remove_tree(scratch);
    g_clear_pointer(&scratch, g_free);
}

// Transfer full.
static inline char *in_scratch(const char *name)
{
    return g_build_filename(scratch, name, NULL);
}

// Gives the path. Transfer full.
static inline char *write_scratch(const char *name, const char *text)
{
    char *path = in_scratch(name);
    // Neither g_file_set_contents() nor truncating a file: both wait for the disk.
    g_remove(path);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}
