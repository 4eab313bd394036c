// SPDX-License-Identifier: MIT
#pragma once
// Forms that validate.c lists; one file may hold several.

#include "scenarios/validate.h"

extern const NjValidateForm nj_validate_gemm;
extern const NjValidateForm nj_validate_attention;
extern const NjValidateForm nj_validate_collective;
extern const NjValidateForm nj_validate_iterations_node;
extern const NjValidateForm nj_validate_iterations_nodes;
