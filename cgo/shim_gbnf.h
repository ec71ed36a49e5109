// Rules of a grammar that are safe to run.
#pragma once

#include "shim_impl.h"

#include "llama-grammar.h"

namespace quern {

struct grammar_rules {
    llama_grammar_rules rules;
    size_t              root           = 0;
    size_t              nullable_depth = 1; // recursion a nullable rule can cause
};

grammar_rules parse_grammar(const llama_vocab * vocab, const char * text);

} // namespace quern
