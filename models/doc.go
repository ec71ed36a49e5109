// Package models is what is known about a model file before its weights are
// loaded: its header, how its chat template is rendered, how it writes tool
// calls and thoughts, and how it likes to be sampled. All of it comes from the
// GGUF file and from tables keyed by what stands there, so a new model needs no
// new release.
//
// A Card is made once per file and not changed afterwards; any goroutine may
// read it. Nothing here touches weights, a KV cache or C.
package models
