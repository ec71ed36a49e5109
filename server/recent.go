package server

import (
	"encoding/json"
	"sync"
)

// Bounds of the memory of output items.
const (
	maxRecentItems = 20_000
	maxRecentBytes = 32 << 20
)

// recentItems remembers the latest output items, so that a client may send an
// item_reference instead of the item. The oldest go first; another key's items
// are not found. Any goroutine.
type recentItems struct {
	mu    sync.Mutex
	items map[string]json.RawMessage
	order []string // keys, oldest first
	bytes int
}

func newRecentItems() *recentItems { return &recentItems{items: map[string]json.RawMessage{}} }

func recentKey(owner, id string) string { return owner + "\x00" + id }

// put takes a copy of the item.
func (r *recentItems) put(owner, id string, item []byte) {
	if len(item) > maxRecentBytes/8 {
		return
	}
	key := recentKey(owner, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.items[key] = append(json.RawMessage(nil), item...)
	r.order = append(r.order, key)
	r.bytes += len(item)
	for len(r.order) > maxRecentItems || r.bytes > maxRecentBytes {
		oldest := r.order[0]
		r.bytes -= len(r.items[oldest])
		delete(r.items, oldest)
		r.order = r.order[1:]
	}
}

func (r *recentItems) get(owner, id string) json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.items[recentKey(owner, id)]
}
