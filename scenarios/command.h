// SPDX-License-Identifier: MIT
#pragma once
// Commands of the command line. Each is one file cmd-NAME.c that exports one NjCommand; commands.c lists
// them. Exit status: 0 done, 1 failed, 2 wrong use. Errors go to standard error as "nanojoule: message".

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
    const char *name;
    const char *arguments; // as the usage line shows them
    const char *summary;   // one line
    // argv[0] is the command's name. Gives the exit status.
    int (*run)(int argc, char **argv);
} NjCommand;

extern const NjCommand nj_command_calibrate;
extern const NjCommand nj_command_replay;
extern const NjCommand nj_command_best;
extern const NjCommand nj_command_frontier;
extern const NjCommand nj_command_merge;
extern const NjCommand nj_command_plot;
extern const NjCommand nj_command_report;
extern const NjCommand nj_command_show;
extern const NjCommand nj_command_sweep;
extern const NjCommand nj_command_run;
extern const NjCommand nj_command_simulate;
extern const NjCommand nj_command_solve;
extern const NjCommand nj_command_validate;

// All commands, NULL-terminated.
const NjCommand *const *nj_commands(void);

// Parses a command's options, entries being a GOptionEntry array that ends with NULL or { NULL }. --help
// prints usage with the description below it and gives FALSE with *status 0; a wrong option, or fewer or more
// than the allowed number of arguments (maximum < 0: any), says so and gives FALSE with *status 2. On TRUE,
// *arguments holds the rest, NULL-terminated. Transfer full.
gboolean nj_command_parse(const NjCommand *command, const GOptionEntry *entries, const char *description,
                          int argc, char **argv, int minimum, int maximum, GStrv *arguments, int *status);

// Prints an error and gives the exit status that belongs to it: 2 for NJ_ERROR_USAGE, else 1.
int nj_command_fail(const GError *error);

G_END_DECLS
