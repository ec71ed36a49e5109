package engine

// guess makes the drafts of one sequence and learns how often they come true.
type guess struct {
	ngrams  ngrams
	odds    odds
	seen    [len(odds{})]uint8 // guesses that the odds come from, up to some
	classes []uint8            // of the tokens of the draft
	at      int                // where the last draft was found
	end     int                // how long the sequence was then
	matched int                // how many tokens before that place were those at the end
	rested  int                // steps in which it could have drafted since the last draft

	// While a step is put together: tokens tried and taken of the draft, how
	// many are likely to be right in all, and how likely the next one is.
	tried, take int
	gain, next  float64
}

// odds is how likely a draft token is to be right, by class: how many tokens
// before it are alike, for a long match is a copy that goes on; and for tokens of
// a draft model, how likely that thinks them.
type odds [13]float64

const firstModelled = 7 // class
var firstOdds = odds{0.1, 0.2, 0.3, 0.5, 0.6, 0.8, 0.9, 0.3, 0.4, 0.55, 0.7, 0.85, 0.95}

func class(matched int) uint8 {
	switch {
	case matched <= 3:
		return uint8(matched - 1)
	case matched <= 5:
		return 3
	case matched <= 8:
		return 4
	case matched <= 15:
		return 5
	}
	return 6
}

func modelClass(likely float64) uint8 {
	c := uint8(firstModelled)
	for _, limit := range []float64{0.3, 0.5, 0.7, 0.85, 0.95} {
		if likely >= limit {
			c++
		}
	}
	return c
}

func (o *odds) learn(class uint8, right bool, weight float64) {
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
	g.classes = g.classes[:0]
	if g.matched == 0 {
		g.at = on
		return dst
	}
	for i := range n {
		g.classes = append(g.classes, class(g.matched+i))
		if from := g.at + i; from < len(tokens) {
			dst = append(dst, tokens[from])
		} else {
			dst = append(dst, dst[from-len(tokens)])
		}
	}
	return dst
}

// modelled takes in a token that a draft model has appended, and how likely that
// thinks it.
func (g *guess) modelled(likely float64) { g.classes = append(g.classes, modelClass(likely)) }

// gainOn is how likely all of the draft so far and one token more is to be right.
func (g *guess) gainOn() float64 {
	p := g.trust()
	for _, c := range g.classes {
		p *= g.odds[c]
	}
	return p
}

// trust is how often a draft model's tokens are right, over its classes.
func (g *guess) trust() float64 {
	sum, n := 0.0, 0.0
	for c := firstModelled; c < len(g.odds); c++ {
		weight := 1 + float64(g.seen[c])
		sum, n = sum+weight*g.odds[c], n+weight
	}
	return sum / n
}

// due says, now and then, that it is time to try what doesn't promise anything.
func (g *guess) due() bool {
	if g.rested++; g.rested < probeEvery {
		return false
	}
	g.rested = 0
	return true
}

// start begins to try the tokens of the draft one after the other.
func (g *guess) start() {
	g.tried, g.take, g.gain = 0, 0, 0
	g.next = g.odds[g.classes[0]]
}

// extend tries one token more and returns how likely it is to be right.
func (g *guess) extend() float64 {
	p := g.next
	g.tried++
	g.gain += p
	if g.tried < len(g.classes) {
		g.next = p * g.odds[g.classes[g.tried]]
	}
	return p
}

// learn takes in that of so many drafted tokens the first ones were right. The
// odds that a sequence begins with count as much as a few guesses of its own.
func (g *guess) learn(all *odds, drafted, right int) {
	for i, c := range g.classes[:min(right+1, drafted)] {
		g.seen[c] = min(g.seen[c]+1, 12)
		g.odds.learn(c, i < right, 1/float64(g.seen[c]+4))
		all.learn(c, i < right, 0.01)
	}
	g.rested = 0
}
