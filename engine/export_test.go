package engine

import "fmt"

// Inspect runs on the loop between two steps: it checks the engine's books for
// consistency and hands out what the backend should hold.
func (e *Engine) Inspect(f func(cells, sequences int, err error)) {
	done := make(chan struct{})
	e.mu.Lock()
	e.calls = append(e.calls, func() {
		defer close(done)
		n, err := e.audit()
		f(e.cache.ledger.used, n, err)
	})
	e.mu.Unlock()
	e.nudge()
	select {
	case <-done:
	case <-e.done:
	}
}

func (e *Engine) audit() (sequences int, err error) {
	c := e.cache
	ids := map[SeqID]bool{}
	claim := func(id SeqID, what string) {
		if ids[id] {
			err = fmt.Errorf("id %d is %s and something else", id, what)
		}
		ids[id] = true
	}
	for _, id := range c.free {
		claim(id, "free")
	}
	c.ledger.begin()
	cells := 0
	held := func(r *resident) {
		if r.length > 0 {
			sequences++
		}
		if n := length(r.tail); n != r.length {
			err = fmt.Errorf("id %d holds %d cells of %d tokens", r.id, n, r.length)
		}
		cells += c.ledger.count(r.tail)
	}
	for _, r := range c.idle {
		claim(r.id, "idle")
		held(r)
		if !r.idle || r.entry.at == nil || r.entry.at.depth != r.length {
			err = fmt.Errorf("idle %d of %d tokens is not in the index", r.id, r.length)
		}
	}
	for i, s := range e.running {
		claim(s.kv.id, "running")
		held(s.kv)
		if s.kv.idle {
			err = fmt.Errorf("id %d runs and is idle", s.kv.id)
		}
		if i > 0 && e.running[i-1].arrival >= s.arrival {
			err = fmt.Errorf("running sequences are out of order")
		}
	}
	if len(ids) != e.limits.Seqs {
		err = fmt.Errorf("%d of %d ids are accounted for", len(ids), e.limits.Seqs)
	}
	if cells != c.ledger.used {
		err = fmt.Errorf("sequences hold %d cells, the ledger says %d", cells, c.ledger.used)
	}
	if e.tiers != nil && err == nil {
		err = e.tiers.audit(e)
	}
	if len(e.running) == 0 && len(e.coming) > 0 {
		err = fmt.Errorf("prompts are announced and nothing runs")
	}
	return sequences, err
}

func length(tail *run) int {
	n := 0
	for r := tail; r != nil; r = r.parent {
		n += r.n
	}
	return n
}

// audit checks the books of the tiers against each other.
func (t *tiers) audit(e *Engine) error {
	holds := map[*block]int{}
	for _, list := range [][]*sequence{e.running, e.waiting} {
		for _, s := range list {
			for _, b := range s.back.blocks {
				holds[b]++
			}
		}
	}
	slots, stored, queued := 0, 0, 0
	var walk func(b *block) error
	walk = func(b *block) error {
		inRAM := 0
		for _, c := range b.children {
			if c.parent != b || c.start != b.end() || c.gone {
				return fmt.Errorf("block at %d is not where its parent says", c.start)
			}
			if c.slot == nil && !c.disk {
				return fmt.Errorf("block at %d is nowhere", c.start)
			}
			if c.slot != nil {
				inRAM++
				slots++
			}
			if c.disk {
				stored++
				if t.stored[c.key] != c {
					return fmt.Errorf("block at %d is on disk under another name", c.start)
				}
			}
			may := c.slot != nil && c.held == 0 && c.inRAM == 0
			if may != (c.at >= 0) || may && t.heap[c.at] != c {
				return fmt.Errorf("block at %d: held %d, children in RAM %d, heap %d", c.start, c.held, c.inRAM, c.at)
			}
			if c.held < holds[c] {
				return fmt.Errorf("block at %d is held %d times by requests, and counts %d", c.start, holds[c], c.held)
			}
			if c.writing {
				queued++
			}
			if err := walk(c); err != nil {
				return err
			}
		}
		if inRAM != b.inRAM {
			return fmt.Errorf("block at %d has %d children in RAM and counts %d", b.start, inRAM, b.inRAM)
		}
		return nil
	}
	for _, r := range t.roots {
		if len(r.children) == 0 {
			return fmt.Errorf("a root has nothing")
		}
		if err := walk(r); err != nil {
			return err
		}
	}
	if stored != len(t.stored) {
		return fmt.Errorf("%d blocks on disk, %d by key", stored, len(t.stored))
	}
	if slots > t.arena.Taken() {
		return fmt.Errorf("blocks have %d slots, %d are taken", slots, t.arena.Taken())
	}
	if len(holds) == 0 && t.writing == 0 && len(t.queue) == 0 && queued > 0 {
		return fmt.Errorf("%d blocks wait to be written, and nobody writes", queued)
	}
	return nil
}
