package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

const (
	magic            = "GGUF"
	defaultAlignment = 32
	maxKVs           = 1 << 16
	maxTensors       = 1 << 18
)

// File is the header of a model file.
type File struct {
	Version    uint32
	KV         []KV
	Tensors    []Tensor
	Alignment  int64
	DataOffset int64 // where tensor data begins
	Size       int64 // of the whole file

	index  map[string]int
	pieces map[int64]string // vocabulary text of the special tokens
}

// Open reads the header of the file at path.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open model: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open model: %w", err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("open model: %s is not a regular file", path)
	}
	file, err := Read(f, st.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

// Read reads a header from r, which holds size bytes. It does not check that
// the tensors lie inside: CheckTensors does.
func Read(r io.ReaderAt, size int64) (*File, error) {
	if err := checkMagic(r, size); err != nil {
		return nil, err
	}
	f := &File{Size: size, Alignment: defaultAlignment, index: map[string]int{}}
	c := newCursor(r, int64(len(magic)), size)
	tensors, kvs, err := f.readCounts(c)
	if err != nil {
		return nil, err
	}
	if err := f.readKVs(c, kvs); err != nil {
		return nil, err
	}
	if err := f.setAlignment(); err != nil {
		return nil, err
	}
	if err := f.readTensors(c, tensors); err != nil {
		return nil, err
	}
	f.DataOffset = (c.pos + f.Alignment - 1) / f.Alignment * f.Alignment
	if err := f.readPieces(r); err != nil {
		return nil, err
	}
	return f, nil
}

func checkMagic(r io.ReaderAt, size int64) error {
	var head [64]byte
	n, err := r.ReadAt(head[:min(size, int64(len(head)))], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the first bytes: %w", err)
	}
	text := string(head[:n])
	switch {
	case strings.HasPrefix(text, magic):
		return nil
	case n < len(magic):
		return fmt.Errorf("not a GGUF file: only %d bytes long", size)
	case strings.HasPrefix(text, "version https://git-lfs"):
		return errors.New("not a GGUF file but a Git LFS pointer: the model itself was not fetched")
	case strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), "<!doctype html"), strings.HasPrefix(text, "<html"):
		return errors.New("not a GGUF file but an HTML page: the download went wrong")
	case strings.HasPrefix(text, "lmgg"), strings.HasPrefix(text, "tjgg"), strings.HasPrefix(text, "fmgg"):
		return errors.New("not a GGUF file but an older ggml format that needs converting")
	case strings.HasPrefix(text, "PK\x03\x04"):
		return errors.New("not a GGUF file but a zip archive (a PyTorch checkpoint?)")
	}
	return fmt.Errorf("not a GGUF file: it begins with %q, not with %q", text[:len(magic)], magic)
}

func (f *File) readCounts(c *cursor) (tensors, kvs uint64, err error) {
	if f.Version, err = c.u32(); err != nil {
		return 0, 0, fmt.Errorf("version: %w", err)
	}
	switch {
	case f.Version == 2 || f.Version == 3:
	case f.Version > 0 && f.Version&0xffff == 0:
		return 0, 0, errors.New("the file is big endian, only little endian is supported")
	default:
		return 0, 0, fmt.Errorf("GGUF version %d is not supported, only 2 and 3", f.Version)
	}
	if tensors, err = c.u64(); err != nil {
		return 0, 0, fmt.Errorf("tensor count: %w", err)
	}
	if kvs, err = c.u64(); err != nil {
		return 0, 0, fmt.Errorf("metadata count: %w", err)
	}
	if tensors > maxTensors {
		return 0, 0, fmt.Errorf("%d tensors claimed, the limit is %d", tensors, maxTensors)
	}
	if kvs > maxKVs {
		return 0, 0, fmt.Errorf("%d metadata entries claimed, the limit is %d", kvs, maxKVs)
	}
	return tensors, kvs, nil
}

func (f *File) readKVs(c *cursor, n uint64) error {
	for i := range n {
		at := c.pos
		key, err := c.string(maxNameBytes)
		if err != nil {
			return fmt.Errorf("key of metadata entry %d of %d: %w", i+1, n, err)
		}
		if _, twice := f.index[key]; twice {
			return fmt.Errorf("metadata key %q at offset %d occurs twice", key, at)
		}
		t, err := c.u32()
		if err != nil {
			return fmt.Errorf("type of %q: %w", key, err)
		}
		v, err := c.value(ValueType(t))
		if err != nil {
			return fmt.Errorf("value of %q at offset %d: %w", key, at, err)
		}
		f.index[key] = len(f.KV)
		f.KV = append(f.KV, KV{key, v})
	}
	return nil
}

func (f *File) setAlignment() error {
	v, ok := f.Get("general.alignment")
	if !ok {
		return nil
	}
	n, ok := v.Int()
	if !ok || n <= 0 || n > math.MaxInt32 || n&(n-1) != 0 {
		return fmt.Errorf("general.alignment is %s, wanted a power of two", v)
	}
	f.Alignment = n
	return nil
}

// Get returns a metadata value by key.
func (f *File) Get(key string) (Value, bool) {
	i, ok := f.index[key]
	if !ok {
		return Value{}, false
	}
	return f.KV[i].Value, true
}

// readPieces looks the texts of the special tokens up in the vocabulary,
// which is not kept.
func (f *File) readPieces(r io.ReaderAt) error {
	v, _ := f.Get("tokenizer.ggml.tokens")
	a, ok := v.Array()
	if !ok || a.Type != String {
		return nil
	}
	want := map[int64]bool{}
	last := int64(-1)
	for _, s := range f.specialIDs() {
		if s.ID >= 0 && uint64(s.ID) < a.Len {
			want[s.ID] = true
			last = max(last, s.ID)
		}
	}
	f.pieces = make(map[int64]string, len(want))
	c := newCursor(r, a.Offset, a.Offset+a.Bytes)
	for i := range last + 1 {
		if want[i] {
			s, err := c.string(maxStringBytes)
			if err != nil {
				return fmt.Errorf("token %d: %w", i, err)
			}
			f.pieces[i] = s
			continue
		}
		b, err := c.bytes(8)
		if err == nil {
			err = c.skip(binary.LittleEndian.Uint64(b))
		}
		if err != nil {
			return fmt.Errorf("token %d: %w", i, err)
		}
	}
	return nil
}
