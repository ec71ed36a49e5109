package engine

import (
	"time"

	"quern/engine/tier"
)

// save copies what the tiers lack of a resident sequence, from its head on, as
// far as the turn's budget and the memory go, and at most so many blocks. It
// returns how many it copied.
func (t *tiers) save(r *resident, most int) (saved int) {
	if t == nil || r.saved >= r.length || r.length < t.leastSaved {
		return 0
	}
	at := t.rootOf(tier.RootKey(r.entry.salt))
	// All that leads to a new block is held: what makes room for it must not be
	// anything that it goes on from.
	t.path = append(t.path[:0], at)
	t.hold(at)
	defer func() {
		for _, b := range t.path {
			t.release(b)
		}
		t.tidy(t.path[0])
	}()
	for pos := 0; ; {
		want := r.tokens[pos:min(pos+t.granule, r.length)]
		if len(want) < t.leastTail {
			break
		}
		c, n := at.child(want)
		if n == len(want) {
			c.pinned = c.pinned || r.pinned
			t.refresh(c)
			if n < t.granule {
				break
			}
			pos, at = pos+n, c
			t.hold(at)
			t.path = append(t.path, at)
			continue
		}
		if saved == most || t.budget <= 0 {
			return saved
		}
		b := t.saveBlock(r, at, pos, want)
		if b == nil {
			break
		}
		if c != nil && n == len(c.tokens) {
			t.forget(c) // b has all of it
		}
		saved++
		if len(want) < t.granule {
			break
		}
		pos, at = pos+len(want), b
		t.hold(at)
		t.path = append(t.path, at)
	}
	r.saved = r.length
	return saved
}

// saveBlock copies one block, or returns nil.
func (t *tiers) saveBlock(r *resident, parent *block, pos int, tokens []Token) *block {
	slot := t.take()
	if slot == nil {
		return nil
	}
	start := time.Now()
	n, err := t.backend.SeqSave(r.id, pos, pos+len(tokens), slot)
	took := time.Since(start)
	t.budget -= took
	if err != nil {
		t.arena.Give(slot)
		t.stats.failed++
		t.log.Debug("a prefix was not saved", "from", pos, "tokens", len(tokens), "err", err)
		return nil
	}
	t.saving.add(took.Seconds()/float64(n), 0.2)
	t.stats.savedBlocks++
	t.stats.saveTime += took
	b := t.attach(parent, append([]Token(nil), tokens...), tier.KeyOf(parent.key, tokens))
	b.size, b.pinned = n, r.pinned
	t.refresh(b)
	t.give(b, slot)
	if len(tokens) == t.granule {
		t.write(b)
	}
	return b
}

// write queues a block for the store. Blocks that may still grow are only
// written when the engine closes.
func (t *tiers) write(b *block) {
	if t.store == nil || b.disk || b.writing {
		return
	}
	b.writing = true
	t.queue = append(t.queue, b)
	t.pump()
}

// pump keeps the store busy.
func (t *tiers) pump() {
	for t.writing < mostWrites && len(t.queue) > 0 {
		b := t.queue[0]
		t.queue = t.queue[1:]
		if b.gone || !b.ready() {
			b.writing = false
			continue
		}
		t.writing++
		t.hold(b)
		what := tier.Block{Key: b.key, Parent: b.parent.key, Start: b.start, Tokens: b.tokens}
		t.store.Put(what, b.slot[:b.size], func(err error) { t.call(func() { t.written(b, err) }) })
	}
}

func (t *tiers) written(b *block, err error) {
	t.writing--
	b.writing = false
	t.release(b)
	switch {
	case err != nil:
		t.stats.unwritten++
	case b.gone:
		t.store.Drop(b.key)
	default:
		t.stats.written++
		b.disk = true
		t.stored[b.key] = b
	}
	t.pump()
}

// saveIdle copies one block of an idle sequence, while nobody else wants the
// backend, and says whether there was one to copy.
func (t *tiers) saveIdle(c *cache) bool {
	if t == nil {
		return false
	}
	t.budget = time.Second
	for _, r := range c.idle {
		if t.save(r, 1) > 0 {
			return true
		}
	}
	return false
}

// close brings what is saved to disk, within a time, and frees the memory. wait
// lets what other goroutines have to say be heard, until a deadline.
func (t *tiers) close(c *cache, within time.Duration, wait func(deadline time.Time) bool) {
	deadline := time.Now().Add(within)
	if t.store == nil {
		t.free()
		return
	}
	for i := len(c.idle) - 1; i >= 0 && time.Now().Before(deadline); i-- {
		t.budget = time.Until(deadline)
		t.save(c.idle[i], mostBlocks)
	}
	for _, r := range t.roots {
		t.writeAll(r)
	}
	for (len(t.queue) > 0 || t.writing > 0) && wait(deadline) {
	}
	if n := len(t.queue) + t.writing; n > 0 {
		t.log.Warn("not all prefixes were written", "blocks", n, "within", within)
	}
	t.queue = nil
	if t.store.Close(max(time.Second, time.Until(deadline))) {
		t.free()
	}
}

func (t *tiers) free() {
	if err := t.arena.Close(); err != nil {
		t.log.Error("host tier", "err", err)
	}
}

// writeAll queues what is below b and not on disk yet.
func (t *tiers) writeAll(b *block) {
	for _, c := range b.children {
		if c.ready() {
			t.write(c)
		}
		t.writeAll(c)
	}
}
