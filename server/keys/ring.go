package keys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Sources is where the keys of a node stand.
type Sources struct {
	Fixed  []string // in the clear, without limits
	Plain  string   // file for ReadPlain; "" is none
	File   string   // keys file; "" is none
	Ledger string   // "" is File with .ledger behind
}

// Ring holds the keys of a running node.
type Ring struct {
	sources Sources

	mu      sync.Mutex // of reloads
	seen    stamp      // of the files, when they were last read
	ledger  *ledger    // opened with the first balance
	holders atomic.Pointer[map[Hash]*Holder]
	named   atomic.Pointer[[]*Holder] // those of the keys file, in its order
}

// Open reads the keys. Close must be called.
func Open(s Sources) (*Ring, error) {
	if s.Ledger == "" {
		s.Ledger = LedgerOf(s.File)
	}
	r := &Ring{sources: s}
	r.holders.Store(&map[Hash]*Holder{})
	if err := r.Reload(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Fixed is a ring of keys in the clear, without limits. It needs no Close.
func Fixed(list ...string) *Ring {
	r := &Ring{sources: Sources{Fixed: list}}
	next := map[Hash]*Holder{}
	for _, key := range list {
		next[HashOf(key)] = &Holder{hash: HashOf(key)}
	}
	r.holders.Store(&next)
	return r
}

// LedgerOf is the ledger of a keys file that none is named for.
func LedgerOf(file string) string { return file + ".ledger" }

// Public says that everybody may call the node: no keys are configured. A keys
// file makes a node private, even one without keys.
func (r *Ring) Public() bool {
	return len(r.sources.Fixed) == 0 && r.sources.Plain == "" && r.sources.File == ""
}

// HasFile says whether there is something to reload.
func (r *Ring) HasFile() bool { return r.sources.Plain != "" || r.sources.File != "" }

// Len is the number of keys.
func (r *Ring) Len() int { return len(*r.holders.Load()) }

// Find returns the holder of a key, or nil. The look-up is by digest: the time
// that it takes tells about the digest of what the caller sent, and nothing that
// helps to guess a key.
func (r *Ring) Find(key string) *Holder { return (*r.holders.Load())[HashOf(key)] }

// Named returns the holders of the keys file.
func (r *Ring) Named() []*Holder {
	if list := r.named.Load(); list != nil {
		return *list
	}
	return nil
}

// Reload reads the files again. After an error the keys are what they were.
// Requests that run go on, also those of keys that are gone.
func (r *Ring) Reload() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = r.look() // before the reading: what changes meanwhile is read again
	plain := r.sources.Fixed
	if r.sources.Plain != "" {
		more, err := ReadPlain(r.sources.Plain)
		if err != nil {
			return err
		}
		plain = append(append([]string(nil), plain...), more...)
	}
	var list []Key
	if r.sources.File != "" {
		var err error
		if list, err = ReadFile(r.sources.File); err != nil {
			return err
		}
	}
	return r.replace(plain, list, time.Now())
}

func (r *Ring) replace(plain []string, list []Key, now time.Time) error {
	old, next := *r.holders.Load(), map[Hash]*Holder{}
	named := make([]*Holder, 0, len(list))
	made := make([]*Holder, len(list))
	for i := range list { // all that can fail comes before any change
		if old[list[i].Hash] == nil || list[i].Balance != nil && old[list[i].Hash].ledger == nil {
			h, err := r.holder(list[i])
			if err != nil {
				return err
			}
			made[i] = h
		}
	}
	for i, k := range list {
		h := made[i]
		if h == nil {
			h = old[k.Hash]
		}
		h.update(k, now)
		next[k.Hash] = h
		named = append(named, h)
	}
	for _, key := range plain {
		hash := HashOf(key)
		switch {
		case key == "" || next[hash] != nil: // an entry of the file says more
		case old[hash] != nil:
			h := old[hash]
			h.update(Key{Hash: hash}, now)
			next[hash] = h
		default:
			next[hash] = &Holder{hash: hash}
		}
	}
	r.holders.Store(&next)
	r.named.Store(&named)
	for hash, h := range old {
		if next[hash] == nil {
			h.revoke() // connections that it has opened are left to it
		}
	}
	return nil
}

// holder makes a holder, with what its key has spent before.
func (r *Ring) holder(k Key) (*Holder, error) {
	h := &Holder{hash: k.Hash}
	if k.Balance == nil {
		return h, nil
	}
	if r.ledger == nil {
		l, err := openLedger(r.sources.Ledger)
		if err != nil {
			return nil, err
		}
		r.ledger = l
	}
	spent, err := r.ledger.spent(k.Hash)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	h.ledger, h.spent = r.ledger, spent
	return h, nil
}

// Watch reloads when a file has changed, until ctx ends. It looks instead of
// being told: that also works for files on a network and mounted secrets.
func (r *Ring) Watch(ctx context.Context, every time.Duration, log *slog.Logger) {
	if !r.HasFile() {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if r.changed() {
			r.Tell(log, "a file of keys has changed")
		}
	}
}

// Tell reloads and logs what came of it.
func (r *Ring) Tell(log *slog.Logger, why string) {
	switch err := r.Reload(); {
	case err != nil:
		log.Error("the keys can't be read again, so they stay as they were", "why", why, "error", err)
	case !r.HasFile():
		log.Info("keys reloaded: there is no keys file, so nothing has changed", "why", why)
	default:
		log.Info("keys reloaded", "why", why, "keys", r.Len())
	}
}

// stamp tells versions of the files apart.
type stamp struct {
	plainTime, fileTime time.Time
	plainSize, fileSize int64
}

func (r *Ring) changed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.look() != r.seen
}

func (r *Ring) look() (s stamp) {
	if info, err := os.Stat(r.sources.Plain); err == nil {
		s.plainTime, s.plainSize = info.ModTime(), info.Size()
	}
	if info, err := os.Stat(r.sources.File); err == nil {
		s.fileTime, s.fileSize = info.ModTime(), info.Size()
	}
	return s
}

// Close ends the ledger; no request may settle after it.
func (r *Ring) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ledger == nil {
		return nil
	}
	l := r.ledger
	r.ledger = nil
	return l.close()
}
