// SPDX-License-Identifier: MIT
#include "scenarios/command.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

#ifndef NJ_VERSION
#error "the build gives the version"
#endif

static void print_usage(FILE *out)
{
    fprintf(
        out,
        "Usage:\n  nanojoule COMMAND [OPTION...] ARGUMENTS\n\n"
        "Simulates a training iteration of a large language model on a GPU cluster: how long, and how many "
        "joules.\n\nCommands:\n");
    for (const NjCommand *const *command = nj_commands(); *command != NULL; command++)
        fprintf(out, "  %-10s %s\n", (*command)->name, (*command)->summary);
    fprintf(out, "\n'nanojoule COMMAND --help' tells a command's options; --version the version.\n"
                 "Exit status: 0 done, 1 failed, 2 wrong use.\n");
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("nanojoule %s\n", NJ_VERSION);
        return 0;
    }
    for (const NjCommand *const *command = nj_commands(); *command != NULL; command++)
        if (strcmp(argv[1], (*command)->name) == 0)
            return (*command)->run(argc - 1, argv + 1);
    fprintf(stderr, "nanojoule: unknown command '%s'\nTry 'nanojoule --help'.\n", argv[1]);
    return 2;
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, ""); // numbers keep their point whatever the locale
    const int status = run(argc, argv);
    // A full disk or a closed pipe shows up here at the latest.
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "nanojoule: standard output: cannot be written\n");
        return 1;
    }
    return status;
}
