package engine

import "time"

// Stats is a snapshot of the engine: gauges and counters since the start.
type Stats struct {
	Running, Waiting     int
	CellsUsed, CellsIdle int // used by anyone; of these, only by idle prefixes
	CellsTotal           int
	IdlePrefixes         int

	PromptTokens    uint64 // of requests that started
	CachedTokens    uint64 // of these, reused from the prefix cache
	GeneratedTokens uint64
	// DraftedTokens were guessed; AcceptedTokens of them were right and saved a
	// row of a step of their own.
	DraftedTokens, AcceptedTokens uint64
	// PrefixQueries and PrefixHits count tokens asked for and found in the cache.
	PrefixQueries, PrefixHits uint64

	Submitted, Finished, Cancelled, Failed uint64 // requests
	Refused                                uint64 // queue full or draining
	Preemptions, Evictions                 uint64
	Steps, FailedSteps                     uint64

	// Where the loop's time went since the start: waiting for requests, and steps,
	// sampling included. The rest of Uptime is scheduling and bookkeeping.
	Uptime, IdleSum, StepSum, SampleSum time.Duration
	DecodeRows, PrefillRows             uint64 // of the steps that worked; drafts are decode rows

	StepTime       time.Duration // exponentially weighted mean
	DecodeStepTime time.Duration // of a step with one decode row, as estimated; 0 = not known

	// RAM and Disk are the tiers below the KV cache.
	RAM, Disk TierStats
	// Misses counts requests by why they were not cached to their end, MissNone
	// being those that were.
	Misses [MissKinds]uint64

	Healthy, Draining bool
}

// TierStats tell of one tier. A block is a stretch of at most 128 tokens.
type TierStats struct {
	Blocks          int
	Bytes, Capacity int64

	HitBlocks, HitTokens uint64 // restored from it
	RestoreTime          time.Duration
	Saved, NotSaved      uint64 // blocks that went into it, or failed to
	SaveTime             time.Duration
	Evicted              uint64 // blocks that made room
	Lost                 uint64 // blocks that could not be read back
}

// Stats returns what the last step left behind. It never waits for the loop.
func (e *Engine) Stats() Stats {
	e.statsMu.Lock()
	s := e.published
	e.statsMu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Waiting = max(0, e.active-s.Running)
	s.Submitted, s.Refused, s.Draining = e.submitted, e.refused, e.draining
	return s
}

// publish makes the loop's state visible to Stats.
func (e *Engine) publish() {
	s := &e.stats
	s.Running = 0
	for _, r := range e.running {
		if r.kv != nil {
			s.Running++
		}
	}
	s.Uptime = time.Since(e.began)
	s.CellsUsed = e.cache.ledger.used
	s.CellsIdle = s.CellsUsed - e.cellsRunning()
	s.CellsTotal = e.limits.Cells
	s.IdlePrefixes = len(e.cache.idle)
	s.Evictions = e.cache.evictions
	s.StepTime = time.Duration(float64(e.stepTime) * float64(time.Second))
	s.DecodeStepTime = time.Duration(e.costs.step(1) * float64(time.Second))
	e.tiers.publish(s)
	s.Healthy = e.failures < e.config.MaxFailures
	e.statsMu.Lock()
	e.published = *s
	e.statsMu.Unlock()
}

// cellsRunning counts the cells that running sequences hold.
func (e *Engine) cellsRunning() int {
	l := &e.cache.ledger
	l.begin()
	n := 0
	for _, s := range e.running {
		if s.kv != nil {
			n += l.count(s.kv.tail)
		}
	}
	return n
}
