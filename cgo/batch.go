package cgo

// #include "shim.h"
import "C"

import (
	"fmt"
	"time"
	"unsafe"
)

// MaxTop is how many alternatives a row may ask for.
const MaxTop = C.QUERN_TOP_MAX

// Batch is the rows of a step. Token, Pos, Seq and Want lie in C memory and
// hold as many rows as the context's Batch; the first N are decoded.
type Batch struct {
	N       int
	Token   []int32
	Pos     []int32 // consecutive in each sequence, from where its memory ends
	Seq     []int32
	Want    []int32    // -1: no token; 0: a token; 1+n: also its logprob and n alternatives
	Sampler []*Sampler // for rows that want a token; see Step
	Out     []Out      // results of the rows that want a token

	c *C.quern_batch
}

// Out is the result of a row.
type Out struct {
	Token   int32
	Logprob float32      // of the model's raw distribution, before penalties and temperature
	Top     []TopLogprob // the most likely ones, best first; valid until the next step
	Err     error        // this row has no token; the others are not concerned
	Skipped bool         // this row was a guess that did not come true: no token, no error
}

// TopLogprob is an alternative and its log probability.
type TopLogprob struct {
	Token   int32
	Logprob float32
}

func newBatch(c *C.quern_batch) *Batch {
	n := int(c.cap)
	return &Batch{
		Token:   unsafe.Slice((*int32)(c.token), n),
		Pos:     unsafe.Slice((*int32)(c.pos), n),
		Seq:     unsafe.Slice((*int32)(c.seq), n),
		Want:    unsafe.Slice((*int32)(c.want), n),
		Sampler: make([]*Sampler, n),
		Out:     make([]Out, n),
		c:       c,
	}
}

// SampleTime is what sampling took of the last step that worked.
func (b *Batch) SampleTime() time.Duration { return time.Duration(b.c.sample_ns) }

// Cap is the number of rows that fit.
func (b *Batch) Cap() int { return len(b.Token) }

// Add appends a row; false if there is no room.
func (b *Batch) Add(token, pos, seq, want int32, s *Sampler) bool {
	if b.N >= len(b.Token) {
		return false
	}
	b.Token[b.N], b.Pos[b.N], b.Seq[b.N], b.Want[b.N], b.Sampler[b.N] = token, pos, seq, want, s
	b.N++
	return true
}

// Step decodes the rows [0,N) and samples those that want a token. A sampler has
// one of them, or several that follow one another in one sequence: then all but
// the first are guesses, each sampled only if its token is what the row before
// it has sampled, and otherwise Skipped, with those after it. ErrNoCells:
// nothing was changed. Any other error: no row has a result, and the sequences
// of the batch are back where they were (see ErrAborted, DecodeError).
func (c *Context) Step() error {
	if c.c == nil {
		return ErrClosed
	}
	b := c.batch
	if b.N < 1 || b.N > len(b.Token) {
		return fmt.Errorf("batch of %d rows, must be 1 to %d: %w", b.N, len(b.Token), ErrArgument)
	}
	samplers := unsafe.Slice(b.c.sampler, len(b.Token))
	for i := range b.N {
		samplers[i] = nil
		if s := b.Sampler[i]; b.Want[i] >= 0 && s != nil {
			samplers[i] = s.s
		}
	}
	if code := C.quern_step(c.c, C.int32_t(b.N)); code != C.QUERN_OK {
		return c.errorOf(code)
	}
	for i := range b.N {
		if b.Want[i] >= 0 {
			b.collect(i)
		}
	}
	return nil
}

// resample samples a row of the last step again: for tests and benchmarks.
func (c *Context) resample(row int) Out {
	C.quern_resample(c.c, C.int32_t(row))
	c.batch.collect(row)
	return c.batch.Out[row]
}

// collect copies the result of row i out of C memory.
func (b *Batch) collect(i int) {
	at := func(p *C.int32_t, i int) int32 { return *(*int32)(unsafe.Add(unsafe.Pointer(p), 4*i)) }
	float := func(p *C.float, i int) float32 { return *(*float32)(unsafe.Add(unsafe.Pointer(p), 4*i)) }
	o := &b.Out[i]
	code := at(b.c.out_code, i)
	o.Token, o.Logprob, o.Top, o.Err = at(b.c.out_token, i), float(b.c.out_logprob, i), o.Top[:0], nil
	if o.Skipped = code == C.QUERN_SKIPPED; o.Skipped {
		o.Logprob = 0
		return
	}
	if code != C.QUERN_OK {
		o.Err = newError(C.int(code), C.GoString(C.quern_sampler_message(b.Sampler[i].s)))
		o.Token = -1
		return
	}
	for k := range int(at(b.c.out_ntop, i)) {
		j := i*MaxTop + k
		o.Top = append(o.Top, TopLogprob{at(b.c.top_token, j), float(b.c.top_logprob, j)})
	}
}
