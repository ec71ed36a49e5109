package cgo

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"strings"
)

// CheckCPU compares what the C code was compiled for with the CPU it runs on.
// A program that lacks a feature has already said so and ended before main
// (see shim_cpu.c), so this is for reports and tests.
func CheckCPU() error {
	var buf [512]C.char
	C.quern_cpu_missing(&buf[0], C.size_t(len(buf)))
	if missing := C.GoString(&buf[0]); missing != "" {
		return fmt.Errorf("compiled for a CPU with %s: %w", missing, errors.ErrUnsupported)
	}
	return nil
}

// CPUFeatures are the features that the C code was compiled for.
func CPUFeatures() []string {
	var buf [512]C.char
	C.quern_cpu_built_for(&buf[0], C.size_t(len(buf)))
	return strings.Fields(C.GoString(&buf[0]))
}

// AMX tells whether matrix tiles are used: "on", "off" (compiled in, but they
// do not work here) or "none" (not compiled in).
func AMX() string {
	switch C.quern_amx() {
	case 1:
		return "on"
	case 0:
		return "off"
	}
	return "none"
}
