package tokenizer

// Ledger remembers how much text each token gave, so that what is sent along
// with tokens (log probabilities) follows the text out of a StopMatcher: a
// token is released when all its text is.
type Ledger struct {
	ends     []int // where the text of each unreleased token ends
	text     int   // bytes of text so far
	released int
	start    int // where the text of the first unreleased token begins
}

// Add notes the next token and the number of bytes of text it completed.
func (l *Ledger) Add(textBytes int) {
	l.text += textBytes
	l.ends = append(l.ends, l.text)
}

// Release returns the range of tokens, counted from the first, that the
// emitted bytes (StopMatcher.Emitted) set free since the last call.
func (l *Ledger) Release(emitted int) (from, to int) {
	n := 0
	for n < len(l.ends) && l.ends[n] <= emitted {
		n++
	}
	return l.take(n)
}

// Finish is Release at the end of the text: a token cut by a stop string
// counts if some of its text went out; the later ones are dropped.
func (l *Ledger) Finish(emitted int) (from, to int) {
	n := 0
	for start := l.start; n < len(l.ends) && (l.ends[n] <= emitted || start < emitted); n++ {
		start = l.ends[n]
	}
	return l.take(n)
}

func (l *Ledger) take(n int) (from, to int) {
	from, to = l.released, l.released+n
	l.released = to
	if n > 0 {
		l.start = l.ends[n-1]
	}
	l.ends = l.ends[:copy(l.ends, l.ends[n:])]
	return from, to
}
