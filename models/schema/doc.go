// Package schema turns JSON Schemas into grammars (GBNF) that a sampler can
// hold a model to, and checks values against schemas.
//
// A schema is decoded with its order kept, flattened (references, allOf,
// anyOf, oneOf) into alternatives without combinators, and each alternative
// becomes rules. Object properties come in the order of the schema. Patterns,
// formats and numeric bounds go through one small automaton, so that they can
// be intersected and cost the sampler one stack.
//
// What a grammar cannot say is widened, never guessed: Compiled.Relaxed lists
// it, and with Options.Strict it is an *Error. Schemas come from clients: all
// work is bounded, and a schema beyond a bound is an *Error as well.
//
// models/toolcall is the caller, on request goroutines. Everything is safe for
// concurrent use; a Compiled is read-only.
package schema
