// The llama.cpp of the Go module (engine_module.go), where others differ.
#pragma once

#include "llama-grammar.h"
#include "llama-hparams.h"
#include "llama.h"

#include <vector>

namespace quern::engine {

inline uint32_t layers(const llama_hparams & hp) { return hp.n_layer; }
inline uint32_t rotated(const llama_hparams & hp, uint32_t) { return hp.n_rot; }
inline uint32_t key_size(const llama_hparams & hp, uint32_t) { return hp.n_embd_head_k; }
inline uint32_t value_size(const llama_hparams & hp, uint32_t) { return hp.n_embd_head_v; }
inline uint32_t experts_used(const llama_hparams & hp, uint32_t) { return hp.n_expert_used; }

inline void map_file(llama_model_params & p, bool map) { p.use_mmap = map; }

inline llama_grammar * new_grammar(const llama_vocab * vocab, std::vector<const llama_grammar_element *> & rules, size_t root) {
    return llama_grammar_init_impl(vocab, nullptr, rules.data(), rules.size(), root);
}

constexpr int state_head_words = 0;
inline int    state_cell_words(const llama_hparams &) { return 3; }

} // namespace quern::engine
