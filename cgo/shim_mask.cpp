// All tokens that a grammar allows. llama.cpp's own way decodes the text of
// every token again, 50 ms for a vocabulary of 150k. Here the text is decoded
// once a model, and only tokens whose first character fits are looked at.
#include "shim_gbnf.h"
#include "shim_impl.h"

#include "llama-vocab.h"

#include <algorithm>
#include <bitset>

namespace quern {

// token_text is a token as the automaton takes it: code points, 0 at the end,
// and the beginning of a character that the next token goes on with.
struct token_text {
    enum class kind : uint8_t { none, end, text, middle };
    uint32_t           at; // in points
    llama_partial_utf8 tail;
    kind               is;
    bool               control;
};

struct vocab_text {
    std::vector<token_text> tokens;
    std::vector<uint32_t>   points;
    std::vector<int32_t>    ends, middles;

    explicit vocab_text(const quern_model & m);

  private:
    void decode(const std::string & piece, token_text & t);
};

bool utf8_place::take(const std::string & bytes) {
    for (const uint8_t b : bytes) {
        if (need > 0) {
            if (b < low || b > high) {
                return false;
            }
            need--;
            low = 0x80, high = 0xbf;
        } else if (b >= 0x80) {
            if (b < 0xc2 || b > 0xf4) {
                return false;
            }
            need = b < 0xe0 ? 1 : b < 0xf0 ? 2 : 3;
            low  = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : 0x80; // else there is a shorter form
            high = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : 0xbf; // surrogates, beyond U+10FFFF
        }
    }
    return true;
}

// As llama.cpp decodes what is text.
void vocab_text::decode(const std::string & piece, token_text & t) {
    static const int length[] = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 2, 2, 3, 4};
    const char *     p        = piece.c_str();
    uint32_t         value    = 0;
    int              remain   = 0;
    while (*p) {
        const uint8_t first = (uint8_t) *p++;
        remain              = length[first >> 4] - 1;
        value = first & ((1 << (7 - remain)) - 1);
        for (; *p && remain > 0; p++, remain--) {
            value = (value << 6) + ((uint8_t) *p & 0x3f);
        }
        if (remain == 0) {
            points.push_back(value);
        }
    }
    points.push_back(0);
    t.tail = {value, remain};
}

vocab_text::vocab_text(const quern_model & m) {
    tokens.resize(m.n_vocab);
    for (int32_t i = 0; i < m.n_vocab; i++) {
        token_text &        t     = tokens[i];
        const std::string & piece = m.vocab->token_to_piece(i);
        t.at                      = (uint32_t) points.size();
        t.control = llama_vocab_get_attr(m.vocab, i) & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN);
        if (m.vocab->is_eog(i)) {
            t.is = token_text::kind::end;
            ends.push_back(i);
        } else if (piece.empty() || piece[0] == 0) {
            t.is = token_text::kind::none;
        } else if (((uint8_t) piece[0] & 0xc0) == 0x80) {
            t.is = token_text::kind::middle;
            middles.push_back(i);
        } else if (!utf8_place().take(piece)) {
            t.is = token_text::kind::none;
        } else {
            t.is = token_text::kind::text;
            decode(piece, t);
        }
    }
    points.shrink_to_fit();
}

static bool class_has(const llama_grammar_element * e, uint32_t c) {
    const bool positive = e->type != LLAMA_GRETYPE_CHAR_NOT;
    bool       found    = false;
    do {
        if (e[1].type == LLAMA_GRETYPE_CHAR_RNG_UPPER) {
            found |= e->value <= c && c <= e[1].value;
            e += 2;
        } else {
            found |= e->type == LLAMA_GRETYPE_CHAR_ANY || e->value == c;
            e += 1;
        }
    } while (e->type == LLAMA_GRETYPE_CHAR_ALT);
    return found == positive;
}

// first_filter tells which tokens may fit by how they begin.
struct first_filter {
    std::vector<const llama_grammar_element *> classes;
    std::vector<uint32_t>                      named; // tokens
    bool                                       any_token = false, may_end = false;
    std::bitset<128>                           ascii;

    explicit first_filter(const llama_grammar_stacks & stacks) {
        for (const auto & s : stacks) {
            if (s.empty()) {
                may_end = true;
            } else if (s.back()->type == LLAMA_GRETYPE_TOKEN) {
                named.push_back(s.back()->value);
            } else if (s.back()->type == LLAMA_GRETYPE_TOKEN_NOT) {
                any_token = true;
            } else if (std::find(classes.begin(), classes.end(), s.back()) == classes.end()) {
                classes.push_back(s.back());
            }
        }
        for (uint32_t c = 0; c < 128; c++) {
            ascii[c] = has(c);
        }
    }

    bool has(uint32_t c) const {
        return std::any_of(classes.begin(), classes.end(), [&](auto * e) { return class_has(e, c); });
    }

    bool may(int32_t id, uint32_t first) const {
        return any_token || first == 0 || (first < 128 ? ascii[first] : has(first)) ||
               std::find(named.begin(), named.end(), (uint32_t) id) != named.end();
    }
};

void grammar::all_allowed(std::vector<int32_t> & out) {
    if (dead) {
        throw failure(QUERN_FAILED, "the grammar has failed before");
    }
    std::call_once(m.text_once, [&] { m.text = std::make_shared<vocab_text>(m); });
    const vocab_text & v = *m.text;

    const first_filter filter(g->stacks);
    out.clear();
    if (filter.may_end && place.need == 0) {
        out = v.ends;
    }
    if (place.need != 0) {
        std::vector<candidate> c;
        for (int32_t id : v.middles) {
            c.push_back({id, 0});
        }
        mask(c.data(), c.size());
        for (const auto & x : c) {
            if (x.logit == 0) {
                out.push_back(x.id);
            }
        }
        return;
    }
    llama_grammar_candidates all;
    for (int32_t id = 0; id < m.n_vocab; id++) {
        const token_text & t = v.tokens[id];
        if (t.is == token_text::kind::text && filter.may(id, v.points[t.at])) {
            all.push_back({all.size(), &v.points[t.at], t.tail, id});
        }
    }
    std::vector<char>        refused(all.size(), 0);
    llama_grammar_candidates left = all;
    for (const auto & stack : g->stacks) {
        left = llama_grammar_reject_candidates_for_stack(g->rules, stack, left);
    }
    for (const auto & r : left) {
        refused[r.index] = 1;
    }
    for (size_t i = 0; i < all.size(); i++) {
        if (!refused[i] && (!v.tokens[all[i].id].control || spelled_out(all[i].id))) {
            out.push_back(all[i].id);
        }
    }
}

} // namespace quern
