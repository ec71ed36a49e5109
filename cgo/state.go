package cgo

// #include "shim.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// SeqState saves a sequence: only a context of the same model, KV type and
// mode can restore it.
func (c *Context) SeqState(seq int32) ([]byte, error) {
	if c.c == nil {
		return nil, ErrClosed
	}
	var size, n C.size_t
	if code := C.quern_seq_state_size(c.c, C.int32_t(seq), &size); code != C.QUERN_OK {
		return nil, c.errorOf(code)
	}
	out := make([]byte, int(size))
	if code := C.quern_seq_state_get(c.c, C.int32_t(seq), (*C.uint8_t)(unsafe.SliceData(out)), size, &n); code != C.QUERN_OK {
		return nil, c.errorOf(code)
	}
	return out[:n], nil
}

// SetSeqState replaces a sequence by a saved one. After an error the sequence
// is empty.
func (c *Context) SetSeqState(seq int32, state []byte) error {
	if c.c == nil {
		return ErrClosed
	}
	if len(state) == 0 {
		return fmt.Errorf("empty state: %w", ErrArgument)
	}
	return c.errorOf(C.quern_seq_state_set(c.c, C.int32_t(seq), (*C.uint8_t)(unsafe.SliceData(state)), C.size_t(len(state))))
}
