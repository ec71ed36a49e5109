package keys

import "time"

// Lease is one request of a holder, from Enter to Leave. It belongs to the
// goroutine of its request.
type Lease struct {
	holder  *Holder // nil: without limits
	tokens  float64 // taken of the tokens a minute
	balance milli   // reserved of the balance
	left    bool
}

// Estimate is what a request may use.
type Estimate struct {
	Input  int // tokens of the prompt
	Output int // the most that the answer can have
	// Asked is the limit of the answer that the request itself sets, or 0. A
	// request without one is not held to have the whole context as its rate: what
	// it uses is counted at its end.
	Asked int
}

// Reserve takes what the request may use out of the limits of its key, on
// top of what it has reserved before. The error is a *LimitError or a *BalanceError.
func (l *Lease) Reserve(e Estimate, now time.Time) error {
	h := l.holder
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	tokens := float64(e.Input + e.Asked)
	if wait := h.tokens.wait(tokens, now); wait > 0 {
		h.totals.Refused++
		return &LimitError{What: "tokens per minute", Limit: h.tokens.limit, Wait: wait}
	}
	if b := h.key.Balance; b != nil {
		need := max(b.Price.cost(Usage{Input: e.Input, Output: e.Output}),
			b.Price.cost(Usage{Input: e.Input, Cached: e.Input, Output: e.Output}))
		if left := h.left(); need > left {
			h.totals.Refused++
			return &BalanceError{Need: int64((need + perToken - 1) / perToken), Left: whole(left)}
		}
		h.reserved += need
		l.balance += need
	}
	h.tokens.take(tokens)
	l.tokens += tokens
	return nil
}

// Settle puts what was used in place of what is reserved. When it returns
// without an error, what was spent is on disk.
func (l *Lease) Settle(u Usage) error {
	h := l.holder
	if h == nil {
		return nil
	}
	cost := h.settle(l, u)
	if cost == 0 || h.ledger == nil {
		return nil
	}
	return h.ledger.add(h.hash, cost)
}

func (h *Holder) settle(l *Lease, u Usage) (cost milli) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokens.take(float64(u.Input+u.Output) - l.tokens)
	h.reserved -= l.balance
	if h.key.Balance != nil {
		cost = h.key.Balance.Price.cost(u)
		h.spent += cost
	}
	h.totals.Input += uint64(u.Input)
	h.totals.Cached += uint64(u.Cached)
	h.totals.Output += uint64(u.Output)
	l.tokens, l.balance = 0, 0
	return cost
}

// Leave ends the request and gives back what is reserved and not settled. It may
// be called again.
func (l *Lease) Leave() {
	h := l.holder
	if h == nil || l.left {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokens.take(-l.tokens)
	h.reserved -= l.balance
	h.running--
	l.tokens, l.balance, l.left = 0, 0, true
}
