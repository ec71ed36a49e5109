package engine

import "math"

// A sequence whose end has occurred in it before may go on as it did there: when
// it edits code, quotes, or fills in JSON. Such a guess, a draft, is computed with
// the row that samples, as further rows of the same step, each of which is
// sampled as it would have been later if the guess is right. Which tokens come is
// up to the sampler alone. A row more costs less than a step more, so drafts pay
// where they come true often enough; how often, and what rows cost, is measured.

const (
	// maxDrafted bounds the draft rows of one step. Each may cost the backend
	// memory for a row of logits.
	maxDrafted = 32
	// minGain is by how much drafts must raise the tokens a second that a step
	// is expected to give: less is lost in what estimates are off.
	minGain = 1.03
	// maxLoss is what drafts of others may take off the rate of any stream.
	maxLoss = 0.1
	// probeEvery is after how many tokens a sequence that could draft, but
	// wouldn't gain, tries a single token, to find out if that is still so.
	probeEvery = 64
)

// drafts is what the loop keeps to decide on drafts.
type drafts struct {
	odds   odds // over all sequences
	rows   int  // draft rows of the step at hand
	hold   bool // the backend found no cells for the last ones: none in the next step
	offers []*sequence
}

// speculate adds drafts to a step, as far as rows and cells are to spare and as
// the step is expected to gain by it.
func (e *Engine) speculate(shares []share) {
	d := &e.drafts
	d.rows, d.offers = 0, d.offers[:0]
	decode, prefill := 0, 0
	for _, sh := range shares {
		s := e.running[sh.seq]
		s.draft, s.mayDraft = s.draft[:0], 0
		if e.pending[sh.seq] == 1 {
			decode++
		} else {
			prefill += sh.rows
		}
	}
	room := e.draftRoom(decode + prefill)
	if decode == 0 || d.hold || room <= 0 {
		return
	}
	for _, sh := range shares {
		if s := e.running[sh.seq]; e.pending[sh.seq] == 1 && e.mayDraft(s, room) {
			e.recall(s)
		}
	}
	e.askDrafter(shares, decode, prefill)
	for _, sh := range shares {
		if s := e.running[sh.seq]; len(s.draft) > 0 {
			d.offers = append(d.offers, s)
		}
	}
	if len(d.offers) == 0 {
		return
	}
	d.rows = d.choose(e.costs, decode, prefill, room)
	for _, s := range d.offers {
		s.draft = s.draft[:s.guess.take]
		e.stats.DraftedTokens += uint64(len(s.draft))
	}
}

// draftRoom is how many draft rows a step with so many others has room for
// without taking anything from anybody.
func (e *Engine) draftRoom(rows int) int {
	if e.config.MaxDraft == 0 {
		return 0
	}
	room := e.limits.Batch
	if e.rowCap > 0 {
		room = e.rowCap
	}
	if e.limits.Unified {
		room = min(room, e.cache.ceiling-e.cache.ledger.used)
	}
	return min(room-rows, maxDrafted)
}

// mayDraft says how long a draft of s may be, and whether there may be one. The
// token after a draft's last one is sampled, too, and is the last that the
// request may have. Where tokens may be inserted after any that is sampled, those
// after it can't be sampled in the same step.
func (e *Engine) mayDraft(s *sequence, room int) bool {
	if s.request.Insert == nil {
		s.mayDraft = max(0, min(room, e.config.MaxDraft, s.left()-1))
	}
	if s.mayDraft == 0 {
		return false
	}
	if s.guess == nil {
		s.guess = &guess{odds: e.drafts.odds, classes: make([]uint8, 0, e.config.MaxDraft)}
		s.draft = make([]Token, 0, e.config.MaxDraft)
	}
	return true
}

// recall drafts from what the sequence has said before.
func (e *Engine) recall(s *sequence) {
	s.draft = s.guess.propose(s.draft[:0], s.tokens, s.mayDraft)
	for i, t := range s.draft {
		if e.backend.IsEOG(t) { // nothing follows it
			s.draft = s.draft[:i]
			break
		}
	}
}

// askDrafter lets the draft model try where that is likelier to be right than
// what was recalled, and worth its time. Where others wait meanwhile, it may take
// no more than maxLoss of the step.
func (e *Engine) askDrafter(shares []share, decode, prefill int) {
	r := e.drafter
	step := e.costs.rows.step(decode) + e.costs.prefillRows(prefill)
	if r == nil || r.off() || step == 0 {
		return
	}
	t := terms{
		token: step / float64(decode), row: e.costs.rows.step(decode+1) - e.costs.rows.step(decode),
		spare: math.Inf(1), catchUp: step,
	}
	least := minGain*(step+float64(r.step)+t.row) - step
	r.round = r.round[:0]
	for _, sh := range shares {
		if s := e.running[sh.seq]; e.pending[sh.seq] == 1 && s.mayDraft > 0 && r.wants(s, least/t.token) {
			r.round = append(r.round, s)
		}
	}
	if len(r.round) < decode {
		t.spare, t.catchUp = maxLoss*step, maxLoss*step
	}
	r.draft(t)
}

// choose decides how much of each offer is taken, and returns the rows of all
// together: those for which the step is expected to give most tokens a second,
// the likeliest first, while no stream gets slower by more than maxLoss.
func (d *drafts) choose(c *costs, decode, prefill, room int) int {
	others := c.prefillRows(prefill)
	plain := c.rows.step(decode) + others
	best, bestRate := 0, minGain*float64(decode)/plain
	for _, s := range d.offers {
		s.guess.start()
	}
	for rows, gain := 1, 0.0; rows <= room; rows++ {
		s := d.likeliest()
		if s == nil {
			break
		}
		gain += s.guess.extend()
		took := c.rows.step(decode+rows) + others
		rate := (float64(decode) + gain) / took
		if rate > bestRate && (1+d.leastGain(decode))*plain/took >= 1-maxLoss {
			best, bestRate = rows, rate
			for _, s := range d.offers {
				s.guess.take = s.guess.tried
			}
		}
	}
	if best == 0 {
		return d.probe()
	}
	return best
}

// likeliest is the sequence whose next draft token is most likely to be right.
func (d *drafts) likeliest() *sequence {
	var best *sequence
	for _, s := range d.offers {
		if s.guess.tried < len(s.draft) && (best == nil || s.guess.next > best.guess.next) {
			best = s
		}
	}
	return best
}

// leastGain is how many tokens more than one the stream gets that gets least.
func (d *drafts) leastGain(decode int) float64 {
	if len(d.offers) < decode {
		return 0
	}
	least := d.offers[0].guess.gain
	for _, s := range d.offers {
		least = min(least, s.guess.gain)
	}
	return least
}

// probe drafts one token for whoever hasn't had a draft for long.
func (d *drafts) probe() int {
	for _, s := range d.offers {
		if s.guess.due() {
			s.guess.take = 1
			return 1
		}
	}
	return 0
}

// bookDraft takes over the outcome of a row and the drafts after it.
func (e *Engine) bookDraft(s *sequence, out []Output) {
	taken := 1
	for taken < len(out) && !out[taken].Skipped {
		taken++
	}
	drafted := len(out) - 1
	s.guess.learn(&e.drafts.odds, drafted, taken-1)
	e.stats.AcceptedTokens += uint64(taken - 1)
	s.stream.update(func(r *Result) {
		r.DraftedTokens += drafted
		r.AcceptedTokens += taken - 1
	})
	if taken < len(out) && !e.cache.shorten(s.kv, taken) {
		e.cache.drop(s.kv)
		s.kv = nil
	}
	goesOn := true
	for i := range taken {
		if s.kv != nil {
			e.cache.grow(s.kv, s.tokens, 1)
		}
		goesOn = e.sampled(s, &out[i])
	}
	if goesOn && s.kv == nil {
		e.requeue(s)
	}
}
