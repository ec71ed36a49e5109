// Package cgo is everything that touches C: it links llama.cpp into the process
// and gives Go a small, safe face of it.
package cgo
