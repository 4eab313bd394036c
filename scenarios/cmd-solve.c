// SPDX-License-Identifier: MIT
// nanojoule solve: the time-energy frontier from a measured profile, and plan files for the runtimes that
// the profile was measured with.
#include "scenarios/command.h"
#include "scenarios/table.h"
#include "schedules/plan-files.h"
#include "schedules/profile-problem.h"
#include "schedules/profile.h"
#include "sim/error.h"

#include <errno.h>
#include <math.h>
#include <string.h>

// Plan files are numbered with five digits.
#define MAX_PLANS 100000
#define MAX_MICROBATCHES 100000
// Rows of a frontier printed for people; programs get all of them.
#define TEXT_ROWS 20

// Fewer plans than this are not worth a thread, which solves the bound again.
#define PLANS_PER_THREAD 50

typedef struct {
    int microbatches, jobs;
    double static_power_w; // of one rank
    double step_s;
    char *times;
    char *schedule;
    char *format;
    char *directory;
} Options;

static void options_clear(Options *options)
{
    g_free(options->times);
    g_free(options->schedule);
    g_free(options->format);
    g_free(options->directory);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, options_clear)

// One point of the frontier: what was asked for, the plan that the solver made for it, the plan it got.
typedef struct {
    double asked_s;   // --times: as written
    double latest_s;  // what the plan may take
    gboolean fastest; // asked for as fast as can be
    guint number;     // of the plan files, 0 for the slowest
    NjSolverPlan *made;
    const NjSolverPlan *plan; // made for this point or another
    double bound_j;
    double gap; // of total energy, to the bound at the plan's time
} Point;

static void point_clear(gpointer data)
{
    nj_solver_plan_free(((Point *)data)->made);
}

typedef struct {
    const Options *options;
    NjFormat format;
    const NjPipelineSchedule *schedule;
    NjProfile *profile;
    NjProfileProblem problem;
    NjSolver *solver;
    double fastest_s, slowest_s;
    GArray *points; // Point, in the order they are printed
} Run;

static void run_clear(Run *run)
{
    g_clear_pointer(&run->points, g_array_unref);
    g_clear_pointer(&run->solver, nj_solver_free);
    nj_profile_problem_clear(&run->problem);
    g_clear_pointer(&run->profile, nj_profile_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Run, run_clear)

static Point *point(const Run *run, guint i)
{
    return &g_array_index(run->points, Point, i);
}

static gboolean usage(GError **error, const char *message)
{
    g_set_error_literal(error, NJ_ERROR, NJ_ERROR_USAGE, message);
    return FALSE;
}

static gboolean check_options(const Options *options, Run *run, GError **error)
{
    if (options->microbatches < 1 || options->microbatches > MAX_MICROBATCHES)
        return usage(error, "solve: --microbatches from 1 to 100000 is needed");
    if (!isfinite(options->static_power_w) || options->static_power_w < 0)
        return usage(error, "solve: --static-power of at least 0 W is needed, such as 85");
    if (options->jobs < 1 || options->jobs > 1024)
        return usage(error, "solve: --jobs from 1 to 1024 is needed");
    if (!isfinite(options->step_s) || options->step_s <= 0)
        return usage(error, "solve: --step above 0 s is needed, such as 0.001");
    run->schedule = nj_pipeline_schedule_find(options->schedule);
    if (run->schedule == NULL) {
        g_autoptr(GString) names = g_string_new(NULL);
        for (const NjPipelineSchedule *const *s = nj_pipeline_schedules(); *s != NULL; s++)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", (*s)->name);
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "solve: --schedule '%s': one of %s is needed",
                    options->schedule, names->str);
        return FALSE;
    }
    return nj_format_parse(options->format, &run->format, error);
}

// A time as it is written stands for all that round to it at nine significant digits, as tables print times:
// otherwise half the times read off a frontier could not be asked for again. This gives the last of them.
static double latest_meant_s(double time_s)
{
    return time_s + 0.5 * pow(10, floor(log10(time_s)) - 8);
}

// --times: in the order given; files are numbered from the slowest all the same.
static gboolean ask_times(Run *run, GError **error)
{
    g_auto(GStrv) tokens = g_strsplit(run->options->times, ",", -1);
    for (guint i = 0; tokens[i] != NULL; i++) {
        char *end = NULL;
        double bound_j;
        const double time_s = g_ascii_strtod(tokens[i], &end);
        if (end == tokens[i] || *end != '\0' || !isfinite(time_s) || time_s <= 0) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE,
                        "solve: --times '%s': seconds above 0 with commas between them are needed",
                        tokens[i]);
            return FALSE;
        }
        const Point asked = {.asked_s = time_s, .latest_s = latest_meant_s(time_s)};
        if (!nj_solver_bound(run->solver, asked.latest_s, &bound_j, NULL)) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                        "solve: --times %s: the fastest iteration takes %.9g s", tokens[i], run->fastest_s);
            return FALSE;
        }
        g_array_append_val(run->points, asked);
    }
    if (run->points->len == 0 || run->points->len > MAX_PLANS)
        return usage(error, "solve: --times: 1 to 100000 times are needed");
    return TRUE;
}

// The whole frontier: steps down from the slowest useful time, the fastest possible time last.
static gboolean ask_steps(Run *run, GError **error)
{
    const double step_s = run->options->step_s;
    // What rounding adds to a whole number of steps is not one more step.
    const double n_steps = ceil((run->slowest_s - run->fastest_s) / step_s - 1e-6);
    if (n_steps + 1 > MAX_PLANS) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE,
                    "solve: --step %g gives more than %d plans: from %.9g to %.9g s, at least %.2g is needed",
                    step_s, MAX_PLANS, run->fastest_s, run->slowest_s,
                    1.01 * (run->slowest_s - run->fastest_s) / (MAX_PLANS - 1));
        return FALSE;
    }
    for (guint k = 0; k <= (guint)MAX(0, n_steps); k++) {
        const gboolean last = k == (guint)MAX(0, n_steps);
        const Point asked = {.latest_s = last ? run->fastest_s : run->slowest_s - k * step_s,
                             .fastest = last};
        g_array_append_val(run->points, asked);
    }
    return TRUE;
}

static char *plan_path(const char *directory, const char *kind, guint number)
{
    g_autofree char *name = g_strdup_printf("%s_pipeline_%05u.py", kind, number);
    return g_build_filename(directory, name, NULL);
}

// The number of "KIND_pipeline_NNNNN.py", -1 for other names.
static gint64 plan_number(const char *name, const char *kind)
{
    guint64 number;
    g_autofree char *prefix = g_strdup_printf("%s_pipeline_", kind);
    if (!g_str_has_prefix(name, prefix) || !g_str_has_suffix(name, ".py"))
        return -1;
    const gsize length = strlen(name) - strlen(prefix) - strlen(".py");
    g_autofree char *digits = g_strndup(name + strlen(prefix), length);
    return g_ascii_string_to_unsigned(digits, 10, 0, G_MAXINT64, &number, NULL) ? (gint64)number : -1;
}

// Makes the directory, and refuses one where files of another run would stay among the new ones: a reader of
// the directory would take both for one frontier.
static gboolean prepare_directory(const Run *run, GError **error)
{
    const char *directory = run->options->directory;
    const gboolean scheds = nj_profile_has_launches(run->profile);
    if (g_mkdir_with_parents(directory, 0777) != 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "%s: cannot be made a directory: %s", directory,
                    g_strerror(errno));
        return FALSE;
    }
    g_autoptr(GError) cause = NULL;
    g_autoptr(GDir) dir = g_dir_open(directory, 0, &cause);
    if (dir == NULL) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "%s: cannot be read: %s", directory, cause->message);
        return FALSE;
    }
    for (const char *name = g_dir_read_name(dir); name != NULL; name = g_dir_read_name(dir)) {
        const gint64 freqs_number = plan_number(name, "freqs"), scheds_number = plan_number(name, "scheds");
        if (freqs_number >= run->points->len || scheds_number >= (scheds ? (gint64)run->points->len : 0)) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_FILE,
                        "%s: holds plans of another run, such as %s: remove them or give another directory",
                        directory, name);
            return FALSE;
        }
    }
    return TRUE;
}

// Figures in files have 12 digits: the rest is rounding.
static double rounded(double value)
{
    char text[32];
    return g_ascii_strtod(g_ascii_formatd(text, sizeof text, "%.12g", value), NULL);
}

static double total_j(const Run *run, double effective_j, double time_s)
{
    return effective_j + run->options->static_power_w * run->profile->n_stages * time_s;
}

// Orders of points, given their indices.
static int slower_first(gconstpointer a, gconstpointer b, gpointer points)
{
    const Point *p = points;
    const double x = p[*(const guint *)a].latest_s, y = p[*(const guint *)b].latest_s;
    return (x < y) - (x > y);
}

static int faster_plan_first(gconstpointer a, gconstpointer b, gpointer points)
{
    const Point *p = points;
    const double x = p[*(const guint *)a].made->time_s, y = p[*(const guint *)b].made->time_s;
    return (x > y) - (x < y);
}

// Indices of all points; equal ones stay in order. Transfer full.
static guint *sort_points(const Run *run, GCompareDataFunc compare)
{
    guint *order = g_new(guint, run->points->len);
    for (guint i = 0; i < run->points->len; i++)
        order[i] = i;
    g_qsort_with_data(order, (int)run->points->len, sizeof *order, compare, run->points->data);
    return order;
}

// Every point gets the plan of least energy that is in time, be it made for another point: plans come from a
// heuristic, and a frontier must not ask more energy for more time.
static void pick_plans(Run *run, const guint *by_number)
{
    const guint n = run->points->len;
    g_autofree guint *by_plan_time = sort_points(run, faster_plan_first);
    const NjSolverPlan *best = NULL;
    guint next = 0;
    for (guint k = n; k-- > 0;) { // from the fastest to the slowest
        Point *at = point(run, by_number[k]);
        const double latest_s = MAX(at->latest_s, at->made->time_s);
        for (; next < n && point(run, by_plan_time[next])->made->time_s <= latest_s; next++) {
            const NjSolverPlan *made = point(run, by_plan_time[next])->made;
            if (best == NULL || made->effective_j < best->effective_j)
                best = made;
        }
        at->plan = best;
    }
}

static gboolean compare_with_bound(const Run *run, Point *at, GError **error)
{
    double own_bound_j;
    if (!nj_solver_bound(run->solver, MAX(at->plan->time_s, run->fastest_s), &own_bound_j, error))
        return FALSE;
    at->bound_j = own_bound_j;
    if (run->options->times != NULL &&
        !nj_solver_bound(run->solver, MAX(at->asked_s, run->fastest_s), &at->bound_j, error))
        return FALSE;
    // A plan in the last digit of the time asked for may be below the bound there by as little.
    at->bound_j = MIN(at->bound_j, at->plan->effective_j);
    const double least_j = total_j(run, own_bound_j, at->plan->time_s);
    at->gap = least_j > 0 ? (at->plan->effective_j - own_bound_j) / least_j : 0;
    return TRUE;
}

static gboolean write_plan(const Run *run, const Point *at, const Point *slower, GError **error)
{
    const char *directory = run->options->directory;
    const double effective_j = at->plan->effective_j;
    g_auto(NjPlan) plan = {0};
    nj_profile_problem_plan(&run->problem, at->plan->option, &plan);
    const NjPlanCosts costs = {
        .iteration = at->number,
        .cost_change_j = rounded(effective_j - slower->plan->effective_j),
        .total_cost_j = rounded(effective_j),
        .total_cost_with_static_j = rounded(total_j(run, effective_j, at->plan->time_s)),
    };
    g_autofree char *freqs = plan_path(directory, "freqs", at->number);
    g_autofree char *scheds =
        nj_profile_has_launches(run->profile) ? plan_path(directory, "scheds", at->number) : NULL;
    return nj_plan_files_write(freqs, scheds, &plan, &costs, error);
}

// What a thread makes: every n_threads-th point's plan, with a solver of its own.
typedef struct {
    const Run *run;
    guint first, n_threads;
    GError *error;
} Share;

static gpointer make_share(gpointer data)
{
    Share *share = data;
    const Run *run = share->run;
    g_autoptr(NjSolver) own = NULL;
    NjSolver *solver = run->solver;
    if (share->first > 0)
        solver = own = nj_solver_new(run->problem.dag, run->problem.n_sets, run->problem.sets, &share->error);
    for (guint i = share->first; solver != NULL && i < run->points->len; i += share->n_threads) {
        Point *at = point(run, i);
        at->made = at->fastest ? nj_solver_plan_fastest(solver)
                               : nj_solver_plan(solver, at->latest_s, &share->error);
        if (at->made == NULL)
            break;
    }
    return NULL;
}

// Plans do not depend on each other, nor on who makes them.
static gboolean make_plans(const Run *run, GError **error)
{
    const guint n_threads = CLAMP(run->points->len / PLANS_PER_THREAD, 1, (guint)run->options->jobs);
    g_autofree Share *shares = g_new0(Share, n_threads);
    g_autofree GThread **threads = g_new0(GThread *, n_threads);
    for (guint t = 0; t < n_threads; t++)
        shares[t] = (Share){run, t, n_threads, NULL};
    for (guint t = 1; t < n_threads; t++)
        threads[t] = g_thread_new("solve", make_share, &shares[t]);
    make_share(&shares[0]);
    gboolean ok = TRUE;
    for (guint t = 0; t < n_threads; t++) {
        if (t > 0)
            g_thread_join(threads[t]);
        if (shares[t].error == NULL)
            continue;
        if (ok)
            g_propagate_error(error, shares[t].error);
        else
            g_error_free(shares[t].error);
        ok = FALSE;
    }
    return ok;
}

static gboolean solve_points(Run *run, GError **error)
{
    const guint n = run->points->len;
    g_autofree guint *by_number = sort_points(run, slower_first);
    for (guint k = 0; k < n; k++)
        point(run, by_number[k])->number = k;
    if (!make_plans(run, error))
        return FALSE;
    pick_plans(run, by_number);
    for (guint k = 0; k < n; k++)
        if (!compare_with_bound(run, point(run, by_number[k]), error))
            return FALSE;
    for (guint k = 0; run->options->directory != NULL && k < n; k++)
        if (!write_plan(run, point(run, by_number[k]), point(run, by_number[k > 0 ? k - 1 : 0]), error))
            return FALSE;
    return TRUE;
}

static void print_rows(const Run *run)
{
    static const NjColumn columns[] = {
        {"time_s", NJ_COLUMN_REAL, 6, "s", "iteration time of the plan"},
        {"effective_energy_j", NJ_COLUMN_REAL, 3, "J",
         "energy - static power x time, one rank of each stage"},
        {"total_energy_j", NJ_COLUMN_REAL, 3, "J", "energy of the iteration, one rank of each stage"},
        {"bound_effective_energy_j", NJ_COLUMN_REAL, 3, "J", "convex bound of the effective energy"},
    };
    g_autoptr(NjTable) table = nj_table_new(columns, G_N_ELEMENTS(columns));
    const guint n = run->points->len;
    const guint n_rows = run->format == NJ_FORMAT_TEXT && run->options->times == NULL ? MIN(n, TEXT_ROWS) : n;
    for (guint r = 0; r < n_rows; r++) {
        // First and last are always among those that are printed.
        const Point *at = point(run, n_rows == n ? r : (guint)((guint64)r * (n - 1) / (n_rows - 1)));
        nj_table_add_row(table);
        nj_table_set_real(table, 0, at->plan->time_s);
        nj_table_set_real(table, 1, at->plan->effective_j);
        nj_table_set_real(table, 2, total_j(run, at->plan->effective_j, at->plan->time_s));
        nj_table_set_real(table, 3, at->bound_j);
    }
    nj_table_print(table, run->format, stdout);
}

static void print_summary(const Run *run)
{
    double gap = 0;
    for (guint i = 0; i < run->points->len; i++)
        gap = MAX(gap, point(run, i)->gap);
    g_print("\n%u %s, iteration times from %.6f s (fastest) to %.6f s (slowest useful)\n", run->points->len,
            run->points->len == 1 ? "plan" : "plans", run->fastest_s, run->slowest_s);
    g_print("total energy at most %.4f %% above the convex bound at the plan's time\n", 100 * gap);
    if (run->options->directory != NULL)
        g_print("written to %s: %s_pipeline_00000.py (slowest) to %05u\n", run->options->directory,
                nj_profile_has_launches(run->profile) ? "freqs_ and scheds" : "freqs", run->points->len - 1);
}

static gboolean solve(const Options *options, const char *profile_path, GError **error)
{
    g_auto(Run) run = {.options = options};
    guint n_breaks;

    if (!check_options(options, &run, error))
        return FALSE;
    run.profile = nj_profile_read(profile_path, error);
    if (run.profile == NULL)
        return FALSE;
    nj_profile_problem_init(&run.problem, run.profile, run.schedule, (guint)options->microbatches,
                            options->static_power_w);
    run.solver = nj_solver_new(run.problem.dag, run.problem.n_sets, run.problem.sets, error);
    if (run.solver == NULL)
        return FALSE;
    const NjFrontierPoint *breaks = nj_solver_points(run.solver, &n_breaks);
    run.fastest_s = breaks[0].time_s;
    run.slowest_s = breaks[n_breaks - 1].time_s;

    run.points = g_array_new(FALSE, FALSE, sizeof(Point));
    g_array_set_clear_func(run.points, point_clear);
    if (!(options->times != NULL ? ask_times(&run, error) : ask_steps(&run, error)) ||
        (options->directory != NULL && !prepare_directory(&run, error)) || !solve_points(&run, error))
        return FALSE;
    print_rows(&run);
    if (run.format == NJ_FORMAT_TEXT)
        print_summary(&run);
    return TRUE;
}

static int run_solve(int argc, char **argv)
{
    g_auto(Options)
        options = {.static_power_w = (double)NAN, .step_s = 0.001, .jobs = (int)g_get_num_processors()};
    const GOptionEntry entries[] = {
        {"microbatches", 'm', 0, G_OPTION_ARG_INT, &options.microbatches, "Microbatches of an iteration",
         "N"},
        {"static-power", 'p', 0, G_OPTION_ARG_DOUBLE, &options.static_power_w, "Static power of one GPU",
         "WATTS"},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &options.directory, "Write plan files into this directory",
         "DIR"},
        {"step", 0, 0, G_OPTION_ARG_DOUBLE, &options.step_s, "Distance of the plans in time (0.001)",
         "SECONDS"},
        {"times", 0, 0, G_OPTION_ARG_STRING, &options.times, "Plans for these iteration times only",
         "SECONDS,..."},
        {"schedule", 0, 0, G_OPTION_ARG_STRING, &options.schedule, "Pipeline schedule (1f1b)", "NAME"},
        {"jobs", 'j', 0, G_OPTION_ARG_INT, &options.jobs, "Threads (one a core)", "N"},
        {"format", 'f', 0, G_OPTION_ARG_STRING, &options.format, "text, csv or json (text)", "FORMAT"},
        {NULL},
    };
    static const char DESCRIPTION[] =
        "PROFILE.csv has the columns stage,instruction,frequency,time,energy and may have launch.\n"
        "Times are in s, energies in J of one GPU of the stage; instruction is forward or\n"
        "backward; launch is a list such as \"norm_0@12,sequential\". --microbatches and\n"
        "--static-power are needed.\n\n"
        "Prints the frontier from the slowest useful iteration time to the fastest possible one,\n"
        "as text about 20 rows of it. With -o, writes every plan as freqs_pipeline_NNNNN.py and,\n"
        "with launches, scheds_pipeline_NNNNN.py; NNNNN counts steps from the slowest.\n\n"
        "Energies are of one GPU of each stage, summed over stages: effective_energy_j is energy\n"
        "less static power x time, total_energy_j that of the whole iteration.\n"
        "bound_effective_energy_j is the least that plans with mixed frequencies could reach: at\n"
        "the plan's own time, with --times at the time asked for. A plan is never later than\n"
        "asked, to nine significant digits of the time.\n";
    g_auto(GStrv) arguments = NULL;
    g_autoptr(GError) error = NULL;
    int status;

    if (!nj_command_parse(&nj_command_solve, entries, DESCRIPTION, argc, argv, 1, 1, &arguments, &status))
        return status;
    if (options.schedule == NULL)
        options.schedule = g_strdup("1f1b");
    if (options.format == NULL)
        options.format = g_strdup("text");
    return solve(&options, arguments[0], &error) ? 0 : nj_command_fail(error);
}

const NjCommand nj_command_solve = {
    .name = "solve",
    .arguments = "PROFILE.csv",
    .summary = "the time-energy frontier from a measured profile, and plan files",
    .run = run_solve,
};
