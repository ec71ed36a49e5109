package engine

import (
	"cmp"
	"slices"
)

// fairness says whose turn it is among tenants, by virtual token counters
// (https://arxiv.org/abs/2401.00588): each tenant has a count of what it was
// served, divided by its weight, and the one with the least goes first. Within a
// tenant, and with one alone, the order is that of arrival.
type fairness struct {
	tenants map[string]*tenant
	active  []*tenant // those with requests that have not ended
	left    float64   // counter of the last one to become idle
}

// tenant is who a request is charged to.
type tenant struct {
	served float64 // tokens by weight
	active int     // requests that have not ended
	next   int     // where its candidate may be in the queue, while requests are admitted
}

// A prompt token that is computed costs one, an output token two: it needs a row
// of its own.
const (
	promptPrice = 1
	outputPrice = 2
)

// join counts a request in. Who comes back from idleness has no credit for it.
func (f *fairness) join(s *sequence) {
	if f.tenants == nil {
		f.tenants = map[string]*tenant{}
	}
	t := f.tenants[s.request.Tenant]
	if t == nil {
		t = &tenant{}
		f.tenants[s.request.Tenant] = t
	}
	if t.active == 0 {
		t.served = max(t.served, f.least())
		f.active = append(f.active, t)
	}
	t.active++
	s.tenant = t
}

// least is the counter of the active tenant that is served next.
func (f *fairness) least() float64 {
	if len(f.active) == 0 {
		return f.left
	}
	return slices.MinFunc(f.active, func(a, b *tenant) int { return cmp.Compare(a.served, b.served) }).served
}

// leave counts a request out.
func (f *fairness) leave(s *sequence) {
	t := s.tenant
	if t.active--; t.active > 0 {
		return
	}
	f.active = slices.DeleteFunc(f.active, func(a *tenant) bool { return a == t })
	f.left = t.served
	if len(f.active) == 0 {
		clear(f.tenants) // nobody is ahead of anybody
		f.left = 0
	}
}

// charge adds what a request was served.
func (s *sequence) charge(price float64) {
	weight := s.request.Weight
	if weight <= 0 {
		weight = 1
	}
	s.tenant.served += price / weight
}

// rewind makes every queued request a candidate.
func (f *fairness) rewind() {
	for _, t := range f.active {
		t.next = 0
	}
}

// next takes the candidate whose turn it is; nil when all have had theirs.
func (f *fairness) next(queue []*sequence) *sequence {
	var chosen *sequence
	for _, t := range f.active {
		for t.next < len(queue) && (queue[t.next].tenant != t || !queue[t.next].queued) {
			t.next++
		}
		if t.next == len(queue) {
			continue
		}
		if s := queue[t.next]; chosen == nil || before(s, chosen) < 0 {
			chosen = s
		}
	}
	if chosen != nil {
		chosen.tenant.next++
	}
	return chosen
}

// before orders two requests by turn.
func before(a, b *sequence) int {
	return cmp.Or(cmp.Compare(a.tenant.served, b.tenant.served), cmp.Compare(a.arrival, b.arrival))
}

// turns are the indices of running sequences by turn, nil where that is the order
// they are in.
func (f *fairness) turns(dst []int, running []*sequence) []int {
	if len(f.active) < 2 {
		return nil
	}
	dst = dst[:0]
	for i := range running {
		dst = append(dst, i)
	}
	slices.SortFunc(dst, func(a, b int) int { return before(running[a], running[b]) })
	return dst
}
