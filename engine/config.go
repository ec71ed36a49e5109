package engine

import (
	"log/slog"
	"time"
)

// Config tunes an Engine. The zero value of each field takes its default.
type Config struct {
	// MaxRunning is how many requests share the batch (default 8). It is held
	// below the backend's sequence ids and half of its batch rows, so that
	// prefill always finds room beside decode rows.
	MaxRunning int
	// MaxQueue is how many more may wait (default 64; negative = none).
	MaxQueue int
	// MaxLength bounds prompt + output of one request, such as the context the
	// model was trained for (default: what the cells allow).
	MaxLength int
	// MaxIdle bounds the sequences kept only as prefixes for later requests
	// (default: as many as ids and cells allow; negative = none).
	MaxIdle int

	// CacheRAM bounds the memory, in bytes, that holds prefixes when they leave
	// the KV cache; 0 = none.
	CacheRAM int64
	// Store keeps prefixes beyond the process, through that memory. The engine
	// owns it; nil = none.
	Store Store
	// BlockTokens is the granule of both (default 128). A block is saved and
	// restored in one call, so it bounds how long such a call takes; what a
	// prefix loses by it is part of a block at its end, in Store.
	BlockTokens int
	// CloseTime is how long Close may take to write prefixes to Store (default
	// 10 s).
	CloseTime time.Duration

	// ITLFactor bounds a step that carries prefill while streams are running: it
	// should last at most this many plain decode steps. Higher finishes prompts
	// sooner, lower keeps streams smoother. The default 6 keeps the longest gap
	// of a stream well below ten of its normal ones and costs a lone long prompt
	// about a fifth of its prefill time.
	ITLFactor float64
	// MaxStep bounds a step in which nobody decodes (default 1 s), so that
	// arrivals and cancels wait no longer than this for it.
	MaxStep time.Duration
	// MinChunk is the least prefill of any step, whatever the above say, in
	// rows (default 16): prefill never starves.
	MinChunk int
	// MinWait is the least common part, in tokens, for which a request waits for
	// another one that is computing it (default 32).
	MinWait int
	// Headroom is how many output tokens of each running request are held free
	// when another one is admitted (default 256). More means fewer preemptions,
	// less means more requests at once.
	Headroom int
	// MaxDraft is how many tokens a step guesses for one request, from what its
	// prompt and output say elsewhere, at most (default 0: none). It needs
	// Limits.Partial. Guesses change when tokens come, not which.
	MaxDraft int
	// Drafter is a smaller model that drafts, too, within MaxDraft. It has the same
	// tokens and Limits.Partial. The engine closes it.
	Drafter Backend
	// MaxFailures is how many failed steps in a row make Stats.Healthy false
	// (default 3).
	MaxFailures int

	Logger *slog.Logger // default: discard
}

func (c Config) withDefaults(l Limits) Config {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.MaxRunning, 8)
	def(&c.MaxQueue, 64)
	def(&c.MaxLength, l.perSequence())
	def(&c.MaxIdle, l.Seqs)
	def(&c.MinChunk, 16)
	def(&c.MinWait, 32)
	def(&c.Headroom, 256)
	def(&c.MaxFailures, 3)
	def(&c.BlockTokens, 128)
	if c.ITLFactor == 0 {
		c.ITLFactor = 6
	}
	if c.CloseTime == 0 {
		c.CloseTime = 10 * time.Second
	}
	if c.MaxStep == 0 {
		c.MaxStep = time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.MaxRunning = max(1, min(c.MaxRunning, l.Seqs, (l.Batch+1)/2))
	c.MaxQueue = max(0, c.MaxQueue)
	c.MaxIdle = max(0, c.MaxIdle)
	c.MaxLength = min(c.MaxLength, l.perSequence())
	c.MaxDraft = max(0, min(c.MaxDraft, maxDrafted))
	if !l.Partial {
		c.MaxDraft = 0
	}
	c.MinChunk = max(1, min(c.MinChunk, l.Batch-c.MaxRunning))
	return c
}

// perSequence is the longest sequence that the backend can hold.
func (l Limits) perSequence() int {
	if l.Unified || l.Seqs == 0 {
		return l.Cells
	}
	return l.Cells / l.Seqs
}
