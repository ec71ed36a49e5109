package cgo

// #include "kernel_product.h"
// #include <stdlib.h>
import "C"

import (
	"runtime"
	"unsafe"
)

// weightPlace says how a product's weights lie in memory, and so whose kernels
// multiply them.
type weightPlace int

const (
	weightsPlain    weightPlace = C.QUERN_WEIGHTS_PLAIN    // as a file has them
	weightsKernels  weightPlace = C.QUERN_WEIGHTS_KERNELS  // packed for this package's kernels
	weightsRepacked weightPlace = C.QUERN_WEIGHTS_REPACKED // packed for ggml's
)

// product is one matrix product through a ggml graph, for tests and
// benchmarks of the kernels.
type product struct {
	p                *C.quern_product
	k, rows, columns int
}

func newProduct(typ string, k, rows, columns, threads int, where weightPlace, weights []float32) (*product, error) {
	ctype := C.CString(typ)
	defer C.free(unsafe.Pointer(ctype))
	p := &product{k: k, rows: rows, columns: columns}
	var cerr C.quern_error
	code := C.quern_product_new(ctype, C.int64_t(k), C.int64_t(rows), C.int64_t(columns), C.int(threads), C.int(where),
		(*C.float)(unsafe.SliceData(weights)), &p.p, &cerr)
	runtime.KeepAlive(weights)
	return p, errorOf(code, &cerr)
}

func (p *product) close() { C.quern_product_free(p.p) }

func (p *product) input(x []float32) { C.quern_product_input(p.p, (*C.float)(unsafe.SliceData(x))) }

func (p *product) run(times int) error {
	return newError(C.quern_product_run(p.p, C.int(times)), "the product failed")
}

func (p *product) output() []float32 {
	y := make([]float32, p.columns*p.rows)
	C.quern_product_output(p.p, (*C.float)(unsafe.SliceData(y)))
	return y
}

// weights are the quantised weights.
func (p *product) weights() []float32 {
	w := make([]float32, p.rows*p.k)
	C.quern_product_weights(p.p, (*C.float)(unsafe.SliceData(w)))
	return w
}

func (p *product) weightBytes() int { return int(C.quern_product_weight_bytes(p.p)) }
