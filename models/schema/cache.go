package schema

import (
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
)

// Cache keeps compiled schemas, the least recently used ones falling out when
// their grammars exceed a size. A nil *Cache compiles every time. It is safe
// for concurrent use.
type Cache struct {
	mu    sync.Mutex
	limit int
	size  int
	order *list.List // of *cached, the latest first
	byKey map[cacheKey]*list.Element
}

type cacheKey [sha256.Size]byte

type cached struct {
	key  cacheKey
	c    *Compiled
	err  error
	size int
}

// NewCache makes a cache for about limit bytes of grammar.
func NewCache(limit int) *Cache {
	return &Cache{limit: limit, order: list.New(), byKey: map[cacheKey]*list.Element{}}
}

// Compile is the package's Compile, remembered, errors included.
func (c *Cache) Compile(schema json.RawMessage, o Options) (*Compiled, error) {
	return c.Remember(fmt.Sprintf("%+v", o), schema, func() (*Compiled, error) { return Compile(schema, o) })
}

// Remember returns what a source compiled to when it was last met under this
// kind, errors included, or compiles it.
func (c *Cache) Remember(kind string, source []byte, compile func() (*Compiled, error)) (*Compiled, error) {
	if c == nil {
		return compile()
	}
	h := sha256.New()
	fmt.Fprint(h, kind, " ")
	h.Write(source)
	key := cacheKey(h.Sum(nil))
	if e := c.lookup(key); e != nil {
		return e.c, e.err
	}
	e := &cached{key: key, size: 512}
	e.c, e.err = compile() // outside the lock: two may do the same work
	if e.c != nil {
		e.size += sizeOf(e.c.Rules)
		if m := e.c.member; m != nil {
			e.size += sizeOf(m.plainRules)
		}
	}
	c.store(e)
	return e.c, e.err
}

func sizeOf(rules []Rule) (size int) {
	for _, r := range rules {
		size += len(r.Name) + len(r.Body) + 32
	}
	return size
}

func (c *Cache) lookup(key cacheKey) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.byKey[key]
	if el == nil {
		return nil
	}
	c.order.MoveToFront(el)
	return el.Value.(*cached)
}

func (c *Cache) store(e *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[e.key] != nil {
		return
	}
	c.byKey[e.key] = c.order.PushFront(e)
	c.size += e.size
	for c.size > c.limit && c.order.Len() > 0 {
		last := c.order.Remove(c.order.Back()).(*cached)
		delete(c.byKey, last.key)
		c.size -= last.size
	}
}
