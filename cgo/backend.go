package cgo

// #include "shim.h"
// #include "llama.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"log/slog"
	"runtime/cgo"
	"strings"
	"sync/atomic"
)

var logger atomic.Pointer[slog.Logger]

// ggml's levels, as the C side counts them.
const (
	ggmlDebug = C.GGML_LOG_LEVEL_DEBUG
	ggmlInfo  = C.GGML_LOG_LEVEL_INFO
	ggmlWarn  = C.GGML_LOG_LEVEL_WARN
	ggmlError = C.GGML_LOG_LEVEL_ERROR
)

func init() {
	C.quern_init() // after ggml's own init, whose log hook this replaces
}

// SetLogger sends the log of llama.cpp and ggml to l: their information lines
// at debug level, warnings and errors as such. Without it slog.Default gets
// the warnings and errors.
func SetLogger(l *slog.Logger) {
	logger.Store(l)
	level := C.int(ggmlWarn)
	if l.Enabled(context.Background(), slog.LevelDebug) {
		level = ggmlDebug
	}
	C.quern_log_level(level)
}

//export quernLog
func quernLog(level C.int, text *C.char) {
	l := logger.Load()
	if l == nil {
		l = slog.Default()
	}
	at := slog.LevelDebug
	switch level {
	case ggmlWarn:
		at = slog.LevelWarn
	case ggmlError:
		at = slog.LevelError
	}
	if ctx := context.Background(); l.Enabled(ctx, at) {
		l.Log(ctx, at, "llama.cpp: "+strings.TrimSpace(C.GoString(text)))
	}
}

// loading is what the progress callback of a load needs.
type loading struct {
	ctx      context.Context
	progress func(fraction float32)
}

//export quernProgress
func quernProgress(handle C.uintptr_t, fraction C.float) C.int {
	l := cgo.Handle(handle).Value().(*loading)
	if l.ctx.Err() != nil {
		return 0
	}
	if l.progress != nil {
		l.progress(float32(fraction))
	}
	return 1
}

// SystemInfo tells which CPU features ggml was compiled for.
func SystemInfo() string { return C.GoString(C.llama_print_system_info()) }
