package cgo

// #include "shim.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"unsafe"
)

// A saved sequence is a header and llama.cpp's own bytes. The header keeps
// torn or foreign bytes away from llama.cpp, which trusts positions it reads.
const (
	stateMagic  = "QSQ1"
	stateHeader = 32 // magic, checksum, kind, first and last position, length
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// ErrState means that the bytes are no state that this context can take.
var ErrState = errors.New("not a state of this model and context")

// StateKind names what the states of this context fit: models and contexts that
// differ in it can't exchange any. It says nothing of the weights themselves.
func (c *Context) StateKind() string { return fmt.Sprintf("%s %08x", stateMagic, c.kind()) }

// StateBound is the most bytes that the state of n positions takes.
func (c *Context) StateBound(n int) int {
	// Rows of all layers as they lie in the cache, 12 bytes a cell and some for
	// each layer and cache.
	row := (c.mem.KV + int64(c.params.Ctx) - 1) / int64(c.params.Ctx)
	return stateHeader + n*(int(row)+2*12) + 64*(c.model.info.Layers+1)
}

// kind tells states apart that do not fit each other.
func (c *Context) kind() uint32 {
	i, p := c.model.info, c.params
	flash := p.FlashAttn == "on"
	return crc32.Checksum(fmt.Appendf(nil, "%s%s %s %d %d %d %d %d %d %s %t %t %t %d",
		Engine, EngineBuild(), i.Arch, i.Params, i.SizeBytes, i.Layers, i.Embd,
		i.HeadsKV, c.model.vocab.Size(), p.KVType, flash, p.Unified, p.SmallSWA, streams(p)), crcTable)
}

func streams(p ContextParams) int {
	if p.Unified {
		return 1
	}
	return p.SeqMax
}

// SeqState saves a sequence. A context of the same model, KV type and mode can
// restore it.
func (c *Context) SeqState(seq int32) ([]byte, error) {
	if c.c == nil {
		return nil, ErrClosed
	}
	var size C.size_t
	if code := C.quern_seq_state_size(c.c, C.int32_t(seq), &size); code != C.QUERN_OK {
		return nil, c.errorOf(code)
	}
	out := make([]byte, stateHeader+int(size))
	n, err := c.SeqStateTo(seq, out)
	return out[:n], err
}

// SeqStateTo is SeqState into dst, which must be large enough; it returns the
// bytes used.
func (c *Context) SeqStateTo(seq int32, dst []byte) (int, error) {
	if c.c == nil {
		return 0, ErrClosed
	}
	if len(dst) < stateHeader {
		return 0, fmt.Errorf("state into %d bytes: %w", len(dst), ErrArgument)
	}
	body := dst[stateHeader:]
	var n C.size_t
	code := C.quern_seq_state_get(c.c, C.int32_t(seq), (*C.uint8_t)(unsafe.SliceData(body)), C.size_t(len(body)), &n)
	if code != C.QUERN_OK {
		return 0, c.errorOf(code)
	}
	out := dst[:stateHeader+int(n)]
	copy(out, stateMagic)
	le := binary.LittleEndian
	le.PutUint32(out[8:], c.kind())
	le.PutUint32(out[12:], uint32(c.SeqPosMin(seq)))
	le.PutUint32(out[16:], uint32(c.SeqPosMax(seq)))
	le.PutUint64(out[20:], uint64(n))
	le.PutUint32(out[28:], 0)
	le.PutUint32(out[4:], crc32.Checksum(out[8:], crcTable))
	return len(out), nil
}

// SetSeqState replaces a sequence by a saved one. After an error the sequence
// is empty: ErrState if the bytes are wrong, ErrNoCells if it finds no room.
func (c *Context) SetSeqState(seq int32, state []byte) error {
	if c.c == nil {
		return ErrClosed
	}
	if code := C.quern_seq_remove(c.c, C.int32_t(seq), 0, 1<<31-1); code != C.QUERN_OK {
		return c.errorOf(code)
	}
	le := binary.LittleEndian
	switch {
	case len(state) < stateHeader || string(state[:4]) != stateMagic:
		return fmt.Errorf("no state header: %w", ErrState)
	case le.Uint64(state[20:]) != uint64(len(state)-stateHeader):
		return fmt.Errorf("%d bytes, the header says %d: %w", len(state)-stateHeader, le.Uint64(state[20:]), ErrState)
	case le.Uint32(state[4:]) != crc32.Checksum(state[8:], crcTable):
		return fmt.Errorf("checksum differs: %w", ErrState)
	case le.Uint32(state[8:]) != c.kind():
		return fmt.Errorf("of another model or kind of context: %w", ErrState)
	}
	lo, hi := int(int32(le.Uint32(state[12:]))), int(int32(le.Uint32(state[16:])))
	if hi < 0 {
		return nil // of an empty sequence
	}
	if err := c.setBody(seq, state[stateHeader:], lo, hi); err != nil {
		return err
	}
	if c.SeqPosMin(seq) != lo || c.SeqPosMax(seq) != hi {
		C.quern_seq_remove(c.c, C.int32_t(seq), 0, 1<<31-1)
		return fmt.Errorf("positions differ: %w", ErrState)
	}
	return nil
}

// setBody gives llama.cpp its bytes.
func (c *Context) setBody(seq int32, body []byte, lo, hi int) error {
	if err := c.checkBody(body, lo, hi); err != nil {
		return err
	}
	return c.errorOf(C.quern_seq_state_set(c.c, C.int32_t(seq), (*C.uint8_t)(unsafe.SliceData(body)), C.size_t(len(body))))
}

// checkBody reads the cells of the first cache in a body, as llama.cpp will:
// it allocates for any count and takes any position.
func (c *Context) checkBody(body []byte, lo, hi int) error {
	if c.model.info.Recurrent {
		return nil // starts otherwise
	}
	var headWords, cellWords C.int32_t
	C.quern_seq_state_layout(c.c, &headWords, &cellWords)
	head, cell := int(headWords), int(cellWords)
	le := binary.LittleEndian
	word := func(i int) int { return int(int32(le.Uint32(body[4*i:]))) }
	if len(body) < 4*(head+1) || word(head) != streams(c.params) {
		return fmt.Errorf("other number of streams: %w", ErrState)
	}
	at := head + 1
	for range streams(c.params) {
		if len(body) < 4*(at+1) {
			return fmt.Errorf("ends in the cells: %w", ErrState)
		}
		n := word(at)
		at++
		if n == 0 {
			continue
		}
		if n < 0 || n > (len(body)/4-at)/cell {
			return fmt.Errorf("%d cells: %w", n, ErrState)
		}
		for i := range n {
			if pos, ids := word(at+cell*i), word(at+cell*i+1); pos < 0 || pos > hi || ids != 1 {
				return fmt.Errorf("position %d in a sequence of [%d,%d]: %w", pos, lo, hi, ErrState)
			}
		}
		break // one sequence lies in one stream
	}
	return nil
}
