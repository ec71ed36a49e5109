package cgo

// #cgo CPPFLAGS: -I${SRCDIR}/llama.cpp/include -I${SRCDIR}/llama.cpp/src -I${SRCDIR}/ggml/include -I${SRCDIR}/ggml/src -I${SRCDIR}/ggml/src/ggml-cpu -DNDEBUG
// #cgo CXXFLAGS: -std=c++17
// #cgo linux LDFLAGS: -lpthread -lm -ldl
// #include "llama.h"
import "C"

import (
	_ "github.com/ollama/ollama/llama/llama.cpp/src"
	_ "github.com/ollama/ollama/ml/backend/ggml/ggml/src"
)

func SystemInfo() string { return C.GoString(C.llama_print_system_info()) }
