package cgo

// #include "kernel_attention_check.h"
import "C"

import "unsafe"

// attentionShape sizes one attention, for tests of the kernel.
type attentionShape struct{ dim, heads, headsKV, rows, cells, threads int }

// attention computes q [heads][rows][dim] over k and v [headsKV][cells][dim], of
// which a row sees the visible cells [rows][cells]; out is [rows][heads][dim].
func attention(s attentionShape, q, k, v []float32, visible []uint8) ([]float32, error) {
	out := make([]float32, s.rows*s.heads*s.dim)
	shape := C.quern_attention_shape{
		dim: C.int64_t(s.dim), heads: C.int64_t(s.heads), heads_kv: C.int64_t(s.headsKV),
		rows: C.int64_t(s.rows), cells: C.int64_t(s.cells), threads: C.int(s.threads),
	}
	var cerr C.quern_error
	code := C.quern_attention(&shape, (*C.float)(unsafe.SliceData(q)), (*C.float)(unsafe.SliceData(k)),
		(*C.float)(unsafe.SliceData(v)), (*C.uint8_t)(unsafe.SliceData(visible)), (*C.float)(unsafe.SliceData(out)), &cerr)
	return out, errorOf(code, &cerr)
}
