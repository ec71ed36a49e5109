package keys

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Holder is a key of a running node with the use that is made of it. It outlives
// a reload of the file. A nil Holder is everybody, without limits.
type Holder struct {
	hash   Hash
	ledger *ledger // nil where no balance is kept

	mu       sync.Mutex
	key      Key
	revoked  bool
	running  int
	requests bucket
	tokens   bucket
	spent    milli
	reserved milli
	totals   Totals
}

// Totals is what a key has used since the node started, for metrics.
type Totals struct {
	Requests, Refused     uint64
	Input, Cached, Output uint64 // tokens
	Balance               int64  // whole tokens left
	HasBalance            bool
}

// LimitError refuses a request that is one too many.
type LimitError struct {
	What  string // requests per minute, tokens per minute, requests at once
	Limit int
	Wait  time.Duration // until it may pass; 0 where nobody knows
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the limit of this key is %d %s", e.Limit, e.What)
}

// BalanceError refuses a request that could cost more than is left.
type BalanceError struct{ Need, Left int64 } // whole tokens

func (e *BalanceError) Error() string {
	return fmt.Sprintf("the request may cost up to %d tokens, and the balance of this key is %d", e.Need, e.Left)
}

// update takes what a reload of the file has brought.
func (h *Holder) update(k Key, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.key, h.revoked = k, false
	h.requests.resize(k.RequestsPerMinute, now)
	h.tokens.resize(k.TokensPerMinute, now)
}

// Name is that of the file, or "" for a key without one.
func (h *Holder) Name() string {
	if h == nil {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.key.Name
}

// Weight is its share of a busy node beside other keys.
func (h *Holder) Weight() float64 {
	if h == nil {
		return 1
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return cmp.Or(h.key.Weight, 1)
}

// Owner tells holders apart without giving keys away.
func (h *Holder) Owner() string {
	if h == nil {
		return ""
	}
	return h.hash.Owner()
}

// Allows says whether the key may use a model that has these names.
func (h *Holder) Allows(names ...string) bool {
	if h == nil {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.key.Models) == 0 || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(h.key.Models, n) })
}

// Rates are the limits a minute as they stand.
func (h *Holder) Rates(now time.Time) (requests, tokens Rate) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.requests.rate(now), h.tokens.rate(now)
}

// Totals returns what was used.
func (h *Holder) Totals() Totals {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.totals
	if h.key.Balance != nil {
		t.HasBalance, t.Balance = true, whole(h.left())
	}
	return t
}

// left is what of the balance nobody has spent or reserved.
func (h *Holder) left() milli {
	return milli(h.key.Balance.Granted)*perToken - h.spent - h.reserved
}

// whole rounds down: what is left is not to seem more.
func whole(n milli) int64 { return int64(max(0, n) / perToken) }

// ErrRevoked refuses a request of a connection whose key is gone meanwhile.
var ErrRevoked = errors.New("the key is revoked")

func (h *Holder) revoke() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.revoked = true
}

// Enter begins a request; a *LimitError or ErrRevoked refuses it.
func (h *Holder) Enter(now time.Time) (*Lease, error) {
	if h == nil {
		return &Lease{}, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.revoked {
		return nil, ErrRevoked
	}
	if h.key.Concurrency > 0 && h.running >= h.key.Concurrency {
		h.totals.Refused++
		return nil, &LimitError{What: "requests at once", Limit: h.key.Concurrency}
	}
	if wait := h.requests.wait(1, now); wait > 0 {
		h.totals.Refused++
		return nil, &LimitError{What: "requests per minute", Limit: h.requests.limit, Wait: wait}
	}
	h.requests.take(1)
	h.running++
	h.totals.Requests++
	return &Lease{holder: h}, nil
}
