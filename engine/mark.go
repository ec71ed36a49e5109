package engine

// A model that keeps one state for all positions of a sequence (Limits.Partial
// is false) can continue a sequence only from where it ends, and the next request
// of a conversation rarely has all of that: the last answer is generated anew, or
// its thoughts are left out of the history. So the prefill of such a prompt stops
// once shortly before its end, and a copy of the sequence stays there: a mark,
// which is an idle sequence that others are copied from.

const (
	// markBefore is how many tokens before the end of a prompt the mark lies: more
	// than what templates write before an answer, and otherwise in the history.
	markBefore = 16
	// leastMarked is the shortest prefix, in tokens, that is worth a sequence id.
	leastMarked = 64
)

// mark is where the prefill of a prompt stops; 0: nowhere.
func (s *sequence) mark() int {
	if n := s.prompt() - markBefore; n >= leastMarked {
		return n
	}
	return 0
}

// stopAtMarks shortens the shares that would pass a mark.
func (e *Engine) stopAtMarks(shares []share) {
	if e.limits.Partial {
		return
	}
	for i, sh := range shares {
		s := e.running[sh.seq]
		if n := s.mark() - s.computed(); n > 0 {
			shares[i].rows = min(sh.rows, n)
		}
	}
}

// mark leaves a copy of r, as it is now, among the idle sequences, unless there is
// one or none can be had.
func (c *cache) mark(r *resident) {
	if c.maxIdle == 0 {
		return
	}
	for _, e := range r.entry.at.entries {
		if o := e.owner; o.idle && o.length == r.length {
			o.marked = true
			c.wake(o)
			c.sleep(o)
			return
		}
	}
	id, ok := c.takeID(nil)
	if !ok {
		return
	}
	o := c.copy(r, id, r.entry.salt, r.length)
	switch {
	case o == nil:
		return
	case o.length == 0:
		c.free = append(c.free, id)
	default:
		o.marked = true
		c.retain(o)
	}
}
