package gguf

import (
	"fmt"
	"math"
	"math/bits"
)

// Tensor describes one tensor: what and where, not its data.
type Tensor struct {
	Name   string
	Type   TensorType
	Dims   []uint64 // fastest first, as ggml counts them
	Offset int64    // from DataOffset
}

// Elements is the number of values in the tensor.
func (t Tensor) Elements() uint64 {
	n := uint64(1)
	for _, d := range t.Dims {
		n *= d // readTensor has checked that this fits
	}
	return n
}

// Bytes is the size of the tensor's data; false where the type is unknown.
func (t Tensor) Bytes() (int64, bool) {
	d, ok := tensorTypes[t.Type]
	if !ok {
		return 0, false
	}
	hi, n := bits.Mul64(t.Elements()/d.block, d.bytes)
	if hi != 0 || n > math.MaxInt64 {
		return math.MaxInt64, true
	}
	return int64(n), true
}

func (f *File) readTensors(c *cursor, n uint64) error {
	seen := map[string]bool{}
	for i := range n {
		at := c.pos
		t, err := readTensor(c)
		if err != nil {
			return fmt.Errorf("tensor %d of %d at offset %d: %w", i+1, n, at, err)
		}
		if seen[t.Name] {
			return fmt.Errorf("tensor %q at offset %d occurs twice", t.Name, at)
		}
		seen[t.Name] = true
		f.Tensors = append(f.Tensors, t)
	}
	return nil
}

func readTensor(c *cursor) (Tensor, error) {
	var t Tensor
	var err error
	if t.Name, err = c.string(maxNameBytes); err != nil {
		return t, fmt.Errorf("name: %w", err)
	}
	dims, err := c.u32()
	if err != nil {
		return t, fmt.Errorf("%q: %w", t.Name, err)
	}
	if dims > maxDims {
		return t, fmt.Errorf("%q has %d dimensions, the limit is %d", t.Name, dims, maxDims)
	}
	elements := uint64(1)
	for range dims {
		d, err := c.u64()
		if err != nil {
			return t, fmt.Errorf("%q: %w", t.Name, err)
		}
		hi, lo := bits.Mul64(elements, d)
		if hi != 0 || lo > math.MaxInt64 {
			return t, fmt.Errorf("%q: its dimensions overflow", t.Name)
		}
		elements = lo
		t.Dims = append(t.Dims, d)
	}
	kind, err := c.u32()
	if err != nil {
		return t, fmt.Errorf("%q: %w", t.Name, err)
	}
	t.Type = TensorType(kind)
	if d, ok := tensorTypes[t.Type]; ok && len(t.Dims) > 0 && t.Dims[0]%d.block != 0 {
		return t, fmt.Errorf("%q: rows of %d values are not whole %s blocks of %d", t.Name, t.Dims[0], t.Type, d.block)
	}
	off, err := c.u64()
	if err != nil {
		return t, fmt.Errorf("%q: %w", t.Name, err)
	}
	if off > math.MaxInt64 {
		return t, fmt.Errorf("%q: data offset %d is out of range", t.Name, off)
	}
	t.Offset = int64(off)
	return t, nil
}

// CheckTensors reports the first tensor whose data is misplaced or lies
// outside the file: a download that was cut, most often.
func (f *File) CheckTensors() error {
	for _, t := range f.Tensors {
		if t.Offset%f.Alignment != 0 {
			return fmt.Errorf("tensor %q begins at %d, not at a multiple of %d", t.Name, t.Offset, f.Alignment)
		}
		n, known := t.Bytes()
		if !known {
			return fmt.Errorf("tensor %q is of unknown %s", t.Name, t.Type)
		}
		if t.Offset > f.Size || n > f.Size-f.DataOffset-t.Offset {
			return fmt.Errorf("file is truncated: tensor %q needs %d bytes at offset %d, the file is %d bytes long",
				t.Name, n, uint64(f.DataOffset)+uint64(t.Offset), f.Size)
		}
	}
	return nil
}
