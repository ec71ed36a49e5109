//go:build llamacpp

package cgo

// engine_current.sh has built a llama.cpp of its own tree, and laid the folder
// current: a link to the tree, and its libraries.

// #cgo CPPFLAGS: -I${SRCDIR}/current/llama.cpp/include -I${SRCDIR}/current/llama.cpp/src
// #cgo CPPFLAGS: -I${SRCDIR}/current/llama.cpp/ggml/include -I${SRCDIR}/current/llama.cpp/ggml/src
// #cgo CPPFLAGS: -I${SRCDIR}/current/llama.cpp/ggml/src/ggml-cpu
// #cgo CPPFLAGS: -DNDEBUG -DQUERN_ENGINE_CURRENT
// #cgo CXXFLAGS: -std=c++17
// #cgo LDFLAGS: -L${SRCDIR}/current/lib -lllama -lggml -lggml-cpu -lggml-base
// #cgo linux LDFLAGS: -lpthread -lm -ldl
// #include "engine_build.h"
// #include "ggml.h"
import "C"

// Engine names the llama.cpp that is linked in: one built by cmake.
const Engine = "current"

// EngineBuild is its commit, "unknown" if its tree does not tell, and the
// version of its ggml.
func EngineBuild() string {
	return C.QUERN_ENGINE_COMMIT + " (ggml " + C.GoString(C.ggml_version()) + ")"
}
