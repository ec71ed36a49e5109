package cgo

// #include "ggml.h"
import "C"

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
)

// Bounds of what a header may hold: far above any real model, far below what
// would exhaust memory.
const (
	maxHeader   = 1 << 30
	maxElements = 16 << 20 // of one array
	maxKeys     = 1 << 20
	maxTensors  = 1 << 20
	maxSplits   = 1000
)

var splitName = regexp.MustCompile(`^(.*)-00001-of-(\d{5})\.gguf$`)

// checkFile walks the header of a GGUF file before llama.cpp maps it: a file
// that ends early would be a SIGBUS there, a hostile count an allocation of
// terabytes.
func checkFile(path string) error {
	splits, err := checkOne(path)
	if err != nil || splits <= 1 {
		return err
	}
	name := splitName.FindStringSubmatch(path)
	if name == nil || splits > maxSplits {
		return fmt.Errorf("first of %d parts, but not named NAME-00001-of-%05d.gguf", splits, splits)
	}
	for i := 2; i <= splits; i++ {
		part := fmt.Sprintf("%s-%05d-of-%s.gguf", name[1], i, name[2])
		if _, err := checkOne(part); err != nil {
			return fmt.Errorf("part %d of %d: %w", i, splits, err)
		}
	}
	return nil
}

func checkOne(path string) (splits int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if !st.Mode().IsRegular() {
		return 0, errors.New("not a regular file")
	}
	return checkHeader(f, st.Size())
}

// header reads a GGUF header in order. The first error sticks.
type header struct {
	r     *bufio.Reader
	at    int64
	size  int64
	err   error
	where string // what is being read, for messages
	small [16]byte
}

func checkHeader(r io.Reader, size int64) (splits int, err error) {
	h := &header{r: bufio.NewReaderSize(r, 1<<16), size: size}
	if size == 0 {
		return 0, errors.New("the file is empty")
	}
	if magic := h.bytes(4); string(magic) != "GGUF" {
		return 0, fmt.Errorf("not a GGUF file: it begins with %q", magic)
	}
	h.where = "the header"
	version := h.u32()
	tensors, keys := h.u64(), h.u64()
	switch {
	case h.err != nil:
		return 0, h.err
	case version == 1:
		return 0, errors.New("GGUF version 1 is no longer supported")
	case version&0xffff == 0:
		return 0, errors.New("a big-endian GGUF file")
	case version > 3:
		return 0, fmt.Errorf("GGUF version %d is not supported (2 and 3 are)", version)
	case tensors > maxTensors || int64(tensors) > size/24:
		return 0, fmt.Errorf("corrupt header: %d tensors in a file of %d bytes", tensors, size)
	case keys > maxKeys || int64(keys) > size/13:
		return 0, fmt.Errorf("corrupt header: %d keys in a file of %d bytes", keys, size)
	}
	alignment := int64(32)
	for i := range keys {
		h.where = fmt.Sprintf("key %d of %d", i+1, keys)
		key, n := h.pair()
		switch key {
		case "general.alignment":
			alignment = n
		case "split.count":
			splits = int(min(n, math.MaxInt32))
		}
	}
	if h.err == nil && (alignment <= 0 || alignment > 1<<20 || alignment&(alignment-1) != 0) {
		return 0, fmt.Errorf("corrupt header: alignment %d is not a power of two", alignment)
	}
	return splits, h.tensors(int(tensors), alignment)
}

// pair reads a key and its value; n is the value if it is an integer.
func (h *header) pair() (key string, n int64) {
	key = h.str()
	if key == "" && h.err == nil {
		h.fail("%s has no name", h.where)
	}
	h.where = fmt.Sprintf("key %q", key)
	typ := h.u32()
	if typ != 9 {
		return key, h.value(typ)
	}
	of, count := h.u32(), h.u64()
	width, ok := kvWidth[of]
	switch {
	case h.err != nil:
	case !ok && of != 8:
		h.fail("%s: array of type %d", h.where, of)
	case count > maxElements:
		h.fail("%s: an array of %d elements", h.where, count)
	case int64(count)*max(width, 1) > h.size-h.at:
		h.short()
	case of == 8:
		for i := uint64(0); i < count && h.err == nil; i++ {
			h.skip(h.length())
		}
	default:
		h.skip(int64(count) * width)
	}
	return key, -1
}

// kvWidth is the size of the scalar value types.
var kvWidth = map[uint32]int64{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

func (h *header) value(typ uint32) int64 {
	width, ok := kvWidth[typ]
	switch {
	case h.err != nil:
		return -1
	case typ == 8:
		h.skip(h.length())
		return -1
	case !ok:
		h.fail("%s: unknown type %d", h.where, typ)
		return -1
	}
	b := h.bytes(int(width))
	if h.err != nil || typ == 6 || typ == 12 {
		return -1
	}
	var wide [8]byte
	copy(wide[:], b)
	return int64(min(binary.LittleEndian.Uint64(wide[:]), math.MaxInt64))
}

// tensors reads the tensor table and compares its end with the file's.
func (h *header) tensors(n int, alignment int64) error {
	type last struct {
		name string
		end  int64
	}
	var far last
	for i := 0; i < n && h.err == nil; i++ {
		h.where = fmt.Sprintf("tensor %d of %d", i+1, n)
		name := h.str()
		h.where = fmt.Sprintf("tensor %q", name)
		size := h.tensorSize()
		offset := h.u64()
		if h.err == nil && (offset > math.MaxInt64/2 || int64(offset)%alignment != 0) {
			h.fail("%s: offset %d", h.where, offset)
		}
		if end := int64(offset) + size; end > far.end {
			far = last{name, end}
		}
	}
	if h.err != nil {
		return h.err
	}
	start := (h.at + alignment - 1) / alignment * alignment
	if start > maxHeader {
		return fmt.Errorf("corrupt header: it is %d bytes long", start)
	}
	if n > 0 && start+far.end > h.size {
		return fmt.Errorf("truncated: tensor %q ends at byte %d, but the file has %d", far.name, start+far.end, h.size)
	}
	return nil
}

func (h *header) tensorSize() int64 {
	dims := h.u32()
	if h.err == nil && dims > 4 {
		h.fail("%s: %d dimensions", h.where, dims)
		return 0
	}
	ne := [4]uint64{1, 1, 1, 1}
	for i := range dims {
		ne[i] = h.u64()
	}
	typ := h.u32()
	if h.err != nil {
		return 0
	}
	if typ >= C.GGML_TYPE_COUNT || C.ggml_blck_size(typ) == 0 {
		h.fail("%s: unknown type %d", h.where, typ)
		return 0
	}
	block := uint64(C.ggml_blck_size(typ))
	if ne[0]%block != 0 {
		h.fail("%s: rows of %d are no multiple of the block of %d", h.where, ne[0], block)
		return 0
	}
	size := uint64(C.ggml_type_size(typ))
	for i, n := range ne {
		if i == 0 {
			n /= block
		}
		if n == 0 || n > math.MaxInt64/2/size {
			h.fail("%s: shape %v", h.where, ne)
			return 0
		}
		size *= n
	}
	return int64(size)
}

func (h *header) fail(format string, args ...any) {
	if h.err == nil {
		h.err = fmt.Errorf("corrupt header: "+format, args...)
	}
}

func (h *header) short() {
	if h.err == nil {
		h.err = fmt.Errorf("truncated: the file ends in %s, at byte %d", h.where, h.size)
	}
}

func (h *header) bytes(n int) []byte {
	b := h.small[:min(n, len(h.small))]
	if n > len(b) {
		b = make([]byte, n)
	}
	if h.err != nil {
		return b
	}
	got, err := io.ReadFull(h.r, b)
	h.at += int64(got)
	if err != nil {
		h.short()
		return b[:got]
	}
	return b
}

func (h *header) u32() uint32 {
	if b := h.bytes(4); h.err == nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (h *header) u64() uint64 {
	if b := h.bytes(8); h.err == nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// length reads the length of a text and checks it against the file.
func (h *header) length() int64 {
	n := h.u64()
	if h.err == nil && n > uint64(h.size-h.at) {
		h.short()
	}
	if h.err != nil {
		return 0
	}
	return int64(n)
}

func (h *header) skip(n int64) {
	if h.err != nil || n == 0 {
		return
	}
	for n > 0 {
		got, err := h.r.Discard(int(min(n, 1<<30)))
		h.at += int64(got)
		n -= int64(got)
		if err != nil {
			h.short()
			return
		}
	}
}

// str reads a name.
func (h *header) str() string {
	n := h.length()
	if h.err == nil && n > 1<<16 {
		h.fail("%s: a name of %d bytes", h.where, n)
	}
	if h.err != nil {
		return ""
	}
	return string(h.bytes(int(n)))
}
