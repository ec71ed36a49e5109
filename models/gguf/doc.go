// Package gguf reads and writes the header of a GGUF model file: its
// metadata and the list of its tensors, never the weights.
//
// The bytes are foreign. Nothing is allocated because of a count that the
// file claims, only for bytes that were really there; long arrays (the
// vocabulary) stay in the file as a position and a length. Errors name the
// place and the value that is wrong.
//
// A File is plain data once read: it holds no file handle and may be used
// from any goroutine. The Writer serves tests and the scripted test model.
package gguf
