package llama

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"quern/cgo"
)

// Options size the context of a model.
type Options struct {
	Cells        int // KV cells in all
	Parallel     int // sequences that run at once
	Sequences    int // ids, running and idle; 0: what Sequences says
	Threads      int
	ThreadsBatch int // of steps of more than one row; 0: Threads
	Batch        int
	UBatch       int
	KVType       string // f16, q8_0 or q4_0
	FlashAttn    string // auto, on or off
	NoMMap       bool
	NoRepack     bool   // leave weights as the file has them: slower, no copies
	Tune         *Tuner // changes Threads, ThreadsBatch and UBatch; nil: nothing does
	Progress     func(fraction float32)
}

func (o Options) batchThreads() int {
	if o.ThreadsBatch == 0 {
		return o.Threads
	}
	return o.ThreadsBatch
}

// idleSequences is how many finished conversations can keep their KV beside the
// running ones. An id costs a row of logits (its vocabulary times 4 bytes, in
// memory that is only touched when the row is used), so there is a limit.
const idleSequences = 56

// maxSequences is llama.cpp's own limit (LLAMA_MAX_SEQ).
const maxSequences = 256

// Sequences is how many ids a context has for so many running sequences.
func Sequences(parallel int) int { return min(maxSequences, parallel+idleSequences+1) }

// CopiedBytes is what a weight takes beside the mapped file, see cgo.WeightCopy.
func CopiedBytes(typ uint32, dims []uint64, experts int) int64 {
	return cgo.WeightCopy(typ, dims, experts)
}

// Memory is what the context has allocated, in bytes.
func (b *Backend) Memory() cgo.Memory { return b.context.Memory() }

// Open loads a model and makes a context for it. Cancelling ctx stops the load.
func Open(ctx context.Context, path string, o Options) (*Backend, error) {
	m, err := cgo.LoadModel(ctx, path, cgo.LoadOptions{NoMMap: o.NoMMap, NoRepack: o.NoRepack, Progress: o.Progress})
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	if o.Tune != nil {
		if err := o.Tune.tune(ctx, m, &o); err != nil {
			m.Close()
			return nil, fmt.Errorf("load %s: %w", path, err)
		}
	}
	c, err := cgo.NewContext(m, cgo.ContextParams{
		Ctx: o.Cells, Batch: o.Batch, UBatch: o.UBatch, SeqMax: cmp.Or(o.Sequences, Sequences(o.Parallel)),
		Threads: o.Threads, ThreadsBatch: o.batchThreads(), Unified: true, KVType: o.KVType, FlashAttn: o.FlashAttn,
	})
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	return newBackend(m, c), nil
}

// Vocab is the vocabulary of the model, for the tokenizer.
func (b *Backend) Vocab() *cgo.Vocab { return b.model.Vocab() }

// Model describes the loaded weights.
func (b *Backend) Model() cgo.ModelInfo { return b.model.Info() }

// Params are the sizes in effect.
func (b *Backend) Params() cgo.ContextParams { return b.context.Params() }

// KVBytes is the size of the KV cache in bytes.
func (b *Backend) KVBytes() int64 { return b.context.KVBytes() }

// CheckCPU says what this build needs that the CPU lacks. It must run before
// anything else here: the first vector instruction would end the process.
func CheckCPU() error { return cgo.CheckCPU() }

// SetLogger is where llama.cpp's own messages go.
func SetLogger(l *slog.Logger) { cgo.SetLogger(l) }

// MeasureRoof probes what the machine is capable of on so many threads.
func MeasureRoof(threads int) (cgo.Roof, error) { return cgo.MeasureRoof(threads) }
