package engine

import (
	"container/heap"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"quern/engine/tier"
)

// Store keeps blocks of saved prefixes beyond the memory of the process. Its
// calls only queue work: what they are told to call is called on other
// goroutines, once. *tier.Disk is one.
type Store interface {
	// Blocks lists what is there, each block after the one before it. From here
	// on, dropped is told of blocks that are there no more.
	Blocks(dropped func(tier.Key)) []tier.Block
	// Put writes a block. state must not change until done is called.
	Put(b tier.Block, state []byte, done func(error))
	// Get reads the state of a block into dst; done is told its length and how
	// long the reading itself took. After an error the block is gone.
	Get(k tier.Key, dst []byte, done func(n int, took time.Duration, err error))
	// Touch says that the blocks of a prefix, in order, have been of use.
	Touch(keys []tier.Key)
	Drop(k tier.Key)
	Usage() (blocks int, bytes, capacity int64)
	// Close finishes what is queued, within the time, and says whether no slice
	// is in use any more.
	Close(timeout time.Duration) bool
}

var _ Store = (*tier.Disk)(nil)

const (
	// mostBlocks bounds the books of the host tier where blocks are small.
	mostBlocks = 1 << 16
	// useWeight is how many turnovers of the memory one use of a block counts
	// for, against those that came and were not used; mostUses bounds how much
	// use counts. To be pinned is worth one use.
	useWeight = 8
	mostUses  = 8
	// mostWrites is how many blocks the store is given at once.
	mostWrites = 2
)

// tiers are the homes of prefixes below the KV cache: memory, and a Store below
// that. They belong to the engine's goroutine; call brings what other goroutines
// have to say onto it.
type tiers struct {
	backend StateBackend
	store   Store // nil: none
	log     *slog.Logger
	call    func(func())

	granule int // tokens of a block
	// leastSaved is the shortest prefix that is saved, leastTail the shortest
	// last block of one, leastGain the fewest tokens that are restored for a
	// request: less is computed as quickly as it is looked for.
	leastSaved, leastTail, leastGain int

	arena  *tier.Arena
	roots  map[tier.Key]*block
	stored map[tier.Key]*block // that are on disk
	heap   blockHeap
	aging  uint64 // rank.uses of the last block that had to go
	tick   uint64
	past   ghosts

	queue   []*block // to be written
	writing int

	// budget is how long saving may take in this turn of the loop.
	budget                  time.Duration
	saving, restoring, load average  // seconds a byte
	path                    []*block // of the last find or save
	stats                   tierCounts
}

var errNoTiers = errors.New("only models whose sequences can be cut, in a unified cache, can be saved in parts")

// newTiers returns nil if the configuration asks for none. It takes the store
// over, and closes it if it fails.
func newTiers(b Backend, c Config, call func(func())) (*tiers, error) {
	if c.CacheRAM <= 0 {
		return nil, closeStore(c.Store, nil)
	}
	sb, ok := b.(StateBackend)
	g := c.BlockTokens
	if !ok || sb.StateSize(g) == 0 {
		return nil, closeStore(c.Store, errNoTiers)
	}
	size := sb.StateSize(g)
	arena, err := tier.NewArena(min(c.CacheRAM, int64(mostBlocks)*int64(size)), size)
	if err != nil {
		return nil, closeStore(c.Store, fmt.Errorf("host tier: %w", err))
	}
	t := &tiers{
		backend: sb, store: c.Store, log: c.Logger, call: call, arena: arena,
		granule: g, leastSaved: g / 2, leastTail: g / 8, leastGain: max(1, g/8),
		roots: map[tier.Key]*block{}, stored: map[tier.Key]*block{}, past: newGhosts(g),
	}
	if t.store != nil {
		t.adopt(t.store.Blocks(func(k tier.Key) { call(func() { t.unstored(k) }) }))
	}
	return t, nil
}

func closeStore(s Store, err error) error {
	if s != nil {
		s.Close(time.Second)
	}
	return err
}

// adopt takes over what the store has from an earlier run.
func (t *tiers) adopt(found []tier.Block) {
	for _, f := range found {
		parent := t.stored[f.Parent]
		if f.Start == 0 {
			parent = t.rootOf(f.Parent)
		}
		if parent == nil || parent.end() != f.Start || len(f.Tokens) > t.granule {
			t.store.Drop(f.Key)
			continue
		}
		b := t.attach(parent, f.Tokens, f.Key)
		b.disk = true
		t.stored[b.key] = b
	}
}

func (t *tiers) rootOf(k tier.Key) *block {
	r := t.roots[k]
	if r == nil {
		r = &block{key: k, at: -1}
		t.roots[k] = r
	}
	return r
}

// attach adds a block to the tree; it has no state yet.
func (t *tiers) attach(parent *block, tokens []Token, k tier.Key) *block {
	b := &block{parent: parent, start: parent.end(), tokens: tokens, key: k, at: -1}
	parent.children = append(parent.children, b)
	return b
}

// find returns the blocks that hold the first n tokens of a prompt, the last one
// perhaps beyond n. The slice is valid until the next call.
func (t *tiers) find(salt string, prompt []Token) (path []*block, n int) {
	t.path = t.path[:0]
	at := t.roots[tier.RootKey(salt)]
	for at != nil && n < len(prompt) {
		c, k := at.child(prompt[n:])
		if c == nil || c.slot == nil && !c.disk {
			break
		}
		t.path = append(t.path, c)
		n += k
		if k < len(c.tokens) {
			break
		}
		at = c
	}
	return t.path, n
}

// use ranks a block as used.
func (t *tiers) use(b *block) {
	b.uses = min(b.uses+1, mostUses)
	t.refresh(b)
}

// refresh ranks a block as just seen.
func (t *tiers) refresh(b *block) {
	t.tick++
	uses := b.uses
	if b.pinned {
		uses++
	}
	b.rank = rank{t.aging + uint64(useWeight*uses) + 1, t.tick}
	t.heap.settle(b)
}

// hold keeps the slot of a block until release.
func (t *tiers) hold(b *block) {
	b.held++
	t.heap.settle(b)
}

func (t *tiers) release(b *block) {
	b.held--
	if b.gone && b.held == 0 && b.slot != nil {
		t.arena.Give(b.slot)
		b.slot, b.size = nil, 0
	}
	t.heap.settle(b)
}

// take returns a slot for a block, at the cost of another one if need be; nil if
// all are held.
func (t *tiers) take() []byte {
	for {
		if s := t.arena.Take(); s != nil {
			return s
		}
		if len(t.heap) == 0 {
			return nil
		}
		b := t.heap[0]
		t.aging = max(t.aging, b.rank.uses)
		t.stats.evicted++
		t.unload(b)
	}
}

// give lets b have a slot.
func (t *tiers) give(b *block, slot []byte) {
	b.slot = slot
	b.parent.inRAM++
	t.heap.settle(b.parent)
	t.heap.settle(b)
}

// unload takes its slot from b, which nobody holds, and the block out of the
// tree unless it is on disk.
func (t *tiers) unload(b *block) {
	t.leaveRAM(b)
	if !b.disk {
		t.past.add(b.key)
		t.forget(b)
	}
}

func (t *tiers) leaveRAM(b *block) {
	if b.slot == nil {
		return
	}
	b.parent.inRAM--
	if b.at >= 0 {
		heap.Remove(&t.heap, b.at)
	}
	b.size = 0
	if b.held == 0 {
		t.arena.Give(b.slot)
		b.slot = nil
	}
	t.heap.settle(b.parent)
}

// forget takes a block out of the tree, with all that follows it: without it
// they are of no use.
func (t *tiers) forget(b *block) {
	if b.gone {
		return
	}
	for len(b.children) > 0 {
		t.forget(b.children[len(b.children)-1])
	}
	if b.disk {
		b.disk = false
		delete(t.stored, b.key)
		t.store.Drop(b.key)
	}
	t.leaveRAM(b)
	b.detach()
	t.tidy(b.parent)
}

// tidy forgets a root that nothing needs any more.
func (t *tiers) tidy(r *block) {
	if r.parent == nil && len(r.children) == 0 && r.held == 0 {
		delete(t.roots, r.key)
	}
}

// unstored takes notice that the store has a block no more.
func (t *tiers) unstored(k tier.Key) {
	b := t.stored[k]
	if b == nil {
		return
	}
	delete(t.stored, k)
	b.disk = false
	if b.slot == nil {
		t.past.add(k)
		t.forget(b)
	}
}

// flush empties the tiers.
func (t *tiers) flush() {
	for _, r := range t.roots {
		for len(r.children) > 0 {
			t.forget(r.children[len(r.children)-1])
		}
	}
	t.past = newGhosts(t.granule)
}
