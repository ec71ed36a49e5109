package engine

import (
	"errors"
	"log/slog"
)

// cache owns the backend's sequence ids: it is the only caller of SeqCopy and
// SeqRemove, knows which tokens each id holds, and finds prefixes to reuse among
// all of them, running or idle.
type cache struct {
	backend Backend
	limits  Limits
	log     *slog.Logger
	maxIdle int
	tiers   *tiers // get what is evicted; nil: nobody does

	ledger ledger
	free   []SeqID
	idle   []*resident // least recently used first
	index  index[*resident]
	// ceiling is how many cells are trusted to exist. A backend that found no
	// room earlier than the ledger did lowers it; see refused.
	ceiling   int
	evictions uint64
}

// resident is what one sequence id of the backend holds.
type resident struct {
	id     SeqID
	tokens []Token // its first length tokens are in the KV
	length int
	tail   *run
	entry  entry[*resident]
	idle   bool // nobody runs on it: it is kept for its prefix
	saved  int  // so many of its tokens the tiers have, or were offered
	pinned bool // somebody asked to keep it
	marked bool // it is there to be copied, see mark.go
}

// match is the longest reusable prefix for a prompt: n tokens held by from.
type match struct {
	n    int
	from *resident
}

func newCache(b Backend, c Config) *cache {
	l := b.Limits()
	k := &cache{
		backend: b, limits: l, log: c.Logger, maxIdle: c.MaxIdle,
		ledger:  ledger{shared: l.Unified},
		index:   index[*resident]{},
		ceiling: l.Cells,
	}
	for id := l.Seqs - 1; id >= 0; id-- {
		k.free = append(k.free, SeqID(id))
	}
	return k
}

// lookup finds the longest reusable prefix of a prompt. The last token is left
// out, since its logits are needed.
func (c *cache) lookup(salt string, prompt []Token) match {
	prompt = prompt[:len(prompt)-1]
	n, at := c.index.lookup(salt, prompt)
	if at == nil || n == 0 {
		return match{}
	}
	if at.depth == n {
		for _, e := range at.entries {
			if r := e.owner; r.idle && r.length == n {
				return match{n, r}
			}
		}
	}
	if c.limits.Partial {
		return match{n, at.first().owner}
	}
	// Only a sequence that ends where the prompt goes on can be continued.
	for ; at.parent != nil; at = at.parent {
		if at.depth > n {
			continue
		}
		for _, e := range at.entries {
			if e.owner.length == at.depth {
				return match{at.depth, e.owner}
			}
		}
	}
	return match{}
}

// acquire returns a sequence for a new run that holds the matched prefix, or
// nil if no id can be had.
func (c *cache) acquire(salt string, m match) *resident {
	if m.n > 0 && m.from.idle && m.from.length == m.n {
		c.wake(m.from)
		if !m.from.marked {
			return m.from
		}
		c.sleep(m.from) // as used last
	}
	id, ok := c.takeID(m.from)
	if !ok {
		if m.n == 0 || !m.from.idle || !c.truncate(m.from, m.n) {
			return nil
		}
		c.wake(m.from)
		return m.from
	}
	if m.n == 0 {
		r := &resident{id: id}
		r.entry = entry[*resident]{owner: r, salt: salt}
		return r
	}
	return c.copy(m.from, id, salt, m.n)
}

// copy makes the first n tokens of from those of the free id: none of them if the
// backend can't, and nil if the id is lost by that.
func (c *cache) copy(from *resident, id SeqID, salt string, n int) *resident {
	r := &resident{id: id}
	r.entry = entry[*resident]{owner: r, salt: salt}
	if err := c.backend.SeqCopy(from.id, id, n); err != nil {
		c.log.Error("copy of a sequence failed", "src", from.id, "dst", id, "n", n, "err", err)
		if err := c.backend.SeqRemove(id, 0); err != nil {
			c.log.Error("sequence id lost", "seq", id, "err", err)
			return nil
		}
		return r
	}
	r.tail = c.ledger.copyPrefix(from.tail, n)
	r.tokens = from.tokens
	r.length = n
	c.publish(r)
	return r
}

// grow records that n more of tokens are in the KV of r.
func (c *cache) grow(r *resident, tokens []Token, n int) {
	r.tokens = tokens
	r.length += n
	r.tail = c.ledger.extend(r.tail, n)
}

// errTail says that a sequence holds more than it should.
var errTail = errors.New("the end of a block can't be removed")

// restore adds a block to r and keeps its first tokens, which are the next of
// the sequence's.
func (c *cache) restore(b StateBackend, r *resident, tokens []Token, what *block, keep int) error {
	n := len(what.tokens)
	if err := b.SeqRestore(r.id, r.length, r.length+n, what.slot[:what.size]); err != nil {
		if errors.Is(err, ErrNoCells) {
			c.refused(n)
		}
		return err
	}
	c.grow(r, tokens, n)
	if keep < n && !c.truncate(r, r.length-n+keep) {
		return errTail
	}
	return nil
}

// publish lets lookups find all that r holds.
func (c *cache) publish(r *resident) { c.index.insert(&r.entry, r.tokens[:r.length]) }

// retain keeps r for its prefix, unless others hold the same.
func (c *cache) retain(r *resident) {
	if r.length == 0 || c.maxIdle == 0 {
		c.tiers.save(r, mostBlocks)
		c.drop(r)
		return
	}
	c.publish(r)
	if c.limits.Partial {
		if o := r.cover(); o != nil {
			if o.idle {
				c.wake(o)
				c.sleep(o)
			}
			c.drop(r)
			return
		}
		c.dropPrefixes(r)
	}
	c.sleep(r)
	for len(c.idle) > c.maxIdle {
		c.evict(c.idle[0])
	}
}

// cover returns another published resident that holds all that r holds.
func (r *resident) cover() *resident {
	at := r.entry.at
	for _, e := range at.entries {
		if e.owner != r {
			return e.owner
		}
	}
	if len(at.children) > 0 {
		return at.children[0].first().owner
	}
	return nil
}

// dropPrefixes removes the idle sequences all of which r holds as well.
func (c *cache) dropPrefixes(r *resident) {
	var covered []*resident
	for at := r.entry.at.parent; at != nil; at = at.parent {
		for _, e := range at.entries {
			if e.owner.idle {
				covered = append(covered, e.owner)
			}
		}
	}
	for _, o := range covered {
		c.wake(o)
		c.drop(o)
	}
}

// drop removes r from the backend and frees its id.
func (c *cache) drop(r *resident) {
	c.index.remove(&r.entry)
	if err := c.backend.SeqRemove(r.id, 0); err != nil {
		// Its cells stay occupied, so the ledger keeps them, too.
		c.log.Error("sequence id lost", "seq", r.id, "cells", r.length, "err", err)
		return
	}
	c.ledger.release(r.tail)
	r.tail, r.length = nil, 0
	c.free = append(c.free, r.id)
}

// truncate takes the tail off r and says whether that worked.
func (c *cache) truncate(r *resident, n int) bool {
	if err := c.backend.SeqRemove(r.id, n); err != nil {
		c.log.Error("removing the tail of a sequence failed", "seq", r.id, "from", n, "err", err)
		return false
	}
	r.tail = c.ledger.truncate(r.tail, n)
	r.length, r.saved = n, min(r.saved, n)
	if r.entry.at != nil && r.entry.at.depth > n {
		c.publish(r)
	}
	return true
}

// shorten takes off the backend what it holds of r's sequence beyond n tokens more
// than r has booked, and says whether that worked.
func (c *cache) shorten(r *resident, n int) bool {
	if err := c.backend.SeqRemove(r.id, r.length+n); err != nil {
		c.log.Error("removing drafts failed", "seq", r.id, "from", r.length+n, "err", err)
		return false
	}
	return true
}

// makeRoom evicts idle prefixes until n cells are free.
func (c *cache) makeRoom(n int) bool {
	if !c.limits.Unified {
		return true
	}
	for c.ceiling-c.ledger.used < n {
		if len(c.idle) == 0 {
			return false
		}
		r := c.idle[0]
		// Some more than needed at once, so that not every step has to.
		c.tiers.save(r, mostBlocks)
		short := n - (c.ceiling - c.ledger.used) + evictAhead
		if c.limits.Partial && c.ledger.exclusive(r.tail) > short && r.length-short >= evictAhead &&
			c.truncate(r, r.length-short) {
			c.evictions++
			continue
		}
		c.evict(r)
	}
	return true
}

// evictAhead is how many cells makeRoom frees beyond what is asked for, and the
// shortest prefix worth keeping when it shortens one.
const evictAhead = 64

func (c *cache) evict(r *resident) {
	c.evictions++
	c.tiers.save(r, mostBlocks)
	c.wake(r)
	c.drop(r)
}

// takeID returns a free id, evicting an idle sequence other than keep if needed.
func (c *cache) takeID(keep *resident) (SeqID, bool) {
	for i := 0; len(c.free) == 0 && i < len(c.idle); {
		if c.idle[i] == keep {
			i++
			continue
		}
		c.evict(c.idle[i])
	}
	if len(c.free) == 0 {
		return 0, false
	}
	id := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	return id, true
}

// flush drops all idle sequences.
func (c *cache) flush() {
	for len(c.idle) > 0 {
		r := c.idle[0]
		c.wake(r)
		c.drop(r)
	}
}

// refused tells the cache that the backend had no room for n more cells. It is
// believed: the next plans count with what there was. The trust comes back cell
// by cell with each step that works.
func (c *cache) refused(n int) { c.ceiling = max(0, min(c.ceiling, c.ledger.used+n-1)) }

func (c *cache) worked() { c.ceiling = min(c.ceiling+1, c.limits.Cells) }

func (c *cache) sleep(r *resident) {
	r.idle = true
	c.idle = append(c.idle, r)
}

func (c *cache) wake(r *resident) {
	r.idle = false
	c.idle = without(c.idle, r)
}
