package store

import (
	"container/list"
	"errors"
	"fmt"
	"sync"
	"time"
)

var (
	// ErrNotFound says that there is no such record, no longer, or not for this owner.
	ErrNotFound = errors.New("store: not found")
	// ErrTooLarge refuses a record that alone is more than the store may hold.
	ErrTooLarge = errors.New("store: the record is larger than the store")
)

// Options bound a store.
type Options struct {
	TTL      time.Duration // after which a record that nobody uses is gone; 0 keeps it
	MaxBytes int64         // of all packed records and their keys; 0 sets no limit
	Now      func() time.Time
}

// keeper holds packed records. It is called by one goroutine at a time.
type keeper interface {
	put(key string, packed []byte, used time.Time) error
	get(key string) ([]byte, error) // nil where there is none; valid until the next call
	touch(keys []string, used time.Time) error
	remove(keys []string) error
	// each goes through all, in any order.
	each(func(key string, size int, used time.Time)) error
	close() error
}

// Store keeps records. Make it with Memory or Disk.
type Store struct {
	opts Options

	mu     sync.Mutex
	keeper keeper
	index  map[string]*list.Element // of *entry
	order  *list.List               // least recently used first
	counts Counts
}

// Counts is what a store holds, and what has become of records since it was
// opened.
type Counts struct {
	Records         int
	Bytes, MaxBytes int64 // packed, with their keys; MaxBytes 0 is no limit

	Hits, Misses       uint64 // of Get
	Written, Deleted   uint64
	Expired, Displaced uint64 // gone for their age, or to make room
	Failed             uint64 // records that could not be written or read
}

// entry is what the index knows of a record.
type entry struct {
	key  string
	size int64
	used time.Time
}

func newStore(k keeper, o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{opts: o, keeper: k, index: map[string]*list.Element{}, order: list.New()}
}

// key joins owner and id; neither has a NUL.
func key(owner, id string) string { return owner + "\x00" + id }

// Put keeps a record, in place of one of the same owner and id. The least
// recently used make room for it.
func (s *Store) Put(r *Record) error {
	k, packed, now := key(r.Owner, r.ID), r.pack(), s.opts.Now()
	size := int64(len(k) + len(packed))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.MaxBytes > 0 && size > s.opts.MaxBytes {
		s.counts.Failed++
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, size, s.opts.MaxBytes)
	}
	s.forget(k)
	if err := s.makeRoom(size, now); err != nil {
		s.counts.Failed++
		return err
	}
	if err := s.keeper.put(k, packed, now); err != nil {
		s.counts.Failed++
		return fmt.Errorf("keep a response: %w", err)
	}
	s.counts.Written++
	s.note(&entry{key: k, size: size, used: now})
	return nil
}

// Get returns a record. The caller may keep its bytes.
func (s *Store) Get(owner, id string) (Record, error) {
	k := key(owner, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.makeRoom(0, s.opts.Now()); err != nil {
		return Record{}, err
	}
	if s.index[k] == nil {
		s.counts.Misses++
		return Record{}, ErrNotFound
	}
	packed, err := s.keeper.get(k)
	if err != nil {
		s.counts.Failed++
		return Record{}, fmt.Errorf("fetch a response: %w", err)
	}
	r, err := unpack(owner, id, packed)
	if err != nil {
		s.counts.Failed++
		s.forget(k)
		return Record{}, errors.Join(ErrNotFound, err, s.keeper.remove([]string{k}))
	}
	s.counts.Hits++
	return r, nil
}

// Touch notes that records are in use, which keeps them longer. What is not
// there is passed over.
func (s *Store) Touch(owner string, ids ...string) error {
	now := s.opts.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for _, id := range ids {
		k := key(owner, id)
		if e := s.index[k]; e != nil {
			e.Value.(*entry).used = now
			s.order.MoveToBack(e)
			keys = append(keys, k)
		}
	}
	return s.keeper.touch(keys, now)
}

// Delete drops a record.
func (s *Store) Delete(owner, id string) error {
	k := key(owner, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.makeRoom(0, s.opts.Now()); err != nil {
		return err
	}
	if s.index[k] == nil {
		return ErrNotFound
	}
	// Out of the index even where the keeper fails: it must not come back.
	s.forget(k)
	s.counts.Deleted++
	if err := s.keeper.remove([]string{k}); err != nil {
		return fmt.Errorf("delete a response: %w", err)
	}
	return nil
}

// Size tells how many records there are, and their bytes.
func (s *Store) Size() (records int, bytes int64) {
	c := s.Counts()
	return c.Records, c.Bytes
}

// Counts tells what the store has done.
func (s *Store) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	c.Records, c.MaxBytes = len(s.index), s.opts.MaxBytes
	return c
}

// Close ends the store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keeper.close()
}

// makeRoom drops what has expired, and the least recently used until there is
// room for so many bytes more.
func (s *Store) makeRoom(more int64, now time.Time) error {
	var gone []string
	for e := s.order.Front(); e != nil; e = s.order.Front() {
		oldest := e.Value.(*entry)
		expired := s.opts.TTL > 0 && now.Sub(oldest.used) >= s.opts.TTL
		full := s.opts.MaxBytes > 0 && s.counts.Bytes+more > s.opts.MaxBytes
		switch {
		case expired:
			s.counts.Expired++
		case full:
			s.counts.Displaced++
		}
		if !expired && !full {
			break
		}
		gone = append(gone, oldest.key)
		s.forget(oldest.key)
	}
	if err := s.keeper.remove(gone); err != nil {
		return fmt.Errorf("make room for a response: %w", err)
	}
	return nil
}

func (s *Store) note(e *entry) {
	s.index[e.key] = s.order.PushBack(e)
	s.counts.Bytes += e.size
}

func (s *Store) forget(k string) {
	if e := s.index[k]; e != nil {
		s.counts.Bytes -= s.order.Remove(e).(*entry).size
		delete(s.index, k)
	}
}
