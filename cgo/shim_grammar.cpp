// GBNF grammars. The parser and the pushdown automaton are llama.cpp's; what is
// ours is everything that keeps them from crashing: the parser prints to stderr
// and expands repetitions without bound, the automaton recurses without bound on
// nullable rules and aborts the process where it should refuse.
#include "shim_impl.h"

#include "engine.h"
#include "shim_gbnf.h"
#include "llama-vocab.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace quern {

constexpr size_t max_stacks = 1024;

grammar::grammar(const quern_model & m, const char * text, const int32_t * tokens, int n_tokens, const char ** words,
                 int n_words) :
    m(m), waiting(n_tokens + n_words > 0), lazy_tokens(tokens, tokens + n_tokens), lazy_words(words, words + n_words) {
    for (const auto & w : lazy_words) {
        if (w.empty() || w.size() > 1024) {
            throw failure(QUERN_BAD_ARG, "a grammar trigger must have 1 to 1024 bytes");
        }
    }
    const grammar_rules                        parsed = parse_grammar(m.vocab, text);
    std::vector<const llama_grammar_element *> rules;
    for (const auto & r : parsed.rules) {
        rules.push_back(r.data());
    }
    nullable_depth = parsed.nullable_depth;
    g              = engine::new_grammar(m.vocab, rules, parsed.root);
    if (!g) {
        throw failure(QUERN_BAD_ARG, "grammar: refused by llama.cpp");
    }
}

grammar::~grammar() { llama_grammar_free_impl(g); }

void grammar::mask(candidate * c, size_t n) {
    if (dead) {
        throw failure(QUERN_FAILED, "the grammar has failed before");
    }
    scratch.resize(n);
    for (size_t i = 0; i < n; i++) {
        scratch[i] = {c[i].id, c[i].logit, 0};
    }
    llama_token_data_array a{scratch.data(), n, -1, false};
    llama_grammar_apply_impl(*g, &a);
    for (size_t i = 0; i < n; i++) {
        c[i].logit = scratch[i].logit;
        if (std::isfinite(c[i].logit) && !(is_text(c[i].id) && spelled_out(c[i].id))) {
            c[i].logit = -INFINITY;
        }
    }
}

bool grammar::allows(int32_t token) {
    candidate c{token, 0};
    mask(&c, 1);
    return std::isfinite(c.logit);
}

// is_text tells whether a token leaves the output the beginning of a text.
// llama.cpp takes bytes for characters that are none (0xf5, a surrogate, the
// long form of a short one): each would reach the reader as several U+FFFD and
// break what a grammar counts. An end may not cut a character.
bool grammar::is_text(int32_t token) const {
    if (m.vocab->is_eog(token)) {
        return place.need == 0;
    }
    utf8_place p = place;
    return p.take(m.vocab->token_to_piece(token));
}

// spelled_out tells whether a control token stands in the grammar letter by
// letter. A class such as [^"] would match its text, too, but there it would
// vanish from the output, so it must not be taken. To tell the two apart, its
// last letter is replaced by one that no grammar names.
bool grammar::spelled_out(int32_t token) const {
    const int attr = llama_vocab_get_attr(m.vocab, token);
    if (!(attr & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) || m.vocab->is_eog(token)) {
        return true;
    }
    for (const auto & stack : g->stacks) {
        if (!stack.empty() &&
            (stack.back()->type == LLAMA_GRETYPE_TOKEN || stack.back()->type == LLAMA_GRETYPE_TOKEN_NOT)) {
            return true;
        }
    }
    const std::string & piece = m.vocab->token_to_piece(token);
    if (piece.empty()) {
        return false;
    }
    std::vector<uint32_t> points(piece.begin(), piece.end() - 1); // markers are ASCII
    points.push_back(0x10FFFD);
    points.push_back(0);
    const llama_grammar_candidates one{
        {0, points.data(), {0, 0}, token}
    };
    for (const auto & stack : g->stacks) {
        if (llama_grammar_reject_candidates_for_stack(g->rules, stack, one).empty()) {
            return false;
        }
    }
    return true;
}

void grammar::feed(int32_t token, const std::string & piece) {
    dead = true; // until it has worked: after an exception the stacks are gone
    llama_grammar_accept_token(*g, token, piece);
    if (!place.take(piece)) {
        place = {};
    }
    size_t depth = 0;
    for (const auto & s : g->stacks) {
        depth = std::max(depth, s.size());
    }
    if (g->stacks.size() > max_stacks || depth > 4096 || depth * nullable_depth > 16384) {
        throw failure(QUERN_FAILED, message("grammar: too ambiguous or too deeply nested here (%zu states, depth %zu)",
                                            g->stacks.size(), depth));
    }
    dead = false;
}

void grammar::accept(int32_t token) {
    const std::string & piece = m.vocab->token_to_piece(token);
    if (!waiting) {
        if (dead) {
            throw failure(QUERN_FAILED, "the grammar has failed before");
        }
        if (!m.vocab->is_eog(token)) { // allows() has seen to it that an end is legal
            feed(token, piece);
        }
        return;
    }
    if (std::find(lazy_tokens.begin(), lazy_tokens.end(), token) != lazy_tokens.end()) {
        waiting = false;
        feed(token, piece);
        return;
    }
    // A word may span tokens: look for one that ends in this piece.
    const size_t old = seen.size();
    seen += piece;
    size_t at = std::string::npos;
    for (const auto & w : lazy_words) {
        const size_t from = old >= w.size() ? old - w.size() + 1 : 0;
        at                = std::min(at, seen.find(w, from));
    }
    if (at != std::string::npos) {
        waiting                = false;
        const std::string rest = seen.substr(at);
        seen.clear();
        feed(token, rest);
    } else if (seen.size() > 4096) {
        seen.erase(0, seen.size() - 2048);
    }
}

} // namespace quern
