// SPDX-License-Identifier: MIT
// The frontier as a flow. With convex costs e_i(d_i), duration d_i, the least energy at time T is
//
//   E(T) = min sum e_i(d_i)   over event times p: p_end - p_start >= d_i, p_b >= p_a for a before b, p_sink
//   <= T.
//
// Its dual gives every task a flow x_i (what a tick less of it costs, or is worth) and is a flow from source
// to sink of value lambda = -dE/dT: sum over tasks of max_d (...) = the longest-path analogue of a
// minimum-cost flow, where pushing x through a task costs its hull times, slowest first: flow between slope k
// and slope k+1 passes at hull time k. Successive longest paths solve it for every lambda (Fulkerson 1961,
// Kelley 1961; the minimum cuts of Phillips and Dessouky 1977 are the cuts that appear below): at time T push
// as much as fits through the arcs that are tight, then move the events beyond the saturated cut earlier
// until an arc becomes tight. Every move ends at a breakpoint of E. All numbers are integers.
#include "schedules/solver-private.h"

static guint start_node(guint task)
{
    return NJ_FLOW_FIRST_TASK + 2 * task;
}

static guint end_node(guint task)
{
    return NJ_FLOW_FIRST_TASK + 2 * task + 1;
}

static gint64 hull_ticks(const NjCurve *curve, guint level)
{
    return curve->ticks[curve->hull[level]];
}

// Flow at which the marginal piece begins and ends: between them the task takes hull_ticks(level).
static gint64 level_begin(const NjCurve *curve, guint level)
{
    return level + 1 < curve->n_hull ? curve->slope[level + 1] : 0;
}

static gint64 level_end(const NjCurve *curve, guint level)
{
    return level > 0 ? curve->slope[level] : NJ_SLOPE_NEVER;
}

// Sets what a step along the arc costs, forwards and backwards, after its flow changed.
static void update_cost(NjFlow *flow, guint arc)
{
    const gint64 x = flow->flow[arc];
    if (arc >= flow->n_tasks) { // precedence: no time, no limit
        flow->cost[2 * arc] = 0;
        flow->cost[2 * arc + 1] = x > 0 ? 0 : NJ_TICKS_NEVER;
        return;
    }
    const NjCurve *curve = flow->curve[arc];
    guint level = flow->level[arc];
    while (x >= level_end(curve, level))
        level--;
    while (x < level_begin(curve, level))
        level++;
    flow->level[arc] = level;
    flow->cost[2 * arc] = -hull_ticks(curve, level);
    if (x > level_begin(curve, level))
        flow->cost[2 * arc + 1] = hull_ticks(curve, level);
    else
        flow->cost[2 * arc + 1] = level + 1 < curve->n_hull ? hull_ticks(curve, level + 1) : NJ_TICKS_NEVER;
}

// How much flow the step takes before its cost changes.
static gint64 step_room(const NjFlow *flow, guint step)
{
    const guint arc = step / 2;
    const gboolean backwards = step % 2 != 0;
    const gint64 x = flow->flow[arc];
    if (arc >= flow->n_tasks)
        return backwards ? x : NJ_SLOPE_NEVER;
    const NjCurve *curve = flow->curve[arc];
    const guint level = flow->level[arc];
    if (!backwards)
        return level > 0 ? level_end(curve, level) - x : NJ_SLOPE_NEVER;
    const gint64 begin = level_begin(curve, level);
    return x > begin ? x - begin : x - level_begin(curve, level + 1);
}

static void add_arc(NjFlow *flow, guint from, guint to)
{
    flow->arc_end[flow->n_arcs][0] = from;
    flow->arc_end[flow->n_arcs][1] = to;
    flow->adjacent_start[from + 1]++;
    flow->adjacent_start[to + 1]++;
    flow->n_arcs++;
}

static void build_arcs(NjFlow *flow, const NjDag *dag)
{
    flow->arc_end = g_malloc_n(3 * dag->n_tasks + dag->n_edges, sizeof *flow->arc_end);
    for (guint i = 0; i < dag->n_tasks; i++)
        add_arc(flow, start_node(i), end_node(i));
    for (guint i = 0; i < dag->n_tasks; i++) {
        if (dag->pred_start[i] == dag->pred_start[i + 1])
            add_arc(flow, NJ_FLOW_SOURCE, start_node(i));
        if (dag->succ_start[i] == dag->succ_start[i + 1])
            add_arc(flow, end_node(i), NJ_FLOW_SINK);
        for (guint j = dag->succ_start[i]; j < dag->succ_start[i + 1]; j++)
            add_arc(flow, end_node(i), start_node(dag->succ[j]));
    }

    for (guint u = 0; u < flow->n_nodes; u++)
        flow->adjacent_start[u + 1] += flow->adjacent_start[u];
    g_autofree guint *next = g_memdup2(flow->adjacent_start, sizeof(guint) * flow->n_nodes);
    flow->adjacent_node = g_new(guint, 2 * flow->n_arcs);
    flow->adjacent_arc = g_new(guint, 2 * flow->n_arcs);
    for (guint arc = 0; arc < flow->n_arcs; arc++)
        for (guint side = 0; side < 2; side++) {
            const guint place = next[flow->arc_end[arc][side]]++;
            flow->adjacent_node[place] = flow->arc_end[arc][1 - side];
            flow->adjacent_arc[place] = 2 * arc + side;
        }
}

NjFlow *nj_flow_new(const NjDag *dag, const NjCurves *curves)
{
    NjFlow *flow = g_new0(NjFlow, 1);
    flow->n_tasks = dag->n_tasks;
    flow->n_nodes = NJ_FLOW_FIRST_TASK + 2 * dag->n_tasks;
    flow->adjacent_start = g_new0(guint, flow->n_nodes + 1);
    build_arcs(flow, dag);

    flow->curve = g_new(const NjCurve *, flow->n_tasks);
    flow->flow = g_new0(gint64, flow->n_arcs);
    flow->level = g_new0(guint, flow->n_tasks);
    flow->potential = g_new0(gint64, flow->n_nodes);
    flow->cost = g_new0(gint64, 2 * flow->n_arcs);
    flow->distance = g_new(gint64, flow->n_nodes);
    flow->parent = g_new(guint, flow->n_nodes);
    flow->queue = g_new(guint, flow->n_nodes);
    flow->heap = g_new(guint, flow->n_nodes);
    flow->heap_at = g_new(guint, flow->n_nodes);

    g_autofree gint64 *duration = g_new(gint64, flow->n_tasks);
    g_autofree gint64 *start = g_new(gint64, flow->n_tasks);
    for (guint i = 0; i < flow->n_tasks; i++) {
        flow->curve[i] = &curves->curves[dag->option_set[i]];
        flow->level[i] = flow->curve[i]->n_hull - 1;
        duration[i] = hull_ticks(flow->curve[i], flow->level[i]);
    }
    for (guint arc = 0; arc < flow->n_arcs; arc++)
        update_cost(flow, arc);
    flow->potential[NJ_FLOW_SINK] = nj_dag_longest_path(dag, duration, start);
    for (guint i = 0; i < flow->n_tasks; i++) {
        flow->potential[start_node(i)] = start[i];
        flow->potential[end_node(i)] = start[i] + duration[i];
    }
    return flow;
}

void nj_flow_free(NjFlow *flow)
{
    if (flow == NULL)
        return;
    g_free(flow->curve);
    g_free(flow->arc_end);
    g_free(flow->adjacent_start);
    g_free(flow->adjacent_node);
    g_free(flow->adjacent_arc);
    g_free(flow->flow);
    g_free(flow->level);
    g_free(flow->potential);
    g_free(flow->cost);
    g_free(flow->distance);
    g_free(flow->parent);
    g_free(flow->queue);
    g_free(flow->heap);
    g_free(flow->heap_at);
    g_free(flow);
}

gint64 nj_flow_time(const NjFlow *flow)
{
    return flow->potential[NJ_FLOW_SINK];
}

gint64 nj_flow_duration(const NjFlow *flow, guint task)
{
    const NjCurve *curve = flow->curve[task];
    return MIN(flow->potential[end_node(task)] - flow->potential[start_node(task)],
               hull_ticks(curve, curve->n_hull - 1));
}

static gint64 reduced_length(const NjFlow *flow, guint from, guint entry)
{
    return flow->cost[flow->adjacent_arc[entry]] + flow->potential[flow->adjacent_node[entry]] -
           flow->potential[from];
}

// The node before this one on the path that was found.
static guint came_from(const NjFlow *flow, guint node)
{
    const guint step = flow->parent[node];
    return flow->arc_end[step / 2][step % 2];
}

// A tight path from source to sink with room: depth first, so that a path among many is found soon.
static gboolean find_tight_path(NjFlow *flow)
{
    for (guint u = 0; u < flow->n_nodes; u++)
        flow->parent[u] = G_MAXUINT;
    guint n_stack = 0;
    flow->queue[n_stack++] = NJ_FLOW_SOURCE;
    flow->parent[NJ_FLOW_SOURCE] = 0;
    while (n_stack > 0) {
        const guint u = flow->queue[--n_stack];
        for (guint entry = flow->adjacent_start[u]; entry < flow->adjacent_start[u + 1]; entry++) {
            const guint v = flow->adjacent_node[entry];
            if (flow->parent[v] != G_MAXUINT || reduced_length(flow, u, entry) != 0)
                continue;
            flow->parent[v] = flow->adjacent_arc[entry];
            if (v == NJ_FLOW_SINK)
                return TRUE;
            flow->queue[n_stack++] = v;
        }
    }
    return FALSE;
}

gboolean nj_flow_push(NjFlow *flow)
{
    while (find_tight_path(flow)) {
        gint64 room = NJ_SLOPE_NEVER;
        for (guint v = NJ_FLOW_SINK; v != NJ_FLOW_SOURCE; v = came_from(flow, v))
            room = MIN(room, step_room(flow, flow->parent[v]));
        if (room == NJ_SLOPE_NEVER)
            return FALSE;
        for (guint v = NJ_FLOW_SINK; v != NJ_FLOW_SOURCE; v = came_from(flow, v)) {
            const guint step = flow->parent[v];
            flow->flow[step / 2] += step % 2 == 0 ? room : -room;
            update_cost(flow, step / 2);
        }
    }
    return TRUE;
}

// Moves a node up the heap to where its distance belongs.
static void heap_rise(NjFlow *flow, guint place, guint node)
{
    const gint64 distance = flow->distance[node];
    while (place > 0) {
        const guint above = (place - 1) / 2;
        if (flow->distance[flow->heap[above]] <= distance)
            break;
        flow->heap[place] = flow->heap[above];
        flow->heap_at[flow->heap[place]] = place;
        place = above;
    }
    flow->heap[place] = node;
    flow->heap_at[node] = place;
}

static guint heap_pop(NjFlow *flow)
{
    const guint nearest = flow->heap[0];
    const guint node = flow->heap[--flow->n_heap];
    const gint64 distance = flow->distance[node];
    guint place = 0;
    for (;;) {
        guint below = 2 * place + 1;
        if (below >= flow->n_heap)
            break;
        if (below + 1 < flow->n_heap &&
            flow->distance[flow->heap[below + 1]] < flow->distance[flow->heap[below]])
            below++;
        if (flow->distance[flow->heap[below]] >= distance)
            break;
        flow->heap[place] = flow->heap[below];
        flow->heap_at[flow->heap[place]] = place;
        place = below;
    }
    flow->heap[place] = node;
    flow->heap_at[node] = place;
    return nearest;
}

// Dijkstra over reduced lengths from the source; nodes at `limit` or beyond keep that distance. Stops at the
// sink. Steps of length 0 are many: they go through a queue and spare the heap.
static gint64 measure_distances(NjFlow *flow, gint64 limit)
{
    for (guint u = 0; u < flow->n_nodes; u++)
        flow->distance[u] = limit;
    flow->distance[NJ_FLOW_SOURCE] = 0;
    flow->n_heap = 0;
    guint n_queue = 0;
    flow->queue[n_queue++] = NJ_FLOW_SOURCE;
    for (guint u = 0; u < flow->n_nodes; u++)
        flow->heap_at[u] = G_MAXUINT;
    for (;;) {
        guint u;
        if (n_queue > 0)
            u = flow->queue[--n_queue];
        else if (flow->n_heap > 0)
            u = heap_pop(flow);
        else
            return limit;
        const gint64 here = flow->distance[u];
        if (u == NJ_FLOW_SINK)
            return here;
        for (guint entry = flow->adjacent_start[u]; entry < flow->adjacent_start[u + 1]; entry++) {
            const guint v = flow->adjacent_node[entry];
            const gint64 there = here + reduced_length(flow, u, entry);
            if (there >= flow->distance[v])
                continue;
            if (there == here && flow->heap_at[v] == G_MAXUINT) {
                flow->distance[v] = there;
                flow->queue[n_queue++] = v;
                continue;
            }
            flow->distance[v] = there;
            if (flow->heap_at[v] == G_MAXUINT)
                flow->heap_at[v] = flow->n_heap++;
            heap_rise(flow, flow->heap_at[v], v);
        }
    }
}

void nj_flow_shorten(NjFlow *flow, gint64 until)
{
    const gint64 moved = measure_distances(flow, nj_flow_time(flow) - until);
    for (guint u = 0; u < flow->n_nodes; u++)
        flow->potential[u] -= MIN(flow->distance[u], moved);
}

NjFlowMark nj_flow_mark(const NjFlow *flow)
{
    return (NjFlowMark){
        .flow = g_memdup2(flow->flow, sizeof(gint64) * flow->n_arcs),
        .level = g_memdup2(flow->level, sizeof(guint) * flow->n_tasks),
        .potential = g_memdup2(flow->potential, sizeof(gint64) * flow->n_nodes),
    };
}

void nj_flow_return(NjFlow *flow, const NjFlowMark *mark)
{
    memcpy(flow->flow, mark->flow, sizeof(gint64) * flow->n_arcs);
    memcpy(flow->level, mark->level, sizeof(guint) * flow->n_tasks);
    memcpy(flow->potential, mark->potential, sizeof(gint64) * flow->n_nodes);
    for (guint arc = 0; arc < flow->n_arcs; arc++)
        update_cost(flow, arc);
}

void nj_flow_mark_clear(NjFlowMark *mark)
{
    g_clear_pointer(&mark->flow, g_free);
    g_clear_pointer(&mark->level, g_free);
    g_clear_pointer(&mark->potential, g_free);
}
