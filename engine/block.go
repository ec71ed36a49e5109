package engine

import (
	"container/heap"
	"slices"

	"quern/engine/tier"
)

// block is a stretch of saved prefixes: a node of a tree whose paths from a root
// are prefixes. All but the last block of a path have Config.BlockTokens tokens.
type block struct {
	parent   *block // nil: this is a root, without tokens
	children []*block
	start    int // position of the first token
	tokens   []Token
	key      tier.Key

	slot    []byte // its memory; nil: not in RAM
	size    int    // bytes of the state in slot; 0 while it is loaded
	disk    bool   // it can be loaded
	writing bool
	gone    bool // it is not in the tree any more
	lost    bool // because the store could not give it
	loaded  bool // it came from disk and has not been used since

	held   int // by requests, loads and writes that need the slot
	inRAM  int // children with a slot
	uses   int
	pinned bool
	rank   rank
	at     int // in the heap; -1: not in it
}

func (b *block) end() int { return b.start + len(b.tokens) }

// ready says whether it can be restored at once.
func (b *block) ready() bool { return b.size > 0 }

// child finds the child that begins with most of the tokens, and how many.
func (b *block) child(tokens []Token) (best *block, n int) {
	for _, c := range b.children {
		if k := common(c.tokens, tokens); k > n {
			best, n = c, k
		}
	}
	return best, n
}

// rank says which block goes first when memory is short. Its first part grows
// with every use and starts at that of the last block that had to go, so that
// frequent use counts for a while and not for ever (LFU with dynamic aging).
type rank struct {
	uses   uint64
	recent uint64
}

func (r rank) less(o rank) bool {
	return r.uses < o.uses || r.uses == o.uses && r.recent < o.recent
}

// blockHeap has the blocks that may lose their slots, lowest rank first.
type blockHeap []*block

var _ heap.Interface = (*blockHeap)(nil)

func (h blockHeap) Len() int           { return len(h) }
func (h blockHeap) Less(i, j int) bool { return h[i].rank.less(h[j].rank) }
func (h blockHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *blockHeap) Push(x any) {
	b := x.(*block)
	b.at = len(*h)
	*h = append(*h, b)
}

// Pop implements heap.Interface.
func (h *blockHeap) Pop() any {
	last := len(*h) - 1
	b := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	b.at = -1
	return b
}

// settle puts a block into the heap or takes it out, as its state demands: it
// may go if nobody needs its slot and none of its children has one.
func (h *blockHeap) settle(b *block) {
	may := b.slot != nil && b.held == 0 && b.inRAM == 0
	switch {
	case may && b.at < 0:
		heap.Push(h, b)
	case may:
		heap.Fix(h, b.at)
	case b.at >= 0:
		heap.Remove(h, b.at)
	}
}

// detach takes b out of its parent's children.
func (b *block) detach() {
	b.gone = true
	if i := slices.Index(b.parent.children, b); i >= 0 {
		b.parent.children = slices.Delete(b.parent.children, i, i+1)
	}
}
