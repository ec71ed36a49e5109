package cgo

// #include "shim.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// Vocab is the vocabulary of a model. Its table lies in Go memory; any
// goroutine may use it.
type Vocab struct {
	m      *Model
	text   []byte
	offset []uint32 // token i is text[offset[i]:offset[i+1]]
	flags  []uint8
	info   C.quern_vocab_info
	bpe    bool
}

func newVocab(m *Model, n int, bpe bool) (*Vocab, error) {
	v := &Vocab{m: m, bpe: bpe, offset: make([]uint32, n+1), flags: make([]uint8, n+1)}
	C.quern_vocab_get_info(m.m, &v.info)
	for {
		var need C.size_t
		var cerr C.quern_error
		code := C.quern_vocab_table(m.m, (*C.uint32_t)(&v.offset[0]), (*C.uint8_t)(&v.flags[0]),
			(*C.char)(unsafe.Pointer(unsafe.SliceData(v.text))), C.size_t(len(v.text)), &need, &cerr)
		if err := errorOf(code, &cerr); err != nil {
			return nil, fmt.Errorf("vocabulary: %w", err)
		}
		if int(need) <= len(v.text) {
			return v, nil
		}
		v.text = make([]byte, int(need))
	}
}

// Size is the number of tokens.
func (v *Vocab) Size() int { return len(v.offset) - 1 }

// Piece is the bytes of a token: of a control token its name, nil outside the
// vocabulary. It must not be changed.
func (v *Vocab) Piece(token int32) []byte {
	if uint32(token) >= uint32(v.Size()) {
		return nil
	}
	lo, hi := v.offset[token], v.offset[token+1]
	return v.text[lo:hi:hi]
}

func (v *Vocab) has(token int32, flag uint8) bool {
	return uint32(token) < uint32(v.Size()) && v.flags[token]&flag != 0
}

// IsControl tells a token that is no text, such as <|im_end|>.
func (v *Vocab) IsControl(token int32) bool { return v.has(token, C.QUERN_TOKEN_CONTROL) }

// IsUserDefined tells a token that is matched in text before all others.
func (v *Vocab) IsUserDefined(token int32) bool { return v.has(token, C.QUERN_TOKEN_USER_DEFINED) }

// IsUnknown tells the token that stands for what has no token.
func (v *Vocab) IsUnknown(token int32) bool { return v.has(token, C.QUERN_TOKEN_UNKNOWN) }

// IsByte tells a token that is a single byte of a character.
func (v *Vocab) IsByte(token int32) bool { return v.has(token, C.QUERN_TOKEN_BYTE) }

// IsEOG tells a token that ends a generation.
func (v *Vocab) IsEOG(token int32) bool { return v.has(token, C.QUERN_TOKEN_EOG) }

// BOS is the token that begins a text, -1 if there is none.
func (v *Vocab) BOS() int32 { return int32(v.info.bos) }

// EOS is the token that ends a text, -1 if there is none.
func (v *Vocab) EOS() int32 { return int32(v.info.eos) }

// EOT is the token that ends a turn, -1 if there is none.
func (v *Vocab) EOT() int32 { return int32(v.info.eot) }

// AddBOS tells whether the model expects BOS before a text.
func (v *Vocab) AddBOS() bool { return bool(v.info.add_bos) }

// AddEOS tells whether the model expects EOS after a text.
func (v *Vocab) AddEOS() bool { return bool(v.info.add_eos) }
