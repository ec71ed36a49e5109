package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Bounds of a header. The largest known (a vocabulary of 262,144 pieces with
// scores, types and merges) is about 20 MB.
const (
	maxHeaderBytes = 1 << 28
	maxStringBytes = 1 << 24
	maxNameBytes   = 1 << 16
	maxDims        = 4
	// An array of at most this many elements and bytes is decoded, as long as
	// the file as a whole stays below keepTotal elements.
	keepItems = 1 << 12
	keepBytes = 1 << 16
	keepTotal = 1 << 18
)

var errTruncated = errors.New("the file ends inside the header")

// cursor reads the header in order and knows where it is.
type cursor struct {
	r      *bufio.Reader
	pos    int64
	end    int64 // no read goes past it: the file's size, or the header's bound
	capped bool  // end is the bound
	kept   uint64
	buf    [8]byte
}

func newCursor(r io.ReaderAt, from, size int64) *cursor {
	end := min(size, from+maxHeaderBytes)
	return &cursor{
		r:   bufio.NewReaderSize(io.NewSectionReader(r, from, end-from), 1<<16),
		pos: from, end: end, capped: end < size,
	}
}

// need checks that n more bytes can exist before any is read or allocated.
func (c *cursor) need(n uint64) error {
	if n <= uint64(c.end-c.pos) {
		return nil
	}
	if c.capped {
		return fmt.Errorf("header is longer than %d bytes", int64(maxHeaderBytes))
	}
	return fmt.Errorf("%w: %d more bytes wanted at offset %d of %d", errTruncated, n, c.pos, c.end)
}

func (c *cursor) bytes(n int) ([]byte, error) {
	if err := c.need(uint64(n)); err != nil {
		return nil, err
	}
	b := c.buf[:n]
	if _, err := io.ReadFull(c.r, b); err != nil {
		return nil, fmt.Errorf("read at offset %d: %w", c.pos, err)
	}
	c.pos += int64(n)
	return b, nil
}

func (c *cursor) u32() (uint32, error) {
	b, err := c.bytes(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (c *cursor) u64() (uint64, error) {
	b, err := c.bytes(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

func (c *cursor) string(limit uint64) (string, error) {
	at := c.pos
	n, err := c.u64()
	if err != nil {
		return "", err
	}
	if n > limit {
		return "", fmt.Errorf("string of %d bytes at offset %d, the limit is %d", n, at, limit)
	}
	if err := c.need(n); err != nil {
		return "", err
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(c.r, b); err != nil {
		return "", fmt.Errorf("read string at offset %d: %w", at, err)
	}
	c.pos += int64(n)
	return string(b), nil
}

func (c *cursor) skip(n uint64) error {
	if err := c.need(n); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, c.r, int64(n)); err != nil {
		return fmt.Errorf("read at offset %d: %w", c.pos, err)
	}
	c.pos += int64(n)
	return nil
}

// scalar reads one value that is neither string nor array. Integers are
// widened with their sign.
func (c *cursor) scalar(t ValueType) (Value, error) {
	b, err := c.bytes(valueTypes[t].size)
	if err != nil {
		return Value{}, err
	}
	v := Value{Type: t}
	switch t {
	case Uint8, Bool:
		v.bits = uint64(b[0])
	case Int8:
		v.bits = uint64(int64(int8(b[0])))
	case Uint16:
		v.bits = uint64(binary.LittleEndian.Uint16(b))
	case Int16:
		v.bits = uint64(int64(int16(binary.LittleEndian.Uint16(b))))
	case Uint32, Float32:
		v.bits = uint64(binary.LittleEndian.Uint32(b))
	case Int32:
		v.bits = uint64(int64(int32(binary.LittleEndian.Uint32(b))))
	default:
		v.bits = binary.LittleEndian.Uint64(b)
	}
	return v, nil
}

func (c *cursor) value(t ValueType) (Value, error) {
	switch {
	case !t.valid():
		return Value{}, fmt.Errorf("unknown value %s", t)
	case t == String:
		s, err := c.string(maxStringBytes)
		return Value{Type: String, text: s}, err
	case t == ArrayOf:
		a, err := c.array()
		return Value{Type: ArrayOf, arr: a}, err
	}
	return c.scalar(t)
}

func (c *cursor) array() (*Array, error) {
	t, err := c.u32()
	if err != nil {
		return nil, err
	}
	n, err := c.u64()
	if err != nil {
		return nil, err
	}
	a := &Array{Type: ValueType(t), Len: n, Offset: c.pos}
	if !a.Type.valid() || a.Type == ArrayOf {
		return nil, fmt.Errorf("array of unsupported element %s", a.Type)
	}
	// Each element takes at least this many bytes, so n is bounded by the file.
	least := uint64(max(valueTypes[a.Type].size, 1))
	if a.Type == String {
		least = 8
	}
	if n > uint64(c.end-c.pos)/least {
		return nil, fmt.Errorf("array of %d × %s does not fit into the %d bytes that are left", n, a.Type, c.end-c.pos)
	}
	if n <= keepItems && c.kept+n <= keepTotal {
		c.kept += n
		err = c.keep(a)
	} else {
		err = c.pass(a)
	}
	a.Bytes = c.pos - a.Offset
	return a, err
}

// keep decodes the items, and lets them go again where they prove large.
func (c *cursor) keep(a *Array) error {
	for range a.Len {
		v, err := c.value(a.Type)
		if err != nil {
			return err
		}
		if c.pos-a.Offset <= keepBytes {
			a.Items = append(a.Items, v)
		}
	}
	if c.pos-a.Offset > keepBytes {
		a.Items = nil
	}
	return nil
}

// pass goes over the items without keeping any.
func (c *cursor) pass(a *Array) error {
	if a.Type != String {
		return c.skip(a.Len * uint64(valueTypes[a.Type].size))
	}
	for range a.Len {
		n, err := c.u64()
		if err != nil {
			return err
		}
		if err := c.skip(n); err != nil {
			return err
		}
	}
	return nil
}
