// SPDX-License-Identifier: MIT
#pragma once
// A transformer architecture of the Llama/Qwen family: RMSNorm, rotary positions, grouped-query attention,
// SwiGLU. It is read from a key file under models/archs/ or from a Hugging Face config.json (model types
// llama, mistral, qwen2, qwen3).

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
    char *name;  // as in result tables: "llama-3.2-3b"
    char *title; // as people write it: "Llama 3.2 3B"
    char *alias; // what a published table calls it where that differs, or NULL
    int hidden;
    int layers;
    int heads;
    int kv_heads;
    int head_dim;
    int ffn;
    int vocab;
    gboolean qk_norm;         // RMSNorm on every head's q and k
    gboolean tied_embeddings; // LM head shares the embedding's weights
} NjArch;

// Loads a shipped architecture by name, or a .ini or config.json by path.
gboolean nj_arch_load(NjArch *arch, const char *name_or_path, GError **error);
void nj_arch_clear(NjArch *arch);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjArch, nj_arch_clear)

// Weights of one layer, and of the whole model (tied embeddings count once).
double nj_arch_layer_parameters(const NjArch *arch);
double nj_arch_parameters(const NjArch *arch);

// Floating-point operations a token needs in one training step without any recomputation (forward and
// backward), as model flop utilisation counts them: matrix products of the weights, and causal attention at
// half the square.
double nj_arch_flop_per_token(const NjArch *arch, int seq_len);

G_END_DECLS
