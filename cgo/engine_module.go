//go:build !llamacpp

package cgo

// The blank imports compile llama.cpp and ggml out of the module cache; the
// links llama.cpp and ggml in this folder (laid by make deps) lead to their
// headers.

// #cgo CPPFLAGS: -I${SRCDIR}/llama.cpp/include -I${SRCDIR}/llama.cpp/src
// #cgo CPPFLAGS: -I${SRCDIR}/ggml/include -I${SRCDIR}/ggml/src -I${SRCDIR}/ggml/src/ggml-cpu
// #cgo CPPFLAGS: -DNDEBUG
// #cgo CXXFLAGS: -std=c++17
// #cgo linux LDFLAGS: -lpthread -lm -ldl
import "C"

import (
	_ "github.com/ollama/ollama/llama/llama.cpp/src"
	_ "github.com/ollama/ollama/ml/backend/ggml/ggml/src"
)

// Engine names the llama.cpp that is linked in: that of the Go module.
const Engine = "module"

// EngineBuild is empty: the module's version says it all.
func EngineBuild() string { return "" }
