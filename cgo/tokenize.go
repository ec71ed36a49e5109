package cgo

// #include "shim.h"
import "C"

import (
	"fmt"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// MaxText bounds one call of Tokenize, in bytes.
const MaxText = 16 << 20

// A byte-pair vocabulary first splits text by a regular expression, which
// std::regex matches by recursion: some 300 bytes of stack for every character
// of a word, so that 30,000 spaces or letters in a row would overflow a thread's
// stack. Runs of up to shallowRun bytes do no harm, up to deepRun a deep stack
// is used, and beyond, the run is cut: there alone the tokens may differ from
// those of the whole.
const (
	shallowRun = 2 << 10
	deepRun    = 64 << 10
)

// Tokenize turns text into tokens; BOS and EOS are never added. With
// parseSpecial the spelling of a control token becomes that token. Any number
// of goroutines may call it at once.
func (v *Vocab) Tokenize(text string, parseSpecial bool) ([]int32, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > MaxText {
		return nil, fmt.Errorf("text of %d bytes, at most %d can be tokenized: %w", len(text), MaxText, ErrArgument)
	}
	if !v.m.acquire() {
		return nil, ErrClosed
	}
	defer v.m.release()
	if !v.bpe {
		return v.tokenize(nil, text, parseSpecial, false)
	}
	text = replaceInvalid(text)
	longest := longestRun(text)
	if longest <= deepRun {
		return v.tokenize(nil, text, parseSpecial, longest > shallowRun)
	}
	var out []int32
	for text != "" {
		n := v.cut(text, parseSpecial)
		var err error
		if out, err = v.tokenize(out, text[:n], parseSpecial, true); err != nil {
			return nil, err
		}
		text = text[n:]
	}
	return out, nil
}

// tokenize appends the tokens of text to out.
func (v *Vocab) tokenize(out []int32, text string, parseSpecial, deep bool) ([]int32, error) {
	have := len(out)
	if need := len(text)/3 + 16; cap(out)-have < need {
		out = append(make([]int32, 0, have+need), out...)
	}
	for {
		room := out[have:cap(out)]
		var n C.int32_t
		var cerr C.quern_error
		code := C.quern_tokenize(v.m.m, (*C.char)(unsafe.Pointer(unsafe.StringData(text))), C.int32_t(len(text)),
			C.bool(parseSpecial), C.bool(deep), (*C.int32_t)(&room[0]), C.int32_t(len(room)), &n, &cerr)
		if err := errorOf(code, &cerr); err != nil {
			return nil, fmt.Errorf("tokenize: %w", err)
		}
		if int(n) <= len(room) {
			return out[:have+int(n)], nil
		}
		out = append(make([]int32, 0, have+int(n)), out...)
	}
}

// replaceInvalid does what llama.cpp does with a byte that is no UTF-8, but not
// by a C++ exception for each.
func replaceInvalid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var sb strings.Builder
	sb.Grow(len(text) + 64)
	for _, r := range text {
		sb.WriteRune(r) // utf8.RuneError for one bad byte
	}
	return sb.String()
}

func isSpace(b byte) bool { return b == ' ' || b-'\t' < 5 }

// longestRun is the length of the longest run of spaces or of other bytes.
func longestRun(text string) int {
	longest, start := 0, 0
	for i := 1; i < len(text); i++ {
		if isSpace(text[i]) != isSpace(text[i-1]) {
			longest = max(longest, i-start)
			start = i
		}
	}
	return max(longest, len(text)-start)
}

// cut finds where a text with a run above deepRun is to be cut: within the
// first such run, at the end of a word if there is one.
func (v *Vocab) cut(text string, parseSpecial bool) int {
	start := 0
	for i := 1; i < len(text); i++ {
		if isSpace(text[i]) != isSpace(text[i-1]) {
			start = i
		}
		if i-start < deepRun {
			continue
		}
		for j := i; j > start+deepRun/2; j-- {
			if isLetter(text[j-1]) && !isLetter(text[j]) && text[j] < utf8.RuneSelf {
				return v.beforeSpecial(text, j, parseSpecial)
			}
		}
		for !utf8.RuneStart(text[i]) {
			i--
		}
		return v.beforeSpecial(text, i, parseSpecial)
	}
	return len(text)
}

func isLetter(b byte) bool { return (b|0x20)-'a' < 26 }

// beforeSpecial moves a cut out of the spelling of a special token.
func (v *Vocab) beforeSpecial(text string, at int, parseSpecial bool) int {
	for t := int32(0); parseSpecial && t < int32(v.Size()); t++ {
		if !v.has(t, C.QUERN_TOKEN_CONTROL|C.QUERN_TOKEN_USER_DEFINED) {
			continue
		}
		s := string(v.Piece(t))
		lo, hi := max(1, at-len(s)+1), min(len(text), at+len(s)-1)
		if lo >= hi {
			continue
		}
		if i := strings.Index(text[lo:hi], s); i >= 0 && lo+i < at {
			at, t = lo+i, 0 // the one before may be cut now
		}
	}
	return at
}
