// SPDX-License-Identifier: MIT
#include "models/workload.h"

#include "sim/error.h"

#include <string.h>

gboolean nj_parallelism_parse(const char *text, int pp_default, NjParallelism *parallelism)
{
    int *const degrees[] = {&parallelism->tp, &parallelism->cp, &parallelism->pp, &parallelism->dp};
    static const char *const names[] = {"tp", "cp", "pp", "dp"};
    gboolean seen[G_N_ELEMENTS(names)] = {FALSE};

    *parallelism = (NjParallelism){1, 1, pp_default, 1};
    if (*text == '\0')
        return FALSE;
    while (*text != '\0') {
        guint i = 0;
        while (i < G_N_ELEMENTS(names) && !g_str_has_prefix(text, names[i]))
            i++;
        if (i == G_N_ELEMENTS(names) || seen[i] || !g_ascii_isdigit(text[2]))
            return FALSE;
        char *end = NULL;
        const guint64 degree = g_ascii_strtoull(text + 2, &end, 10);
        if (degree < 1 || degree > 1 << 20)
            return FALSE;
        seen[i] = TRUE;
        *degrees[i] = (int)degree;
        text = end;
    }
    return TRUE;
}

char *nj_parallelism_format(const NjParallelism *p, gboolean with_pp)
{
    g_autoptr(GString) text = g_string_new(NULL);
    if (p->cp > 1)
        g_string_append_printf(text, "cp%d", p->cp);
    g_string_append_printf(text, "tp%d", p->tp);
    if (with_pp && p->pp > 1)
        g_string_append_printf(text, "pp%d", p->pp);
    if (p->dp > 1)
        g_string_append_printf(text, "dp%d", p->dp);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

int nj_parallelism_gpus(const NjParallelism *p)
{
    return p->tp * p->cp * p->pp * p->dp;
}

void nj_workload_clear(NjWorkload *workload)
{
    nj_arch_clear(&workload->arch);
    nj_gpu_clear(&workload->gpu);
    nj_stack_clear(&workload->stack);
}

const char *const nj_recompute_names[] = {"full", "selective", "none", NULL};

NjStack nj_workload_stack(const NjWorkload *workload)
{
    return nj_stack_on_gpu(&workload->stack, &workload->gpu);
}

// Every stride-th rank.
static NjGroup group_of(const NjWorkload *w, int stride, int size)
{
    const int local = CLAMP(w->gpu.gpus_per_node / stride, 1, size);
    return (NjGroup){size, local, (size + local - 1) / local};
}

NjGroup nj_workload_tensor_group(const NjWorkload *workload)
{
    return group_of(workload, 1, workload->parallelism.tp);
}

NjGroup nj_workload_gradient_group(const NjWorkload *workload)
{
    const NjParallelism *p = &workload->parallelism;
    return group_of(workload, p->tp, p->cp * p->dp);
}

static int ranks_of_stage(const NjWorkload *workload)
{
    const NjParallelism *p = &workload->parallelism;
    return p->tp * p->cp * p->dp;
}

NjGroup nj_workload_embedding_group(const NjWorkload *workload)
{
    const int pp = workload->parallelism.pp;
    return pp > 1 ? group_of(workload, (pp - 1) * ranks_of_stage(workload), 2) : (NjGroup){1, 1, 1};
}

gboolean nj_workload_same_node(const NjWorkload *workload, int stage)
{
    const int ranks = ranks_of_stage(workload), node = workload->gpu.gpus_per_node;
    return stage * ranks / node == (stage + 1) * ranks / node && ranks < node;
}

void nj_workload_split_layers(NjWorkload *workload)
{
    const int stages = workload->parallelism.pp;
    for (int i = 0; i < stages && i < NJ_MAX_STAGES; i++)
        workload->layers[i] = workload->arch.layers / stages + (i < workload->arch.layers % stages);
}

static gboolean divides(const char *what, int value, const char *by, int degree, GError **error)
{
    if (value % degree == 0)
        return TRUE;
    g_set_error(error, NJ_ERROR, NJ_ERROR_IMPOSSIBLE, "%s %d is not a multiple of %s = %d", what, value, by,
                degree);
    return FALSE;
}

gboolean nj_workload_check(const NjWorkload *w, GError **error)
{
    const NjParallelism *p = &w->parallelism;
    if (p->pp > NJ_MAX_STAGES || p->pp > w->arch.layers) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_IMPOSSIBLE,
                    "pp = %d: at most %d stages (%d layers) are possible", p->pp,
                    MIN(NJ_MAX_STAGES, w->arch.layers), w->arch.layers);
        return FALSE;
    }
    const int node = w->gpu.gpus_per_node;
    const gboolean whole_nodes = p->cp == 1 && p->tp % node == 0;
    if (p->tp * p->cp > node && !whole_nodes) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_IMPOSSIBLE,
                    "tp x cp = %d: tensor and context parallelism stay inside a node of %d GPUs",
                    p->tp * p->cp, w->gpu.gpus_per_node);
        return FALSE;
    }
    int sum = 0;
    for (int i = 0; i < p->pp; i++) {
        sum += w->layers[i];
        if (w->layers[i] < 1) {
            g_set_error(error, NJ_ERROR, NJ_ERROR_IMPOSSIBLE, "stage %d has %d layers: at least 1 is needed",
                        i, w->layers[i]);
            return FALSE;
        }
    }
    if (sum != w->arch.layers) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_IMPOSSIBLE, "the stages' layers sum to %d where %s has %d", sum,
                    w->arch.name, w->arch.layers);
        return FALSE;
    }
    // Fewer key and value heads than ranks: each is held by several ranks.
    return divides("the number of heads", w->arch.heads, "tp", p->tp, error) &&
           (p->tp % w->arch.kv_heads == 0 ||
            divides("the number of key and value heads", w->arch.kv_heads, "tp", p->tp, error)) &&
           divides("the MLP size", w->arch.ffn, "tp", p->tp, error) &&
           divides("the vocabulary", w->arch.vocab, "tp", p->tp, error) &&
           (p->cp == 1 || divides("the sequence length", w->seq_len, "2 x cp", 2 * p->cp, error));
}

double nj_workload_tokens(const NjWorkload *workload, int sequences)
{
    return (double)sequences * workload->seq_len / workload->parallelism.cp;
}
