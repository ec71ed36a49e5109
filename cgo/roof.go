package cgo

// #include "roof.h"
import "C"

import (
	"errors"
	"fmt"
)

// Roof is how fast a machine can be, whatever runs on it: decoding can't beat
// memory, prefill can't beat arithmetic.
type Roof struct {
	ReadBytes     float64 // read from memory, a second
	FloatProducts float64 // f32 multiply-adds a second
	Int8Products  float64 // int8 multiply-adds a second; 0: no instruction for them
}

// MeasureRoof takes about two seconds and half a GiB, on so many threads at once.
func MeasureRoof(threads int) (Roof, error) {
	if threads < 1 || threads > 1024 {
		return Roof{}, fmt.Errorf("%d threads, want 1 to 1024: %w", threads, ErrArgument)
	}
	var r C.quern_roof
	if C.quern_measure_roof(C.int(threads), &r) != 0 {
		return Roof{}, errors.New("no memory or no thread to measure the machine with")
	}
	return Roof{float64(r.read_bytes), float64(r.float_products), float64(r.int8_products)}, nil
}
