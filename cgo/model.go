package cgo

// #include "shim.h"
// #include "llama.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"fmt"
	"runtime/cgo"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"
)

// LoadOptions say how a model file is loaded.
type LoadOptions struct {
	NoMMap    bool // read the file instead of mapping it
	VocabOnly bool // tokens and metadata, no weights
	NoRepack  bool // keep the weights as the file has them: slower, less memory
	NoKernels bool // leave all products to ggml's own kernels
	Progress  func(fraction float32)
}

// Model is a loaded model: read-only, so any goroutine may use it.
type Model struct {
	m     *C.quern_model
	info  ModelInfo
	meta  []KV
	vocab *Vocab

	refs  atomic.Int64 // the owner, contexts, samplers and running calls
	close sync.Once
}

// ModelInfo describes a model.
type ModelInfo struct {
	Desc         string // such as "llama 1B Q4_K - Medium"
	Arch         string
	Name         string
	Params       uint64
	SizeBytes    uint64 // of the tensors
	CopiedBytes  uint64 // of weights that are not read from the mapped file
	ContextTrain int
	Embd         int
	Layers       int
	Heads        int
	HeadsKV      int
	SWA          int // sliding window, 0 if none
	Recurrent    bool
	Hybrid       bool
	Diffusion    bool
	HasEncoder   bool
	HasDecoder   bool
}

// KV is one entry of the metadata.
type KV struct{ Key, Value string }

// LoadModel loads a GGUF file. The file is checked first: llama.cpp trusts
// what it reads. When ctx ends, loading stops and ctx's error is returned.
func LoadModel(ctx context.Context, path string, o LoadOptions) (*Model, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkFile(path); err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	h := cgo.NewHandle(&loading{ctx: ctx, progress: o.Progress})
	defer h.Delete()
	cpath := C.CString(path)
	defer C.free(unsafe.Pointer(cpath))
	p := C.quern_load_params{
		path:       cpath,
		mmap:       C.bool(!o.NoMMap),
		vocab_only: C.bool(o.VocabOnly),
		repack:     C.bool(!o.NoRepack),
		kernels:    C.bool(!o.NoKernels),
		handle:     C.uintptr_t(h),
	}
	var cm *C.quern_model
	var cerr C.quern_error
	code := C.quern_model_load(&p, &cm, &cerr)
	if code == C.QUERN_CANCELLED {
		return nil, context.Cause(ctx)
	}
	if err := errorOf(code, &cerr); err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	m := &Model{m: cm}
	m.refs.Store(1)
	if err := m.describe(); err != nil {
		m.Close()
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	return m, nil
}

func (m *Model) describe() error {
	var ci C.quern_model_info
	var cerr C.quern_error
	if err := errorOf(C.quern_model_get_info(m.m, &ci, &cerr), &cerr); err != nil {
		return err
	}
	m.meta = readMeta(m.m)
	m.info = ModelInfo{
		Desc:         C.GoString(&ci.desc[0]),
		Arch:         m.metaValue("general.architecture"),
		Name:         m.metaValue("general.name"),
		Params:       uint64(ci.n_params),
		SizeBytes:    uint64(ci.size),
		CopiedBytes:  uint64(ci.copied),
		ContextTrain: int(ci.n_ctx_train),
		Embd:         int(ci.n_embd),
		Layers:       int(ci.n_layer),
		Heads:        int(ci.n_head),
		HeadsKV:      int(ci.n_head_kv),
		SWA:          int(ci.n_swa),
		Recurrent:    bool(ci.recurrent),
		Hybrid:       bool(ci.hybrid),
		Diffusion:    bool(ci.diffusion),
		HasEncoder:   bool(ci.encoder),
		HasDecoder:   bool(ci.decoder),
	}
	var err error
	m.vocab, err = newVocab(m, int(ci.n_vocab), ci.vocab_type == C.LLAMA_VOCAB_TYPE_BPE)
	return err
}

func readMeta(m *C.quern_model) []KV {
	buf := make([]byte, 1<<10)
	read := func(get func(buf *C.char, size C.size_t) C.int) string {
		n := int(get((*C.char)(unsafe.Pointer(&buf[0])), C.size_t(len(buf))))
		if n >= len(buf) {
			buf = make([]byte, n+1)
			n = int(get((*C.char)(unsafe.Pointer(&buf[0])), C.size_t(len(buf))))
		}
		if n < 0 {
			return ""
		}
		return string(buf[:min(n, len(buf)-1)])
	}
	out := make([]KV, 0, int(C.quern_model_meta_count(m)))
	for i := range cap(out) {
		out = append(out, KV{
			Key:   read(func(b *C.char, n C.size_t) C.int { return C.quern_model_meta_key(m, C.int(i), b, n) }),
			Value: read(func(b *C.char, n C.size_t) C.int { return C.quern_model_meta_val(m, C.int(i), b, n) }),
		})
	}
	slices.SortFunc(out, func(a, b KV) int { return strings.Compare(a.Key, b.Key) })
	return out
}

func (m *Model) metaValue(key string) string {
	for _, kv := range m.meta {
		if kv.Key == key {
			return kv.Value
		}
	}
	return ""
}

// Info describes the model.
func (m *Model) Info() ModelInfo { return m.info }

// Meta is the GGUF metadata as text, sorted by key; arrays are left out.
func (m *Model) Meta() []KV { return m.meta }

// Vocab is the vocabulary; it must not tokenize after Close.
func (m *Model) Vocab() *Vocab { return m.vocab }

// ChatTemplate is the file's default chat template, "" if it has none.
func (m *Model) ChatTemplate() string { return m.metaValue("tokenizer.chat_template") }

// Close frees the model once the last context and sampler of it are closed.
func (m *Model) Close() { m.close.Do(m.release) }

// acquire keeps the C model alive until release; false after Close.
func (m *Model) acquire() bool {
	for {
		n := m.refs.Load()
		if n == 0 {
			return false
		}
		if m.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (m *Model) release() {
	if m.refs.Add(-1) == 0 {
		C.quern_model_free(m.m)
		m.m = nil
	}
}
