// SPDX-License-Identifier: MIT
#include "schedules/profile-problem.h"

static guint set_of(guint stage, NjInstructionKind kind)
{
    return stage * NJ_N_INSTRUCTION_KINDS + (guint)kind;
}

// Rows sorted into sets by counting, so that options keep the order of the file.
static void build_sets(NjProfileProblem *problem, double static_power_w)
{
    const NjProfile *profile = problem->profile;
    problem->n_sets = profile->n_stages * NJ_N_INSTRUCTION_KINDS;
    problem->sets = g_new0(NjOptionSet, problem->n_sets);
    problem->options = g_new(NjOption, profile->n_rows);
    problem->rows = g_new(guint, profile->n_rows);

    guint n = 0;
    g_autofree guint *first = g_new0(guint, problem->n_sets + 1);
    for (guint r = 0; r < profile->n_rows; r++)
        first[set_of(profile->rows[r].stage, profile->rows[r].instruction.kind) + 1]++;
    for (guint s = 0; s < problem->n_sets; s++) {
        problem->sets[s].options = problem->options + n;
        n += first[s + 1];
        first[s + 1] = n;
    }
    for (guint r = 0; r < profile->n_rows; r++) {
        const NjProfileRow *row = &profile->rows[r];
        const guint s = set_of(row->stage, row->instruction.kind);
        const guint at = first[s] + problem->sets[s].n_options++;
        problem->options[at] = (NjOption){row->time_s, row->energy_j - static_power_w * row->time_s};
        problem->rows[at] = r;
    }
}

static void build_dag(NjProfileProblem *problem)
{
    const NjPipeline *pipeline = &problem->pipeline;
    const guint n_tasks = pipeline->instructions->len;
    g_autofree guint *option_set = g_new(guint, n_tasks);
    g_autoptr(GArray) from = g_array_new(FALSE, FALSE, sizeof(guint));
    g_autoptr(GArray) to = g_array_new(FALSE, FALSE, sizeof(guint));

    for (guint i = 0; i < n_tasks; i++) {
        const NjInstruction *instruction = nj_pipeline_instruction(pipeline, i);
        option_set[i] = set_of(instruction->stage, instruction->kind);
    }
    for (guint stage = 0; stage < pipeline->n_stages; stage++) {
        for (guint i = nj_pipeline_first(pipeline, stage); i + 1 < nj_pipeline_first(pipeline, stage + 1);
             i++) {
            const guint next = i + 1;
            g_array_append_val(from, i);
            g_array_append_val(to, next);
        }
    }
    for (guint d = 0; d < pipeline->dependencies->len; d++) {
        const NjDependency *dependency = &g_array_index(pipeline->dependencies, NjDependency, d);
        g_array_append_val(from, dependency->from);
        g_array_append_val(to, dependency->to);
    }
    // A schedule that cannot run is a bug of the schedule, not of the user.
    g_autoptr(GError) error = NULL;
    problem->dag = nj_dag_new(n_tasks, option_set, from->len, (const guint *)(const void *)from->data,
                              (const guint *)(const void *)to->data, &error);
    g_assert_no_error(error);
}

void nj_profile_problem_init(NjProfileProblem *problem, const NjProfile *profile,
                             const NjPipelineSchedule *schedule, guint n_microbatches, double static_power_w)
{
    *problem = (NjProfileProblem){.profile = profile};
    nj_pipeline_init(&problem->pipeline, schedule, profile->n_stages, n_microbatches);
    build_sets(problem, static_power_w);
    build_dag(problem);
}

void nj_profile_problem_clear(NjProfileProblem *problem)
{
    if (problem->profile == NULL)
        return;
    nj_pipeline_clear(&problem->pipeline);
    nj_dag_free(problem->dag);
    g_free(problem->sets);
    g_free(problem->options);
    g_free(problem->rows);
    *problem = (NjProfileProblem){0};
}

void nj_profile_problem_plan(const NjProfileProblem *problem, const guint *choice, NjPlan *plan)
{
    const NjPipeline *pipeline = &problem->pipeline;
    nj_plan_init(plan, pipeline->n_stages);
    for (guint i = 0; i < pipeline->instructions->len; i++) {
        const NjOptionSet *set = &problem->sets[problem->dag->option_set[i]];
        g_assert(choice[i] < set->n_options);
        const guint row = problem->rows[(set->options - problem->options) + choice[i]];
        nj_plan_append(plan, nj_pipeline_instruction(pipeline, i)->stage,
                       &problem->profile->rows[row].instruction);
    }
}
