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
