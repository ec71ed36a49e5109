package cgo

// #include "shim.h"
import "C"

import (
	"fmt"
	"sync"
)

// ContextParams size a context.
type ContextParams struct {
	Ctx          int // cells in all; 0 = what the model was trained for
	Batch        int // rows of one step; 0 = 2048
	UBatch       int // rows computed at once; 0 = 512
	SeqMax       int // sequence ids; 0 = 1
	Threads      int // for one row; 0 = 1
	ThreadsBatch int // for more rows; 0 = Threads
	Unified      bool
	SmallSWA     bool   // sliding-window layers keep only their windows: less memory, prefixes can't be reused
	KVType       string // f16 (default), q8_0, q4_0
	FlashAttn    string // auto (default), on, off
	Poll         int    // 0..100: how long idle compute threads spin
}

// Memory is what a context holds, in bytes. Compute and output buffers are
// allocated but only touched as far as batches need them.
type Memory struct{ KV, Compute, Output int64 }

// Context is a model's state and the buffers to compute with. One goroutine,
// locked to its thread, uses it; only Abort may be called from elsewhere.
type Context struct {
	model  *Model
	params ContextParams
	mem    Memory
	batch  *Batch

	mu sync.Mutex // c against Abort and Close
	c  *C.quern_context
}

var kvTypes = []string{"f16", "q8_0", "q4_0"}
var flashModes = []string{"auto", "off", "on"} // C counts from -1

// NewContext allocates a context.
func NewContext(m *Model, p ContextParams) (*Context, error) {
	cp, err := p.lower()
	if err != nil {
		return nil, fmt.Errorf("context: %w", err)
	}
	if !m.acquire() {
		return nil, ErrClosed
	}
	c := &Context{model: m}
	var cerr C.quern_error
	if err := errorOf(C.quern_context_new(m.m, &cp, &c.c, &cerr), &cerr); err != nil {
		m.release()
		return nil, fmt.Errorf("context: %w", err)
	}
	C.quern_context_get_params(c.c, &cp)
	c.params = raise(cp)
	var kv, compute, output C.uint64_t
	C.quern_context_get_memory(c.c, &kv, &compute, &output)
	c.mem = Memory{KV: int64(kv), Compute: int64(compute), Output: int64(output)}
	c.batch = newBatch(C.quern_context_batch(c.c))
	return c, nil
}

func (p ContextParams) lower() (C.quern_context_params, error) {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&p.Batch, 2048)
	def(&p.UBatch, 512)
	def(&p.SeqMax, 1)
	def(&p.Threads, 1)
	def(&p.ThreadsBatch, p.Threads)
	for _, v := range []int{p.Ctx, p.Batch, p.UBatch, p.SeqMax, p.Threads, p.ThreadsBatch, p.Poll} {
		if v < 0 || v > 1<<30 {
			return C.quern_context_params{}, fmt.Errorf("size %d out of range: %w", v, ErrArgument)
		}
	}
	kv, err := choose("kv type", p.KVType, kvTypes)
	if err != nil {
		return C.quern_context_params{}, err
	}
	flash, err := choose("flash attention", p.FlashAttn, flashModes)
	if err != nil {
		return C.quern_context_params{}, err
	}
	return C.quern_context_params{
		n_ctx: C.int32_t(p.Ctx), n_batch: C.int32_t(p.Batch), n_ubatch: C.int32_t(p.UBatch),
		n_seq_max: C.int32_t(p.SeqMax), n_threads: C.int32_t(p.Threads), n_threads_batch: C.int32_t(p.ThreadsBatch),
		poll: C.int32_t(p.Poll), kv_type: C.int32_t(kv), flash_attn: C.int32_t(flash - 1), unified: C.bool(p.Unified),
		small_swa: C.bool(p.SmallSWA),
	}, nil
}

func choose(what, v string, of []string) (int, error) {
	if v == "" {
		return 0, nil
	}
	for i, s := range of {
		if s == v {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%s %q is none of %v: %w", what, v, of, ErrArgument)
}

func raise(p C.quern_context_params) ContextParams {
	return ContextParams{
		Ctx: int(p.n_ctx), Batch: int(p.n_batch), UBatch: int(p.n_ubatch), SeqMax: int(p.n_seq_max),
		Threads: int(p.n_threads), ThreadsBatch: int(p.n_threads_batch), Unified: bool(p.unified), SmallSWA: bool(p.small_swa),
		KVType: kvTypes[p.kv_type], FlashAttn: flashModes[p.flash_attn+1], Poll: int(p.poll),
	}
}

// Params are the sizes in effect: llama.cpp rounds some of them.
func (c *Context) Params() ContextParams { return c.params }

// Memory tells what the context has allocated.
func (c *Context) Memory() Memory { return c.mem }

// SetThreads changes on how many threads later steps run: one row, and more
// rows. The context has as many as it was made with.
func (c *Context) SetThreads(one, more int) error {
	if c.c == nil {
		return ErrClosed
	}
	if err := c.errorOf(C.quern_context_set_threads(c.c, C.int32_t(one), C.int32_t(more))); err != nil {
		return err
	}
	c.params.Threads, c.params.ThreadsBatch = one, more
	return nil
}

// KVBytes is the size of the sequences' memory.
func (c *Context) KVBytes() int64 { return c.mem.KV }

// Batch is where the rows of the next step go and its results come from.
func (c *Context) Batch() *Batch { return c.batch }

// Abort makes a running Step return ErrAborted soon. Any goroutine may call
// it; when no step runs it does nothing, also not to the next one.
func (c *Context) Abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.c != nil {
		C.quern_abort(c.c)
	}
}

// Close frees the context; its batch must not be used any more.
func (c *Context) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.c != nil {
		C.quern_context_free(c.c)
		c.c = nil
		*c.batch = Batch{}
		c.model.release()
	}
}

func (c *Context) errorOf(code C.int) error {
	if code == C.QUERN_OK {
		return nil
	}
	return newError(code, C.GoString(C.quern_context_message(c.c)))
}
