package tokenizer

import (
	"container/list"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
)

// cache keeps the tokens of text fragments, the least recently used leaving
// first. Entries are immutable.
type cache struct {
	limit int

	mu    sync.Mutex // guards what follows
	bytes int
	byKey map[cacheKey]*list.Element
	order *list.List // front: used last
}

// cacheKey holds a hash of the text, so that hashing long text needs no lock.
type cacheKey struct {
	hash    uint64
	literal bool
}

type cacheEntry struct {
	key  cacheKey
	text string
	toks []Token
}

// entryOverhead is roughly what an entry costs beside its text and tokens.
const entryOverhead = 192

func (e *cacheEntry) size() int { return len(e.text) + 4*len(e.toks) + entryOverhead }

func newCache(limit int) *cache {
	return &cache{limit: limit, byKey: map[cacheKey]*list.Element{}, order: list.New()}
}

func (t *Tokenizer) key(text string, literal bool) cacheKey {
	return cacheKey{maphash.String(t.seed, text), literal}
}

func (c *cache) get(key cacheKey, text string) ([]Token, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.byKey[key]
	if el == nil {
		return nil, false
	}
	e := el.Value.(*cacheEntry)
	if e.text != text {
		return nil, false
	}
	c.order.MoveToFront(el)
	return e.toks, true
}

// put keeps copies, so that an entry pins neither a prompt nor spare capacity.
func (c *cache) put(key cacheKey, text string, toks []Token) {
	size := len(text) + 4*len(toks) + entryOverhead
	if size > c.limit/4 {
		return
	}
	e := &cacheEntry{key, strings.Clone(text), slices.Clone(toks)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.byKey[key]; el != nil {
		c.drop(el)
	}
	c.byKey[key] = c.order.PushFront(e)
	c.bytes += size
	for c.bytes > c.limit {
		c.drop(c.order.Back())
	}
}

func (c *cache) drop(el *list.Element) {
	e := c.order.Remove(el).(*cacheEntry)
	delete(c.byKey, e.key)
	c.bytes -= e.size()
}
