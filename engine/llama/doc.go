// Package llama joins the engine to llama.cpp: it makes a cgo context look like
// an engine.Backend. It owns the model and the context of one file; Open loads
// both, Close frees them once the engine has stopped.
//
// The rows of a batch are the same memory on both sides, so a step copies only
// samplers and results.
package llama
