package cgo

// #include "shim.h"
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"
)

// SamplerParams say how a sequence's tokens are chosen. The order is
// llama.cpp's default one: penalties and bias, TopK, TopP, MinP, Temperature,
// draw; so TopP and MinP look at the distribution before temperature.
type SamplerParams struct {
	Temperature float32 // 0: the most likely token
	TopK        int     // 0: all
	TopP        float32 // 0 means 1: off
	MinP        float32 // 0: off
	Seed        uint64

	Presence, Frequency float32 // over what this sampler chose (OpenAI's formula)
	Repeat              float32 // over the last tokens of prompt and output; 0 means 1: off
	RepeatLastN         int     // 0 means 64

	Grammar string // GBNF, starts at its rule "root"; "" = none
	// With triggers the grammar waits for the first of them, which is also the
	// first that it gets: a token, or text that may span tokens.
	LazyTokens   []int32
	LazyPatterns []string // literal text

	Bias []TokenBias
}

// TokenBias is added to the logit of a token.
type TokenBias struct {
	Token int32
	Bias  float32
}

// Sampler chooses the tokens of one sequence. NewSampler may run anywhere;
// from then on a sampler belongs to the goroutine of the context that uses it.
type Sampler struct {
	s *C.quern_sampler
	m *Model
}

// NewSampler checks the parameters and compiles the grammar.
func NewSampler(m *Model, p SamplerParams) (*Sampler, error) {
	if p.TopP == 0 {
		p.TopP = 1
	}
	if p.Repeat == 0 {
		p.Repeat = 1
	}
	if p.RepeatLastN == 0 {
		p.RepeatLastN = 64
	}
	if p.TopK < 0 || p.TopK > 1<<30 || p.RepeatLastN < 0 || p.RepeatLastN > 1<<20 {
		return nil, fmt.Errorf("top_k %d or repeat_last_n %d out of range: %w", p.TopK, p.RepeatLastN, ErrArgument)
	}
	if !m.acquire() {
		return nil, ErrClosed
	}
	s, err := newSampler(m, &p)
	if err != nil {
		m.release()
		return nil, fmt.Errorf("sampler: %w", err)
	}
	return s, nil
}

func newSampler(m *Model, p *SamplerParams) (*Sampler, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	cp := C.quern_sampler_params{
		temperature: C.float(p.Temperature), top_p: C.float(p.TopP), min_p: C.float(p.MinP),
		top_k: C.int32_t(p.TopK), seed: C.uint64_t(p.Seed),
		presence: C.float(p.Presence), frequency: C.float(p.Frequency), repeat: C.float(p.Repeat),
		repeat_last_n: C.int32_t(p.RepeatLastN),
	}
	if p.Grammar != "" {
		text := C.CString(p.Grammar)
		defer C.free(unsafe.Pointer(text))
		cp.grammar = text
	}
	if len(p.LazyTokens) > 0 {
		pin.Pin(&p.LazyTokens[0])
		cp.lazy_tokens = (*C.int32_t)(&p.LazyTokens[0])
		cp.n_lazy_tokens = C.int32_t(len(p.LazyTokens))
	}
	words := make([]*C.char, len(p.LazyPatterns))
	for i, w := range p.LazyPatterns {
		words[i] = C.CString(w)
		defer C.free(unsafe.Pointer(words[i]))
	}
	if len(words) > 0 {
		pin.Pin(&words[0])
		cp.lazy_words = &words[0]
		cp.n_lazy_words = C.int32_t(len(words))
	}
	bias := make([]C.quern_bias, len(p.Bias))
	for i, b := range p.Bias {
		bias[i] = C.quern_bias{token: C.int32_t(b.Token), bias: C.float(b.Bias)}
	}
	if len(bias) > 0 {
		pin.Pin(&bias[0])
		cp.bias = &bias[0]
		cp.n_bias = C.int32_t(len(bias))
	}
	s := &Sampler{m: m}
	var cerr C.quern_error
	if err := errorOf(C.quern_sampler_new(m.m, &cp, &s.s, &cerr), &cerr); err != nil {
		return nil, err
	}
	return s, nil
}

// AcceptPrompt tells the repeat penalty what came before the output.
func (s *Sampler) AcceptPrompt(tokens []int32) {
	if s.s != nil && len(tokens) > 0 {
		C.quern_sampler_prompt(s.s, (*C.int32_t)(&tokens[0]), C.int32_t(len(tokens)))
	}
}

// Accept takes tokens as if the sampler had chosen them. An error means that the
// grammar refuses one, and that the sampler is no longer of use.
func (s *Sampler) Accept(tokens []int32) error {
	if s.s == nil {
		return ErrClosed
	}
	var cerr C.quern_error
	return errorOf(C.quern_sampler_accept(s.s, (*C.int32_t)(unsafe.SliceData(tokens)), C.int32_t(len(tokens)), &cerr), &cerr)
}

// Accepts feeds tokens to the grammar and returns how many it took before the
// first that it refuses. Afterwards the sampler is no longer of use: it is for
// tests of grammars.
func (s *Sampler) Accepts(tokens []int32) (int, error) {
	if s.s == nil {
		return 0, ErrClosed
	}
	var taken C.int32_t
	var cerr C.quern_error
	code := C.quern_sampler_grammar_accepts(s.s, (*C.int32_t)(unsafe.SliceData(tokens)), C.int32_t(len(tokens)), &taken, &cerr)
	return int(taken), errorOf(code, &cerr)
}

// compareMasks counts the tokens that the grammar allows now, and those on which
// the quick way of finding them and llama.cpp's differ: for tests.
func (s *Sampler) compareMasks() (differ, allowed int, err error) {
	var d, n C.int32_t
	var cerr C.quern_error
	code := C.quern_sampler_grammar_compare(s.s, &d, &n, &cerr)
	return int(d), int(n), errorOf(code, &cerr)
}

// Close frees the sampler; no step may be using it.
func (s *Sampler) Close() {
	if s.s != nil {
		C.quern_sampler_free(s.s)
		s.s = nil
		s.m.release()
	}
}
