package cgo

// #include "shim.h"
import "C"

// WeightCopy is how many bytes a weight takes beside the mapped file, packed for
// the kernels of this CPU; 0 if products read it as the file has it. typ is
// ggml's number, experts is how many of the third dimension a token uses, or 0.
func WeightCopy(typ uint32, dims []uint64, experts int) int64 {
	ne := [4]C.int64_t{1, 1, 1, 1}
	if len(dims) > len(ne) {
		return 0
	}
	for i, d := range dims {
		ne[i] = C.int64_t(d)
	}
	return int64(C.quern_weight_copy(C.int32_t(typ), &ne[0], C.int32_t(experts)))
}
