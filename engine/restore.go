package engine

import (
	"errors"
	"slices"
	"time"

	"quern/engine/tier"
)

// comeback is what the tiers have for a request: blocks that hold the first n
// tokens of its prompt, held for it until they are restored or given up.
type comeback struct {
	blocks []*block
	n      int
	giveUp time.Time // when computing would have been quicker than waiting
	ready  bool      // nothing is waited for any more

	// What computing costs is not known until a node has computed something. The
	// first request after a start, for which there is a store at all, waits as
	// long as blocks keep coming, came being how many have, but not beyond last.
	came int
	last time.Time
}

// How long a comeback waits for the next block, and for all, before costs are known.
const (
	blockPatience    = time.Second
	comebackPatience = 15 * time.Second
)

// seek looks for blocks beyond the m tokens that are resident, holds them and
// has them loaded. It is not ready while some are on their way from the store.
func (e *Engine) seek(s *sequence, m int) (ready bool) {
	t, b := e.tiers, &s.back
	if t == nil || b.ready {
		return true
	}
	if b.blocks == nil {
		path, n := t.find(s.request.CacheSalt, s.tokens[:len(s.tokens)-1])
		if n-m < t.leastGain {
			return true
		}
		recompute := float64(n-m) * e.costs.row()
		if recompute > 0 && t.cost(path, m) > recompute {
			t.shun()
			s.miss = MissCost
			return true
		}
		if e.comingBack() >= e.config.MaxRunning {
			return false // the memory is for those that start first
		}
		b.blocks, b.n = slices.Clone(path), n
		b.giveUp = e.now.Add(max(blockPatience, time.Duration(recompute*float64(time.Second))))
		b.last = e.now.Add(comebackPatience)
		t.fetch(b, m)
	}
	for i, x := range b.blocks {
		if x.slot != nil && !x.ready() && !x.gone && x.end() > m {
			if i > b.came && e.costs.row() == 0 && e.now.Before(b.last) {
				b.came, b.giveUp = i, e.now.Add(blockPatience)
			}
			if e.now.Before(b.giveUp) {
				return false
			}
			break
		}
	}
	b.ready = true
	return true
}

// comingBack counts waiting requests that hold blocks.
func (e *Engine) comingBack() (n int) {
	for _, s := range e.waiting {
		if s.restoring() {
			n++
		}
	}
	return n
}

// cost is what it takes to restore the blocks of a path beyond m tokens, in
// seconds, as far as is known.
func (t *tiers) cost(path []*block, m int) float64 {
	sum := 0.0
	for _, b := range path {
		if b.end() <= m {
			continue
		}
		size := float64(b.size)
		if !b.ready() {
			size = float64(t.arena.Slot())
			sum += size * float64(t.load)
		}
		sum += size * float64(t.restoring)
	}
	return sum
}

// shun makes what did not pay a little more attractive, so that one slow
// measurement is not believed for ever.
func (t *tiers) shun() {
	t.load *= 0.98
	t.restoring *= 0.98
}

// fetch holds the blocks of a comeback and has those beyond m tokens loaded that
// are not in memory. Where there is no slot for one, the comeback ends.
func (t *tiers) fetch(c *comeback, m int) {
	var used []tier.Key
	for _, b := range c.blocks {
		t.hold(b)
		t.use(b)
		if b.disk {
			used = append(used, b.key)
		}
	}
	if len(used) > 0 {
		t.store.Touch(used)
	}
	for i, b := range c.blocks {
		if b.slot != nil || b.end() <= m {
			continue
		}
		slot := t.take()
		if slot == nil {
			for _, x := range c.blocks[i:] {
				t.release(x)
			}
			c.blocks, c.n = c.blocks[:i], b.start
			return
		}
		t.give(b, slot)
		t.startLoad(b)
	}
}

func (t *tiers) startLoad(b *block) {
	t.hold(b)
	t.store.Get(b.key, b.slot, func(n int, took time.Duration, err error) {
		t.call(func() { t.loadedBlock(b, n, took, err) })
	})
}

func (t *tiers) loadedBlock(b *block, n int, took time.Duration, err error) {
	switch {
	case b.gone:
	case err != nil:
		// The store has dropped it.
		t.stats.lost++
		b.lost = true
		delete(t.stored, b.key)
		b.disk = false
		t.forget(b)
	default:
		b.size, b.loaded = n, true
		t.load.add(took.Seconds()/float64(n), 0.2)
		t.stats.loadTime += took
	}
	t.release(b)
}

// giveBack ends what a request holds.
func (t *tiers) giveBack(c *comeback) {
	for _, b := range c.blocks {
		t.release(b)
	}
	*c = comeback{}
}

// begin cuts a comeback down to what can be restored after m resident tokens and
// returns at how many of these it begins. Where it is cut at a block that did
// not come, it says why.
func (t *tiers) begin(c *comeback, m int) (from int, why Miss) {
	first := slices.IndexFunc(c.blocks, func(b *block) bool { return b.end() > m })
	if first < 0 || c.blocks[first].start > m {
		t.giveBack(c)
		return m, MissNone
	}
	last := first
	for last < len(c.blocks) && c.blocks[last].ready() {
		last++
	}
	for i, b := range c.blocks {
		if i < first || i >= last {
			t.release(b)
		}
	}
	if last < len(c.blocks) {
		c.n = c.blocks[last].start
		switch b := c.blocks[last]; {
		case b.lost:
			why = MissStore
		case b.gone || b.slot == nil:
			why = MissGone
		default:
			why = MissSlow
		}
	}
	start := c.blocks[first].start
	c.blocks = c.blocks[first:last]
	if c.n-m < t.leastGain {
		t.giveBack(c)
		return m, why
	}
	return start, why
}

// restoring says whether there are blocks that a sequence is still to get.
func (s *sequence) restoring() bool { return len(s.back.blocks) > 0 }

// restore gives running sequences the blocks they are to have, as far as the
// turn's budget goes, and one at least.
func (e *Engine) restore() {
	if e.tiers == nil {
		return
	}
	for done := 0; ; {
		i := slices.IndexFunc(e.running, (*sequence).restoring)
		if i < 0 {
			return
		}
		s := e.running[i]
		for s.restoring() {
			if done > 0 && e.tiers.budget <= 0 {
				return
			}
			e.restoreBlock(s)
			done++
		}
		if s.kv != nil {
			e.cache.publish(s.kv)
			e.cached(s)
		}
	}
}

// stateBudget is how long saving and restoring may keep the next step waiting:
// half of what prefill may take beside decode rows.
func (e *Engine) stateBudget() time.Duration {
	decoding := 0
	for _, s := range e.running {
		if !s.restoring() && s.pending() == 1 {
			decoding++
		}
	}
	if step := e.costs.step(decoding); decoding > 0 && step > 0 {
		return time.Duration((e.config.ITLFactor - 1) / 2 * step * float64(time.Second))
	}
	return e.config.MaxStep
}

// restoreBlock restores the next block of a sequence, or gives the rest up.
func (e *Engine) restoreBlock(s *sequence) {
	t, c := e.tiers, &s.back
	b := c.blocks[0]
	why := MissNone
	var err error
	switch {
	case !b.ready():
		why = MissGone
	case !e.cache.makeRoom(len(b.tokens)):
		why = MissCells
	default:
		start, keep := time.Now(), min(b.end(), c.n)-b.start
		err = e.cache.restore(t.backend, s.kv, s.tokens, b, keep)
		took := time.Since(start)
		t.budget -= took
		if err == nil {
			t.restored(b, keep, took)
		}
	}
	switch {
	case errors.Is(err, errTail):
		e.cache.drop(s.kv)
		e.requeue(s)
		e.dropStopped()
		return
	case errors.Is(err, ErrNoCells):
		why = MissCells
	case err != nil:
		why = MissState
		t.log.Warn("a saved prefix was not restored", "from", b.start, "tokens", len(b.tokens), "err", err)
		t.forget(b)
	}
	if why != MissNone {
		s.miss = why
		t.giveBack(c)
		return
	}
	c.blocks = c.blocks[1:]
	t.release(b)
}

// restored counts a block that has come back.
func (t *tiers) restored(b *block, tokens int, took time.Duration) {
	t.restoring.add(took.Seconds()/float64(b.size), 0.2)
	from := &t.stats.ram
	if b.loaded {
		from, b.loaded = &t.stats.disk, false
	}
	from.tokens += uint64(tokens)
	from.blocks++
	from.time += took
}
