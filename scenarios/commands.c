// SPDX-License-Identifier: MIT
// The one file that knows all commands: part of the program, not of a library, for some commands are of
// libraries that know this one.
#include "scenarios/command.h"

static const NjCommand *const commands[] = {
    &nj_command_simulate,
    &nj_command_run,
    &nj_command_frontier,
    &nj_command_replay,
    &nj_command_solve,
    &nj_command_sweep,
    &nj_command_show,
    &nj_command_best,
    &nj_command_merge,
    &nj_command_plot,
    &nj_command_report,
    &nj_command_calibrate,
    &nj_command_validate,
    NULL,
};

const NjCommand *const *nj_commands(void)
{
    return commands;
}
