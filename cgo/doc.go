// Package cgo is everything that touches C. It links llama.cpp into the process
// and gives Go a small face of it: load a model, tokenize, decode and sample,
// move the memory of sequences. It knows no requests, no text formats and no
// scheduling; nothing else in this module imports "C".
//
// # Who owns what
//
//	Model    read-only after LoadModel: any goroutine. It lives until the last
//	         context and sampler of it are closed, whoever closes first.
//	Vocab    a table in Go memory; Tokenize may run on any number of goroutines.
//	Context  one goroutine, locked to its thread (GPU backends keep state per
//	         thread). Only Abort may be called from elsewhere.
//	Batch    belongs to its context: flat slices in C memory.
//	Sampler  made anywhere, then used by the goroutine of the context.
//
// # One step
//
// The caller fills rows of the batch (token, position, sequence, what is wanted,
// sampler) and calls Step: one call into C that checks the rows, decodes them
// and samples each row that wants a token. Logits never reach Go. A step without
// log probabilities allocates nothing. When a step fails, the sequences of its
// batch are back where they were, and the others are untouched.
//
// # Files
//
//	engine_module.go    how llama.cpp and ggml get into the program: those of
//	                    the Go module, or with the build tag llamacpp others
//	                    (engine_current.go); the header of the same name holds
//	                    what differs in their C++
//	shim.h              the C face; the files behind it, shim*.cpp, check every
//	                    argument and catch every exception
//	shim_context.cpp    contexts and the step
//	shim_memory.cpp     copy, remove, shift, save and restore sequences
//	shim_sampler.cpp    sampling; shim_select.cpp has its passes over a row
//	shim_grammar.cpp    grammars; shim_gbnf.cpp refuses those that would harm,
//	                    shim_mask.cpp finds all tokens that fit
//	shim_model.cpp      models and vocabularies; check.go reads a file's header
//	                    before llama.cpp maps it
//	shim_cpu.c          the CPU against what the program was compiled for
//	shim_amx*.cpp       ggml's AMX backend, which the module leaves out
//	kernel*.cpp         matrix products for AVX512-VNNI
//	team.cpp            how compute threads wait for each other
//
// # What llama.cpp must not be given
//
// A failed GGML_ASSERT ends the process. While a model is loaded, a context made
// or a row sampled, one thread runs, and the assertion becomes an error there;
// inside a computation nothing can be caught, so sizes, positions and metadata
// are checked before. Known traps, each with a test: positions of a saved
// sequence are trusted; a copy between streams must be whole; a tokenizer's
// regular expression recurses for every character of a word; an end-of-text
// token, a nullable rule or a nested repetition kills or hangs a grammar; shared
// cells move for all their sequences when one is shifted.
package cgo
