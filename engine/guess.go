package engine

// guess makes the drafts of one sequence and learns how often they come true.
type guess struct {
	ngrams  ngrams
	odds    odds
	seen    [len(odds{})]uint8 // guesses that the odds come from, up to some
	at      int                // where the last draft was found
	end     int                // how long the sequence was then
	matched int                // how many tokens before that place were those at the end
	rested  int                // steps in which it could have drafted since the last draft

	// While a step is put together: tokens tried and taken of the draft, how
	// many are likely to be right in all, and how likely the next one is.
	tried, take int
	gain, next  float64
}

// odds is how likely a draft token is to be right, by how many tokens before it
// are alike: a long match is a copy that goes on.
type odds [7]float64

var firstOdds = odds{0.1, 0.2, 0.3, 0.5, 0.6, 0.8, 0.9}

func class(matched int) int {
	switch {
	case matched <= 3:
		return matched - 1
	case matched <= 5:
		return 3
	case matched <= 8:
		return 4
	case matched <= 15:
		return 5
	}
	return 6
}

func (o *odds) learn(class int, right bool, weight float64) {
	p := &o[class]
	if right {
		*p += weight * (1 - *p)
	} else {
		*p -= weight * *p
	}
}

// propose appends up to n tokens to dst, which may follow the given ones. What
// it repeats may run into the draft itself.
func (g *guess) propose(dst, tokens []Token, n int) []Token {
	on := g.at + len(tokens) - g.end
	g.at, g.matched = g.ngrams.find(tokens, on)
	g.end = len(tokens)
	if g.matched == 0 {
		g.at = on
		return dst
	}
	for i := range n {
		if from := g.at + i; from < len(tokens) {
			dst = append(dst, tokens[from])
		} else {
			dst = append(dst, dst[from-len(tokens)])
		}
	}
	return dst
}

// start begins to try the tokens of the draft one after the other.
func (g *guess) start() {
	g.tried, g.take, g.gain = 0, 0, 0
	g.next = g.odds[class(g.matched)]
}

// extend tries one token more and returns how likely it is to be right.
func (g *guess) extend() float64 {
	p := g.next
	g.tried++
	g.gain += p
	g.next = p * g.odds[class(g.matched+g.tried)]
	return p
}

// learn takes in that of so many drafted tokens the first ones were right. The
// odds that a sequence begins with count as much as a few guesses of its own.
func (g *guess) learn(all *odds, drafted, right int) {
	for i := range min(right+1, drafted) {
		c := class(g.matched + i)
		g.seen[c] = min(g.seen[c]+1, 12)
		g.odds.learn(c, i < right, 1/float64(g.seen[c]+4))
		all.learn(c, i < right, 0.01)
	}
	g.rested = 0
}
