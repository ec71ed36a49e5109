// A llama.cpp of autumn 2026 (engine_current.go), where others differ.
#pragma once

#include "llama-grammar.h"
#include "llama-hparams.h"
#include "llama.h"

#include <vector>

namespace quern::engine {

inline uint32_t layers(const llama_hparams & hp) { return hp.n_layer(); }
inline uint32_t rotated(const llama_hparams & hp, uint32_t il) { return hp.n_rot(il); }
inline uint32_t key_size(const llama_hparams & hp, uint32_t il) { return hp.n_embd_head_k(il); }
inline uint32_t value_size(const llama_hparams & hp, uint32_t il) { return hp.n_embd_head_v(il); }
inline uint32_t experts_used(const llama_hparams & hp, uint32_t il) { return hp.n_expert_used(il); }

inline void map_file(llama_model_params & p, bool map) { p.load_mode = map ? LLAMA_LOAD_MODE_MMAP : LLAMA_LOAD_MODE_NONE; }

inline llama_grammar * new_grammar(const llama_vocab * vocab, std::vector<const llama_grammar_element *> & rules, size_t root) {
    return llama_grammar_init_impl(vocab, rules.data(), rules.size(), root);
}

constexpr int state_head_words = 2; // a mark and the sequence's id
inline int    state_cell_words(const llama_hparams & hp) {
    return 3 + (hp.n_pos_per_embd() > 1 || hp.ple_n_heads > 0 ? 3 : 0); // as has_cell_ext of the cache
}

} // namespace quern::engine
