package enginetest

import (
	"errors"
	"time"

	"quern/engine"
)

// Step implements engine.Backend.
func (f *Fake) Step(b *engine.Batch) error {
	f.enter("Step")
	defer f.leave()
	select {
	case <-f.aborted:
	default:
	}
	if err := f.check(b); err != nil {
		return err
	}
	if f.OnStep != nil {
		f.OnStep(b)
	}
	f.steps++
	if !f.kv.room(b) {
		return engine.ErrNoCells
	}
	if f.Fail != nil {
		if err := f.Fail(f.steps, b); err != nil {
			if !errors.Is(err, engine.ErrNoCells) {
				f.compute(b, b.N/2)
			}
			return err
		}
	}
	if f.Cost != nil && f.sleep(f.Cost(b)) {
		f.compute(b, b.N/2)
		return engine.ErrAborted
	}
	f.compute(b, b.N)
	f.sample(b)
	f.rows += b.N
	return nil
}

// check is strict about what a batch may hold.
func (f *Fake) check(b *engine.Batch) error {
	if b != &f.batch {
		return f.misuse("Step with a foreign batch")
	}
	if b.N < 1 || b.N > f.limits.Batch {
		return f.misuse("Step with %d rows of %d", b.N, f.limits.Batch)
	}
	for id, cells := range f.kv.seqs {
		f.next[id] = len(cells)
	}
	for i := range b.N {
		id := b.Seq[i]
		if !f.valid(id) {
			return f.misuse("row %d: sequence %d of %d", i, id, f.limits.Seqs)
		}
		at := f.next[id]
		seen := at > len(f.kv.seqs[id])
		s, _ := b.Sampler[i].(*Sampler)
		switch {
		case int(b.Pos[i]) != at:
			return f.misuse("row %d: position %d of sequence %d, whose next one is %d", i, b.Pos[i], id, at)
		case seen && b.Seq[i-1] != id:
			return f.misuse("row %d: rows of sequence %d are not together", i, id)
		case b.Token[i] < 0 || int(b.Token[i]) >= f.Vocab:
			return f.misuse("row %d: token %d of %d", i, b.Token[i], f.Vocab)
		case s == nil || s.closed.Load():
			return f.misuse("row %d: sampler is missing or closed", i)
		case b.Want[i] < -1 || seen && b.Want[i-1] >= 0 && (b.Want[i] < 0 || b.Sampler[i-1] != b.Sampler[i]):
			return f.misuse("row %d: want %d, after %d", i, b.Want[i], b.Want[max(0, i-1)])
		case seen && b.Want[i-1] >= 0 && !f.limits.Partial:
			return f.misuse("row %d: a draft, and it could not be taken back", i)
		}
		f.next[id] = at + 1
	}
	return nil
}

// sleep takes the time of a step and says whether it was aborted.
func (f *Fake) sleep(d time.Duration) bool {
	if d <= 0 {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-f.aborted:
		return true
	}
}

func (f *Fake) compute(b *engine.Batch, rows int) {
	for i := range rows {
		f.kv.add(b.Seq[i], b.Token[i])
		s := b.Sampler[i].(*Sampler)
		s.Rows++
		if len(s.Accepted) == 0 && int(b.Pos[i]) < len(s.Prompt) {
			s.PromptRows++
		}
	}
}

func (f *Fake) sample(b *engine.Batch) {
	for i := range b.N {
		if b.Want[i] < 0 {
			b.Out[i] = engine.Output{Token: -1}
			continue
		}
		if i > 0 && b.Seq[i] == b.Seq[i-1] && b.Want[i-1] >= 0 && (b.Out[i-1].Token != b.Token[i] || b.Token[i] == f.EOG) {
			b.Out[i] = engine.Output{Token: -1, Skipped: true}
			continue
		}
		s := b.Sampler[i].(*Sampler)
		cells := f.kv.seqs[b.Seq[i]][:b.Pos[i]+1]
		if f.RowError != nil || f.Next != nil {
			f.history = f.history[:0]
			for _, c := range cells {
				f.history = append(f.history, c.token)
			}
		}
		if f.RowError != nil {
			if err := f.RowError(f.history, s); err != nil {
				b.Out[i] = engine.Output{Token: -1, Err: err}
				continue
			}
		}
		o := engine.Output{}
		if f.Next != nil {
			o.Token = f.Next(f.history, s)
		} else {
			last := cells[len(cells)-1]
			o.Token = f.token(last.hash, last.token, s.Params.Seed)
		}
		if n := int(b.Want[i]) - 1; n >= 0 {
			o.Logprob = -float32(o.Token) / 1000
			f.tops[i] = f.tops[i][:0]
			for k := range n {
				f.tops[i] = append(f.tops[i], engine.TokenLogprob{Token: o.Token + engine.Token(k), Logprob: o.Logprob - float32(k)})
			}
			o.Top = f.tops[i]
		}
		s.Accepted = append(s.Accepted, o.Token)
		b.Out[i] = o
	}
}

// token is what follows a history with this hash and this last token.
func (f *Fake) token(hash uint64, last engine.Token, seed uint64) engine.Token {
	h := mix(hash ^ seed)
	if f.EOG >= 0 && h%uint64(f.EOGEvery) == 0 {
		return f.EOG
	}
	variety := uint64(f.Vocab)
	if f.Habit > 0 && h>>32%uint64(f.Habit) != 0 {
		h, variety = mix(uint64(last)^seed), 16
	}
	t := engine.Token(h >> 8 % variety)
	if t == f.EOG {
		t = (t + 1) % engine.Token(f.Vocab)
	}
	return t
}
