// SPDX-License-Identifier: MIT
#include "models/update.h"

#include "models/layer-private.h"
#include "models/memory.h"
#include "models/network.h"

static void add(NjBlock *step, const NjGpu *gpu, const char *name, double bytes)
{
    nj_block_add(step, NJ_ROLE_OTHER, nj_memory_kernel(gpu, name, bytes));
}

// Parameter tensors of a layer.
static guint layer_tensors(const NjArch *arch)
{
    const guint norm = arch->norm == NJ_NORM_LAYERNORM ? 2 : 1;
    return 4 * (arch->biases ? 2 : 1) + 2 * norm + (arch->qk_norm ? 2 : 0);
}

void nj_update_build(NjUpdate *update, const NjWorkload *workload, int stage)
{
    const NjGpu *gpu = &workload->gpu;
    const NjStack stack = nj_workload_stack(workload);
    const double g = stack.gradient_bytes;
    NjMemoryShape shape;
    nj_memory_shape_from_workload(workload, FALSE, &shape);
    const double parameters = nj_memory_parameters(&shape, stage);
    const int last = workload->parallelism.pp - 1;

    *update = (NjUpdate){0};
    const NjGroup gradient = nj_workload_gradient_group(workload);
    if (gradient.size > 1) {
        update->division = nj_memory_kernel(gpu, "gradient-division", 2 * g * parameters);
        update->gradient_all_reduce =
            nj_all_reduce_kernel(gpu, "gradient-all-reduce", &gradient, g * parameters);
    }
    const NjGroup embedding = nj_workload_embedding_group(workload);
    if (embedding.size > 1 && workload->arch.tied_embeddings && (stage == 0 || stage == last)) {
        const double table = (double)workload->arch.vocab * workload->arch.hidden / workload->parallelism.tp;
        update->embedding_all_reduce =
            nj_all_reduce_kernel(gpu, "embedding-all-reduce", &embedding, g * table);
    }
    if (g < 4) {
        update->n_copies = (guint)workload->layers[stage] * layer_tensors(&workload->arch);
        update->copy = nj_memory_kernel(gpu, "gradient-to-fp32", 6 * parameters / update->n_copies);
        add(&update->step, gpu, "unscale", 8 * parameters);
    }
    add(&update->step, gpu, "gradient-norm", 4 * parameters);
    add(&update->step, gpu, "clip", 8 * parameters);
    add(&update->step, gpu, "adam", 28 * parameters);
    add(&update->step, gpu, "master-to-weight", 6 * parameters);
    add(&update->step, gpu, "gradient-clear", g * parameters);
}

double nj_update_norm_s(const NjWorkload *workload)
{
    const NjParallelism *p = &workload->parallelism;
    if (p->pp == 1)
        return 0;
    const int stride = p->tp * p->cp * p->dp;
    const int local = MAX(workload->gpu.gpus_per_node / stride, 1);
    const NjGroup stages = {p->pp, MIN(local, p->pp), (p->pp + local - 1) / local};
    return nj_group_collective_s(&workload->gpu, NJ_COLLECTIVE_ALL_REDUCE, &stages, 4);
}
