// Package enginetest has a Backend that computes nothing and checks everything:
// a test double for the engine and for whatever is built on it.
//
// Tokens are a pure function of the tokens before them, so a sequence that runs
// beside others, is preempted or reuses somebody's prefix must end up with the
// same tokens as one that runs alone. Cells are kept as llama.cpp's unified KV
// cache does: each has a position and a set of sequences, and is free when the
// set is empty. Every call is checked; misuse fails the test.
package enginetest
