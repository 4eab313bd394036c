// SPDX-License-Identifier: MIT
#include "plots/report.h"
#include "scenarios/command.h"
#include "sim/error.h"

#include <glib/gstdio.h>
#include <string.h>

// Written aside and renamed, so that there is never half a page.
static gboolean write_page(const char *path, const char *html, GError **error)
{
    g_autoptr(GError) reason = NULL;
    if (!nj_store_check_writable(path, error))
        return FALSE;
    if (g_file_set_contents(path, html, (gssize)strlen(html), &reason))
        return TRUE;
    g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "%s: cannot be written: %s", path, reason->message);
    return FALSE;
}

static int run(int argc, char **argv)
{
    g_autofree char *output = NULL;
    const GOptionEntry entries[] = {
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output, "Page to write", "FILE"},
        {NULL},
    };
    g_auto(GStrv) arguments = NULL;
    int status;
    if (!nj_command_parse(&nj_command_report, entries,
                          "The page needs no network: tables, figures, the scenario, and the constants with "
                          "their origin.\nExample: nanojoule report grid.h5 -o report.html",
                          argc, argv, 1, 1, &arguments, &status))
        return status;
    g_autoptr(GError) error = NULL;
    if (output == NULL) {
        g_set_error(&error, NJ_ERROR, NJ_ERROR_USAGE, "report: -o FILE is needed");
        return nj_command_fail(error);
    }
    g_autoptr(NjStore) store = nj_store_open(arguments[0], &error);
    g_autofree char *html = store != NULL ? nj_report_html(store, arguments[0], &error) : NULL;
    if (html == NULL || !write_page(output, html, &error))
        return nj_command_fail(error);
    return 0;
}

const NjCommand nj_command_report = {
    .name = "report",
    .arguments = "STORE",
    .summary = "a sweep's results as one web page",
    .run = run,
};
