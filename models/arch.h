// SPDX-License-Identifier: MIT
#pragma once
// A transformer architecture. By default one of the Llama/Qwen family: RMSNorm, rotary positions,
// grouped-query flash attention, SwiGLU, no biases. Optional keys change each of these by itself; with all of
// them changed it is a GPT as Megatron-LM trained it before flash attention. It is read from a key file under
// models/archs/ or from a Hugging Face config.json (model types llama, mistral, qwen2, qwen3).

#include <glib.h>

G_BEGIN_DECLS

typedef enum { NJ_MLP_SWIGLU, NJ_MLP_GELU } NjMlp;
typedef enum { NJ_NORM_RMSNORM, NJ_NORM_LAYERNORM } NjNorm; // layer norm has a bias beside its weight
typedef enum { NJ_POSITIONS_ROPE, NJ_POSITIONS_LEARNED } NjPositions;
typedef enum { NJ_ATTENTION_FLASH, NJ_ATTENTION_MATERIALIZED } NjAttention; // whether scores go to memory

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
    int mlp;                  // NjMlp
    int norm;                 // NjNorm
    int positions;            // NjPositions
    int attention;            // NjAttention
    gboolean biases;          // of all linear layers but the LM head
    int max_positions;        // rows of the table of learned positions
} NjArch;

// Loads a shipped architecture by name, or a .ini or config.json by path.
gboolean nj_arch_load(NjArch *arch, const char *name_or_path, GError **error);
// A GPT of the family that Megatron-LM trained in 2021 and 2022: layer norm, learned positions, multi-head
// attention with materialised scores, GELU, biases, an MLP of 4 times the hidden size, tied embeddings.
// hidden is a multiple of heads.
void nj_arch_init_gpt(NjArch *arch, int layers, int hidden, int heads, int vocab, int max_positions);
void nj_arch_clear(NjArch *arch);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NjArch, nj_arch_clear)

// Whether any of mlp, norm, positions, attention and biases is not as in Llama.
gboolean nj_arch_is_gpt_like(const NjArch *arch);

// Weights of one layer, and of the whole model (tied embeddings count once).
double nj_arch_layer_parameters(const NjArch *arch);
double nj_arch_parameters(const NjArch *arch);

// Floating-point operations a token needs in one training step without any recomputation (forward and
// backward), as model flop utilisation counts them: matrix products of the weights, and causal attention at
// half the square.
double nj_arch_flop_per_token(const NjArch *arch, int seq_len);

G_END_DECLS
