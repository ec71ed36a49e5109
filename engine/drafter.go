package engine

import (
	"errors"
	"log/slog"
	"math"
	"time"
)

// drafter is a smaller model of the same vocabulary, which drafts for sequences
// whose own past doesn't tell what follows. It is greedy: a token a step, for all
// sequences that take part, before the step that checks them. The engine
// goroutine owns it.
type drafter struct {
	backend Backend
	target  Backend // the model that checks
	log     *slog.Logger
	slots   []*slot // by sequence id

	step     average // seconds a step of a row each
	row      average // seconds a row of catching up
	failures int     // in a row
	round    []*sequence
}

const (
	// firstCatchUp is how many tokens a drafter's first step computes at most,
	// while it isn't known what they cost.
	firstCatchUp = 64
	// maxDraftFailures is how many failed steps in a row turn a drafter off.
	maxDraftFailures = 3
)

func newDrafter(target Backend, c Config) (*drafter, error) {
	d := &drafter{backend: c.Drafter, target: target, log: c.Logger}
	for id := range min(d.backend.Limits().Seqs, c.MaxRunning) {
		sampler, err := d.backend.NewSampler(SamplerParams{})
		if err != nil {
			return nil, errors.Join(err, d.close())
		}
		d.slots = append(d.slots, &slot{id: SeqID(id), sampler: sampler})
	}
	return d, nil
}

func (d *drafter) close() error {
	d.clear()
	for _, s := range d.slots {
		s.sampler.Close()
	}
	return d.backend.Close()
}

// terms are what a step's drafts have to go by, in seconds: what a token takes
// without drafts, and a row more; what all rounds may take, and what may be spent
// on tokens that were not computed yet.
type terms struct{ token, row, spare, catchUp float64 }

// wants says whether the model is likelier to be right than what s recalls, and
// likely enough to be worth its time, or is due to be tried; then s has a slot.
func (d *drafter) wants(s *sequence, least float64) bool {
	g, trust := s.guess, s.guess.trust()
	if len(s.draft) > 0 && g.odds[g.classes[0]] >= trust {
		return false
	}
	if trust < least && !g.due() {
		return false
	}
	return d.slotFor(s) != nil
}

// draft makes drafts, in rounds of a token each, for the sequences in d.round, as
// long as each further token is thought worth its time.
func (d *drafter) draft(t terms) {
	d.begin(t.catchUp)
	for d.compute() && len(d.round) > 0 {
		cost := float64(d.step)
		t.spare -= cost
		left := d.round[:0]
		for _, s := range d.round {
			if d.take(s) && s.guess.gainOn()*t.token > cost+t.row && t.spare > cost {
				left = append(left, s)
			}
		}
		d.round = left
		d.goOn()
	}
}

// begin puts rows into the batch that bring the sequences up to their last token,
// as far as the time allows, and leaves in the round those that get there.
func (d *drafter) begin(seconds float64) {
	b := d.backend.Batch()
	b.N = 0
	rows := firstCatchUp
	if d.row > 0 {
		rows = int(min(seconds/float64(d.row), float64(len(b.Token))))
	}
	ready := d.round[:0]
	for _, s := range d.round {
		k := s.slot
		k.sync(s.tokens)
		n := min(len(s.tokens)-len(k.tokens), max(rows, 1), len(b.Token)-b.N)
		if n <= 0 || !d.knows(s.tokens[len(k.tokens):len(k.tokens)+n]) {
			continue
		}
		if k.stale && d.backend.SeqRemove(k.id, len(k.tokens)) != nil {
			d.drop(k)
			continue
		}
		k.stale = false
		rows -= n
		for i := range n {
			k.add(b, s.tokens[len(k.tokens)+i], len(k.tokens)+i, -1)
		}
		k.coming = n
		if len(k.tokens)+n == len(s.tokens) {
			b.Want[b.N-1] = 1
			k.row = b.N - 1
			s.draft, s.guess.classes = s.draft[:0], s.guess.classes[:0]
			ready = append(ready, s)
		}
	}
	d.round = ready
}

// goOn puts the last token of each draft into the batch.
func (d *drafter) goOn() {
	b := d.backend.Batch()
	b.N = 0
	for _, s := range d.round {
		s.slot.row, s.slot.coming = b.N, 1
		s.slot.add(b, s.draft[len(s.draft)-1], len(s.slot.tokens), 1)
	}
}

// knows says that the smaller model has the tokens: vocabularies may be padded to
// different lengths.
func (d *drafter) knows(tokens []Token) bool {
	vocab := Token(d.backend.Limits().Vocab)
	for _, t := range tokens {
		if vocab > 0 && t >= vocab {
			return false
		}
	}
	return true
}

// compute makes a step, if there is anything to compute, and says if it worked.
func (d *drafter) compute() bool {
	b := d.backend.Batch()
	if b.N == 0 {
		return false
	}
	start := time.Now()
	if err := d.backend.Step(b); err != nil {
		d.failed(err)
		return false
	}
	d.failures = 0
	took := time.Since(start).Seconds()
	switch {
	case b.N > 2*len(d.slots):
		d.row.add(took/float64(b.N), 0.3)
	case d.step > 0:
		d.step.add(min(took, 2*float64(d.step)), 0.2)
	default:
		d.step = average(took)
	}
	for i := range b.N {
		d.slots[b.Seq[i]].grow(b.Token[i])
	}
	return true
}

// take appends what the model says next to the draft of s, and says whether more
// may follow.
func (d *drafter) take(s *sequence) bool {
	o := &d.backend.Batch().Out[s.slot.row]
	vocab := Token(d.target.Limits().Vocab)
	if o.Err != nil || vocab > 0 && o.Token >= vocab || d.target.IsEOG(o.Token) {
		return false
	}
	s.draft = append(s.draft, o.Token)
	s.guess.modelled(math.Exp(float64(o.Logprob)))
	return len(s.draft) < s.mayDraft
}

// failed takes back what a step has left.
func (d *drafter) failed(err error) {
	if errors.Is(err, ErrNoCells) {
		d.log.Debug("no cells to draft in")
		d.clear()
		return
	}
	for _, k := range d.slots {
		if k.coming > 0 {
			d.drop(k)
		}
	}
	if errors.Is(err, ErrAborted) {
		return
	}
	d.failures++
	d.log.Error("step of the draft model failed", "in_a_row", d.failures, "err", err)
}

func (d *drafter) off() bool { return d.failures >= maxDraftFailures }
