// Package gbnf reads grammars in llama.cpp's GBNF dialect and runs them over
// text the way llama.cpp's sampler does: by sets of pushdown stacks.
//
// llama.cpp itself constrains the sampling. This package lets those that
// write grammars (models/schema, models/toolcall) prove in their tests,
// without a model, what a grammar accepts, what it can derive and what it
// costs; models/schema also asks it whether a recursive schema ever ends. A
// Grammar is read-only once parsed; a Matcher belongs to one goroutine.
package gbnf
