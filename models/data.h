// SPDX-License-Identifier: MIT
#pragma once
// Where shipped data files (architectures, GPUs, scenarios, plot scripts) are found: $NANOJOULE_DATA, then
// the source tree the program was built from, then the install prefix.

#include <glib.h>

G_BEGIN_DECLS

// Full path of a shipped file such as "models/gpus/a100-sxm4-40gb.ini", or NULL where it is nowhere.
// Transfer full.
char *nj_data_find(const char *relative_path);

// Path of a data file that a user names: a path (contains '/' or ends in the suffix or in ".json") is taken
// as it is, anything else is a shipped file of that name in the folder. The error lists the shipped names.
// Transfer full.
char *nj_data_locate(const char *folder, const char *name_or_path, const char *suffix, GError **error);

G_END_DECLS
