// SPDX-License-Identifier: MIT
#include "scenarios/progress.h"

#include <math.h>
#include <unistd.h>

#define BAR_CELLS 30

static double now_s(void)
{
    return (double)g_get_monotonic_time() * 1e-6;
}

void nj_progress_init(NjProgress *progress, FILE *out, const char *what, guint n_total, guint n_before)
{
    *progress = (NjProgress){.out = out, .what = what, .n_total = n_total, .n_before = n_before};
    progress->terminal = out != NULL && isatty(fileno(out));
    progress->start_s = now_s();
    progress->shown_s = progress->start_s;
}

char *nj_progress_format_seconds(double seconds)
{
    const guint64 s = seconds > 0 ? (guint64)llround(MIN(seconds, 1e12)) : 0;
    if (s < 60)
        return g_strdup_printf("%" G_GUINT64_FORMAT " s", s);
    if (s < 3600)
        return g_strdup_printf("%" G_GUINT64_FORMAT " min %" G_GUINT64_FORMAT " s", s / 60, s % 60);
    return g_strdup_printf("%" G_GUINT64_FORMAT " h %" G_GUINT64_FORMAT " min", s / 3600, s / 60 % 60);
}

char *nj_progress_line(const NjProgress *progress, guint n_done, double elapsed_s)
{
    GString *line = g_string_new(NULL);
    g_string_printf(line, "%u of %u %s", n_done, progress->n_total, progress->what);
    const guint n_new = n_done - progress->n_before;
    if (n_new > 0 && elapsed_s > 0) {
        const double rate = n_new / elapsed_s;
        g_autofree char *left = nj_progress_format_seconds((progress->n_total - n_done) / rate);
        g_string_append_printf(line, ", %.*f a second, %s left", rate < 10 ? 2 : 0, rate, left);
    }
    return g_string_free(line, FALSE);
}

void nj_progress_show(NjProgress *progress, guint n_done)
{
    if (progress->out == NULL)
        return;
    const double now = now_s(), elapsed_s = now - progress->start_s;
    // In a log: as long again as it has taken so far, from 1 to 30 seconds.
    const double pause_s = progress->terminal ? 0.1 : CLAMP(progress->shown_s - progress->start_s, 1, 30);
    if (now - progress->shown_s < pause_s)
        return;
    progress->shown_s = now;
    g_autofree char *line = nj_progress_line(progress, n_done, elapsed_s);
    if (!progress->terminal) {
        fprintf(progress->out, "%s\n", line);
        fflush(progress->out);
        return;
    }
    char bar[BAR_CELLS + 1];
    const guint filled = progress->n_total > 0 ? (guint)((guint64)n_done * BAR_CELLS / progress->n_total) : 0;
    for (guint i = 0; i < BAR_CELLS; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[BAR_CELLS] = '\0';
    fprintf(progress->out, "\r[%s] %s\033[K", bar, line);
    fflush(progress->out);
    progress->drawn = TRUE;
}

void nj_progress_end(NjProgress *progress)
{
    if (progress->drawn) {
        fputs("\r\033[K", progress->out);
        fflush(progress->out);
    }
    progress->drawn = FALSE;
}
