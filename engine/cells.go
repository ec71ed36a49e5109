package engine

// ledger accounts for the KV cells of all resident sequences, cell for cell as
// the backend does: a copied prefix is held once, by everybody who has it
// (Limits.Unified), and a cell is free when its last holder lets go.
//
// The cells form a tree of runs. A sequence is the path from a root to its last
// run, and a copy of a prefix is a second path through the same runs.
type ledger struct {
	shared bool // copies share cells
	used   int
	epoch  uint64 // of the current count; see begin
}

// run is a stretch of cells at consecutive positions with the same holders.
type run struct {
	parent *run
	start  int // position of its first cell
	n      int
	refs   int // sequences that end here + runs that continue it
	epoch  uint64
}

func (r *run) end() int { return r.start + r.n }

// extend adds n cells to the sequence that ends in tail (nil: a new one) and
// returns its new last run.
func (l *ledger) extend(tail *run, n int) *run {
	if tail == nil {
		tail = &run{refs: 1}
	} else if tail.refs > 1 {
		// The sequence's hold on tail becomes the hold of its continuation.
		tail = &run{parent: tail, start: tail.end(), refs: 1}
	}
	tail.n += n
	l.used += n
	return tail
}

// copyPrefix returns the last run of a new sequence that holds positions [0,n),
// n >= 1, of the one ending in tail.
func (l *ledger) copyPrefix(tail *run, n int) *run {
	if !l.shared {
		return l.extend(nil, n)
	}
	r := l.cut(tail, n)
	r.refs++
	return r
}

// truncate shortens a sequence to its first n cells and returns its last run.
func (l *ledger) truncate(tail *run, n int) *run {
	if n == 0 {
		l.release(tail)
		return nil
	}
	r := l.cut(tail, n)
	if r == tail {
		return r
	}
	r.refs++
	l.release(tail)
	return r
}

// cut returns the run of tail's path that ends at n, splitting one if needed.
func (l *ledger) cut(tail *run, n int) *run {
	r := tail
	for r.start >= n {
		r = r.parent
	}
	if r.end() == n {
		return r
	}
	// The upper part is new, so that whoever ends in r still does.
	head := &run{parent: r.parent, start: r.start, n: n - r.start, refs: 1, epoch: r.epoch}
	r.parent, r.start, r.n = head, n, r.end()-n
	return head
}

// release gives up a sequence.
func (l *ledger) release(r *run) {
	for r != nil {
		r.refs--
		if r.refs > 0 {
			return
		}
		l.used -= r.n
		r = r.parent
	}
}

// exclusive is how many cells release(tail) would free.
func (l *ledger) exclusive(tail *run) int {
	n := 0
	for r := tail; r != nil && r.refs == 1; r = r.parent {
		n += r.n
	}
	return n
}

// begin starts a count of distinct cells over several sequences.
func (l *ledger) begin() { l.epoch++ }

// count adds a sequence to the count and returns its cells not counted before.
func (l *ledger) count(tail *run) int {
	n := 0
	for r := tail; r != nil && r.epoch != l.epoch; r = r.parent {
		r.epoch = l.epoch
		n += r.n
	}
	return n
}

// countPrefix is what count would return for the first n cells of a sequence,
// without adding them.
func (l *ledger) countPrefix(tail *run, n int) int {
	if !l.shared {
		return n
	}
	sum := 0
	for r := tail; r != nil && r.epoch != l.epoch; r = r.parent {
		sum += max(0, min(r.end(), n)-r.start)
	}
	return sum
}
