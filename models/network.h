// SPDX-License-Identifier: MIT
#pragma once
// Collectives of groups that may span nodes.
//
// In a node: nj_collective_time(). Across nodes: the wire bytes of a ring pass every rank once; where the
// ring leaves a node it has the network share of the group's ranks in that node, so that the slower of
//   local x network_gb_s x network_efficiency   and   NVLink at the Simple protocol's share (local > 1)
// carries it. To that comes the latency of the double binary tree between nodes (NCCL 2.4) with a chain
// inside: 2 (ceil(log2 nodes) x network latency + (local - 1) x hop), and the launch of the Simple protocol.
// Groups that share nodes communicate at the same time (all data-parallel groups do), hence the share.

#include "models/workload.h"

G_BEGIN_DECLS

// Seconds, alone; 0 for a group of one rank. message_bytes as nj_collective_time() counts them.
double nj_group_collective_s(const NjGpu *gpu, NjCollectiveKind kind, const NjGroup *group,
                             double message_bytes);

G_END_DECLS
