package enginetest

import "quern/engine"

// Say makes every request get these tokens and then EOG, which must be set.
func (f *Fake) Say(tokens ...engine.Token) {
	f.Next = func(_ []engine.Token, s *Sampler) engine.Token {
		if n := len(s.Accepted); n < len(tokens) {
			return tokens[n]
		}
		return f.EOG
	}
}

// Alone returns the tokens that a request sampled by s would get if it ran on its
// own: at most max, ending with EOG if that comes first.
func (f *Fake) Alone(prompt []engine.Token, p engine.SamplerParams, max int) []engine.Token {
	return f.AloneWith(prompt, p, max, nil)
}

// AloneWith is Alone for a request that inserts tokens.
func (f *Fake) AloneWith(prompt []engine.Token, p engine.SamplerParams, max int, insert func(engine.Token) []engine.Token) []engine.Token {
	s := &Sampler{Params: p, fake: f}
	history := append([]engine.Token{}, prompt...)
	h := uint64(14695981039346656037)
	for _, t := range history {
		h = mix(h ^ uint64(t))
	}
	var out []engine.Token
	for len(out) < max {
		var t engine.Token
		if f.Next != nil {
			t = f.Next(history, s)
		} else {
			t = f.token(h, history[len(history)-1], p.Seed)
		}
		out = append(out, t)
		s.Accepted = append(s.Accepted, t)
		if t == f.EOG {
			break
		}
		next := []engine.Token{t}
		if insert != nil && len(out) < max {
			inserted := insert(t)
			inserted = inserted[:min(len(inserted), max-len(out))]
			s.Accepted, out = append(s.Accepted, inserted...), append(out, inserted...)
			next = append(next, inserted...)
		}
		for _, t := range next {
			history = append(history, t)
			h = mix(h ^ uint64(t))
		}
	}
	return out
}

// The following tell what a test may check once the engine is closed, or from
// within a hook.

// CellsUsed is the number of cells that some sequence holds.
func (f *Fake) CellsUsed() int { return f.kv.used }

// Sequences is the number of sequence ids that hold something.
func (f *Fake) Sequences() int {
	n := 0
	for _, s := range f.kv.seqs {
		if len(s) > 0 {
			n++
		}
	}
	return n
}

// Steps is the number of Step calls with a valid batch, Rows what they computed.
func (f *Fake) Steps() int { return f.steps }

// Rows is the number of rows computed by steps that worked.
func (f *Fake) Rows() int { return f.rows }

// Copied is the number of positions that SeqCopy was asked for.
func (f *Fake) Copied() int { return f.copied }

// Restored is the number of positions that SeqRestore gave back.
func (f *Fake) Restored() int { return f.restored }

// OpenSamplers is the number of samplers not yet closed; any goroutine may ask.
func (f *Fake) OpenSamplers() int { return int(f.samplers.Load()) }
