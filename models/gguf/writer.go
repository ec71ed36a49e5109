package gguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
)

// Writer builds a GGUF v3 file in memory: small models for tests. Keys and
// tensors are written in the order they were added.
type Writer struct {
	kv      bytes.Buffer
	kvs     uint64
	tensors []Tensor
	data    [][]float32
}

func (w *Writer) u32(v uint32) { w.kv.Write(binary.LittleEndian.AppendUint32(nil, v)) }
func (w *Writer) u64(v uint64) { w.kv.Write(binary.LittleEndian.AppendUint64(nil, v)) }
func (w *Writer) str(s string) { w.u64(uint64(len(s))); w.kv.WriteString(s) }

func (w *Writer) key(k string, t ValueType) {
	w.kvs++
	w.str(k)
	w.u32(uint32(t))
}

func (w *Writer) arrayKey(k string, t ValueType, n int) {
	w.key(k, ArrayOf)
	w.u32(uint32(t))
	w.u64(uint64(n))
}

// Text adds a string entry.
func (w *Writer) Text(key, v string) { w.key(key, String); w.str(v) }

// Uint32 adds an unsigned entry.
func (w *Writer) Uint32(key string, v uint32) { w.key(key, Uint32); w.u32(v) }

// Float32 adds a floating-point entry.
func (w *Writer) Float32(key string, v float32) { w.key(key, Float32); w.u32(math.Float32bits(v)) }

// Bool adds a bool entry.
func (w *Writer) Bool(key string, v bool) {
	w.key(key, Bool)
	b := byte(0)
	if v {
		b = 1
	}
	w.kv.WriteByte(b)
}

// Texts adds an array of strings.
func (w *Writer) Texts(key string, vs []string) {
	w.arrayKey(key, String, len(vs))
	for _, v := range vs {
		w.str(v)
	}
}

// Int32s adds an array of signed numbers.
func (w *Writer) Int32s(key string, vs []int32) {
	w.arrayKey(key, Int32, len(vs))
	for _, v := range vs {
		w.u32(uint32(v))
	}
}

// Tensor adds an F32 tensor; dims come fastest first, and data holds their
// product of values. data is not copied.
func (w *Writer) Tensor(name string, data []float32, dims ...uint64) {
	w.tensors = append(w.tensors, Tensor{Name: name, Type: TensorF32, Dims: dims})
	w.data = append(w.data, data)
}

// WriteTo writes the file.
func (w *Writer) WriteTo(out io.Writer) (int64, error) {
	var b bytes.Buffer
	b.WriteString(magic)
	b.Write(binary.LittleEndian.AppendUint32(nil, 3))
	b.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(w.tensors))))
	b.Write(binary.LittleEndian.AppendUint64(nil, w.kvs))
	b.Write(w.kv.Bytes())
	offset := uint64(0)
	for i, t := range w.tensors {
		if n := t.Elements(); n != uint64(len(w.data[i])) {
			return 0, fmt.Errorf("tensor %q: %d values given for %v", t.Name, len(w.data[i]), t.Dims)
		}
		b.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(t.Name))))
		b.WriteString(t.Name)
		b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(t.Dims))))
		for _, d := range t.Dims {
			b.Write(binary.LittleEndian.AppendUint64(nil, d))
		}
		b.Write(binary.LittleEndian.AppendUint32(nil, uint32(t.Type)))
		b.Write(binary.LittleEndian.AppendUint64(nil, offset))
		offset += pad(uint64(len(w.data[i])) * 4)
	}
	b.Write(make([]byte, pad(uint64(b.Len()))-uint64(b.Len())))
	for _, data := range w.data {
		for _, v := range data {
			b.Write(binary.LittleEndian.AppendUint32(b.AvailableBuffer(), math.Float32bits(v)))
		}
		n := uint64(len(data)) * 4
		b.Write(make([]byte, pad(n)-n))
	}
	return b.WriteTo(out)
}

// WriteFile writes the file at path, whole or not at all.
func (w *Writer) WriteFile(path string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".gguf-*")
	if err != nil {
		return fmt.Errorf("write model: %w", err)
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // gone after the rename
	_, err = w.WriteTo(tmp)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write model: %w", err)
	}
	return nil
}

func pad(n uint64) uint64 { return (n + defaultAlignment - 1) / defaultAlignment * defaultAlignment }
