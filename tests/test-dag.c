// SPDX-License-Identifier: MIT
#include "schedules/dag.h"
#include "tests/testing.h"

START_TEST(refuses_what_is_no_dag)
{
    static const struct {
        const char *label;
        guint n_tasks, n_edges;
        guint from[4], to[4];
        const char *message;
    } ROWS[] = {
        {"no task", 0, 0, {0}, {0}, "task graph: there is no task"},
        {"edge to nowhere",
         2,
         1,
         {1},
         {2},
         "task graph: edge 0 goes from task 1 to task 2, tasks are 0 to 1"},
        {"edge from nowhere",
         2,
         2,
         {0, 5},
         {1, 1},
         "task graph: edge 1 goes from task 5 to task 1, tasks are 0 to 1"},
        {"itself",
         3,
         2,
         {0, 1},
         {1, 1},
         "task graph: the edges form a cycle through task 1: nothing on it could ever start"},
        // 0 -> 1 -> 2 -> 1, and 3 hangs behind: only 1 and 2 are on the cycle.
        {"a longer way round",
         4,
         4,
         {0, 1, 2, 2},
         {1, 2, 1, 3},
         "task graph: the edges form a cycle through task 1: nothing on it could ever start"},
    };
    static const guint SETS[4] = {0};
    for (guint r = 0; r < G_N_ELEMENTS(ROWS); r++) {
        GError *error = NULL;
        NjDag *dag = nj_dag_new(ROWS[r].n_tasks, SETS, ROWS[r].n_edges, ROWS[r].from, ROWS[r].to, &error);
        ck_assert_msg(dag == NULL, "%s", ROWS[r].label);
        nj_assert_error(error, ROWS[r].message);
    }
}
END_TEST

//   0 (3) --> 1 (2) --> 4 (1)
//     \-----> 2 (7) ----/        3 (5) alone
START_TEST(finds_order_and_longest_path)
{
    static const guint SETS[] = {0, 1, 1, 0, 2};
    static const guint FROM[] = {1, 0, 2, 0, 0}, TO[] = {4, 1, 4, 2, 2}; // one edge twice
    GError *error = NULL;
    g_autoptr(NjDag) dag = nj_dag_new(5, SETS, 5, FROM, TO, &error);
    nj_assert_ok(dag != NULL, error);
    guint place[5];
    for (guint k = 0; k < 5; k++)
        place[dag->order[k]] = k;
    for (guint j = 0; j < 5; j++)
        ck_assert_uint_lt(place[FROM[j]], place[TO[j]]);
    ck_assert_uint_eq(dag->option_set[4], 2);

    static const gint64 DURATION[] = {3, 2, 7, 5, 1}, START[] = {0, 3, 3, 0, 10};
    gint64 start[5];
    ck_assert_int_eq(nj_dag_longest_path(dag, DURATION, start), 11);
    for (guint i = 0; i < 5; i++)
        ck_assert_int_eq(start[i], START[i]);
    ck_assert_int_eq(nj_dag_longest_path(dag, DURATION, NULL), 11);

    static const double DURATION_S[] = {0.5, 2, 0.25, 5, 1};
    double start_s[5];
    ck_assert_double_eq(nj_dag_longest_path_s(dag, DURATION_S, start_s), 5);
    ck_assert_double_eq(start_s[4], 2.5);
    ck_assert_double_eq(nj_dag_longest_path_s(dag, DURATION_S, NULL), 5);
}
END_TEST

START_TEST(takes_one_task)
{
    static const guint SETS[] = {3};
    GError *error = NULL;
    g_autoptr(NjDag) dag = nj_dag_new(1, SETS, 0, NULL, NULL, &error);
    nj_assert_ok(dag != NULL, error);
    static const gint64 DURATION[] = {42};
    ck_assert_int_eq(nj_dag_longest_path(dag, DURATION, NULL), 42);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dag");
    TCase *tcase = tcase_create("dag");
    tcase_add_test(tcase, refuses_what_is_no_dag);
    tcase_add_test(tcase, finds_order_and_longest_path);
    tcase_add_test(tcase, takes_one_task);
    suite_add_tcase(suite, tcase);
    return nj_test_run(suite);
}
