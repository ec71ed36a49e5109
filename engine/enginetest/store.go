package enginetest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"quern/engine"
	"quern/engine/tier"
)

var errStore = errors.New("scripted failure of the store")

// Store is an engine.Store in memory. Set its hooks before it is given to an
// engine; they are called from one goroutine at a time.
type Store struct {
	// Delay is how long a call takes.
	Delay func() time.Duration
	// FailPut and FailGet make a call fail.
	FailPut, FailGet func() bool
	// Most is how many blocks it holds (default 1000); the oldest go first.
	Most int

	mu      sync.Mutex
	blocks  map[tier.Key]stored
	order   []tier.Key
	dropped func(tier.Key)
	closed  bool
	calls   sync.WaitGroup
}

type stored struct {
	block tier.Block
	state []byte
}

var _ engine.Store = (*Store)(nil)

// Blocks implements engine.Store. After a Close it opens the store again.
func (s *Store) Blocks(dropped func(tier.Key)) []tier.Block {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped, s.closed = dropped, false
	if s.blocks == nil {
		s.blocks = map[tier.Key]stored{}
	}
	var all []tier.Block
	for _, k := range s.order {
		all = append(all, s.blocks[k].block)
	}
	slices.SortStableFunc(all, func(a, b tier.Block) int { return a.Start - b.Start })
	return all
}

// later runs f after a delay, unless the store is closed.
func (s *Store) later(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	delay := time.Duration(0)
	if s.Delay != nil {
		delay = s.Delay()
	}
	s.calls.Go(func() {
		time.Sleep(delay)
		f()
	})
	return true
}

// Put implements engine.Store.
func (s *Store) Put(b tier.Block, state []byte, done func(error)) {
	if !s.later(func() { done(s.put(b, state)) }) {
		done(errStore)
	}
}

func (s *Store) put(b tier.Block, state []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.FailPut != nil && s.FailPut() {
		return errStore
	}
	if _, ok := s.blocks[b.Key]; !ok {
		s.order = append(s.order, b.Key)
	}
	s.blocks[b.Key] = stored{b, slices.Clone(state)}
	most := s.Most
	if most == 0 {
		most = 1000
	}
	for len(s.order) > most {
		k := s.order[0]
		s.drop(k)
		s.dropped(k)
	}
	return nil
}

// Get implements engine.Store.
func (s *Store) Get(k tier.Key, dst []byte, done func(int, time.Duration, error)) {
	start := time.Now()
	if !s.later(func() {
		n, err := s.get(k, dst)
		done(n, time.Since(start), err)
	}) {
		done(0, 0, errStore)
	}
}

func (s *Store) get(k tier.Key, dst []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.blocks[k]
	if !ok || s.FailGet != nil && s.FailGet() {
		s.drop(k)
		return 0, errStore
	}
	return copy(dst, b.state), nil
}

// Touch implements engine.Store.
func (s *Store) Touch([]tier.Key) {}

// Drop implements engine.Store.
func (s *Store) Drop(k tier.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(k)
}

func (s *Store) drop(k tier.Key) {
	delete(s.blocks, k)
	if i := slices.Index(s.order, k); i >= 0 {
		s.order = slices.Delete(s.order, i, i+1)
	}
}

// Usage implements engine.Store.
func (s *Store) Usage() (blocks int, bytes, capacity int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.blocks), int64(len(s.blocks)), int64(s.Most)
}

// Close implements engine.Store.
func (s *Store) Close(time.Duration) bool {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	return true
}
