package cgo

// #include "shim.h"
import "C"

import (
	"fmt"
	"math"
)

func checkRange(p0, p1 int) error {
	if p0 < 0 || p1 < p0 || p1 > math.MaxInt32 {
		return fmt.Errorf("positions [%d,%d) are not a range: %w", p0, p1, ErrArgument)
	}
	return nil
}

// Partial tells whether a sequence can be cut back: models with a recurrent
// state can't, a sliding window only as far as it reaches.
func (c *Context) Partial() bool { return c.c != nil && bool(C.quern_partial(c.c)) }

// CanShift tells whether SeqShift works for this model.
func (c *Context) CanShift() bool { return c.c != nil && bool(C.quern_can_shift(c.c)) }

// SeqCopy gives the empty sequence dst the positions [p0,p1) of src. In a
// unified context they share the cells, and dst may also hold positions that end
// at p0; otherwise the data is copied.
func (c *Context) SeqCopy(src, dst int32, p0, p1 int) error {
	if c.c == nil {
		return ErrClosed
	}
	if err := checkRange(p0, p1); err != nil {
		return err
	}
	return c.errorOf(C.quern_seq_copy(c.c, C.int32_t(src), C.int32_t(dst), C.int32_t(p0), C.int32_t(p1)))
}

// SeqRemove takes the positions [p0,p1) out of a sequence.
func (c *Context) SeqRemove(seq int32, p0, p1 int) error {
	if c.c == nil {
		return ErrClosed
	}
	if err := checkRange(p0, p1); err != nil {
		return err
	}
	return c.errorOf(C.quern_seq_remove(c.c, C.int32_t(seq), C.int32_t(p0), C.int32_t(p1)))
}

// SeqShift moves the positions [p0,p1) of a sequence by delta. Positions that
// it moves onto must have been removed; the sequence must not share cells.
func (c *Context) SeqShift(seq int32, p0, p1, delta int) error {
	if c.c == nil {
		return ErrClosed
	}
	if err := checkRange(p0, p1); err != nil {
		return err
	}
	if delta < math.MinInt32 || delta > math.MaxInt32 {
		return fmt.Errorf("shift by %d: %w", delta, ErrArgument)
	}
	return c.errorOf(C.quern_seq_shift(c.c, C.int32_t(seq), C.int32_t(p0), C.int32_t(p1), C.int32_t(delta)))
}

// SeqPosMax is the last position of a sequence, -1 if it is empty.
func (c *Context) SeqPosMax(seq int32) int {
	if c.c == nil {
		return -1
	}
	return int(C.quern_seq_pos_max(c.c, C.int32_t(seq)))
}

// SeqPosMin is the first position that is still there, -1 if none is.
func (c *Context) SeqPosMin(seq int32) int {
	if c.c == nil {
		return -1
	}
	return int(C.quern_seq_pos_min(c.c, C.int32_t(seq)))
}

// Clear empties all sequences.
func (c *Context) Clear() {
	if c.c != nil {
		C.quern_memory_clear(c.c)
	}
}
