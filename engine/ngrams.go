package engine

// ngrams finds where the end of a sequence has occurred in it before: by the
// latest long n-grams like the last one, which lie in chains, and by the latest
// short ones. It costs 20 to 40 bytes a token. The tables are lossy: a place
// that another n-gram has taken is found out by comparing tokens.
type ngrams struct {
	known int     // tokens that are in the tables
	long  []int32 // by hash: where the latest n-gram ends; 0 = none
	short []int32 // of both short lengths
	prev  []int32 // by where a long n-gram ends: the one before it of the same hash
}

const (
	longGram, shortGram = 4, 2 // the short ones are of this length and of 1
	// maxChain is how many long n-grams are compared, the latest first.
	maxChain = 8
	// maxMatch is how far back a comparison goes: more says nothing new.
	maxMatch = 32
	// maxTable bounds the tables, in entries. Longer sequences forget the oldest.
	maxTable = 1 << 17
)

// find returns where a sequence may go on as it did before, and how many tokens
// before that are equal to those at its end; 0 = nowhere. try, if not 0, is a
// place to look at first.
func (g *ngrams) find(tokens []Token, try int) (at, matched int) {
	g.learn(tokens)
	n := len(tokens)
	better := func(p int) {
		if m := alikeBefore(tokens, p, n); m > matched {
			at, matched = p, m
		}
	}
	if try > 0 && try < n {
		better(try)
	}
	if n >= longGram {
		p := int(g.long[g.slot(tokens, n, longGram)])
		for i := 0; i < maxChain && p > 0 && matched < maxMatch; i++ {
			better(p)
			next := int(g.prev[p])
			if next >= p {
				break
			}
			p = next
		}
	}
	for k := min(shortGram, n-1); k > 0 && matched <= k; k-- {
		if p := int(g.short[g.slot(tokens, n, k)]); p > 0 {
			better(p)
		}
	}
	return at, matched
}

// alikeBefore is how many tokens before a are those before b; a < b.
func alikeBefore(tokens []Token, a, b int) int {
	n := 0
	for n < maxMatch && n < a && tokens[a-1-n] == tokens[b-1-n] {
		n++
	}
	return n
}

// learn takes in the n-grams that end before the last token, which begin
// nothing yet.
func (g *ngrams) learn(tokens []Token) {
	last := len(tokens) - 1
	if last <= g.known {
		return
	}
	if size := len(g.long); size < maxTable && 2*last > size {
		for size = max(size, 256); size < maxTable && size < 4*last; size *= 2 {
		}
		g.long, g.short, g.prev, g.known = make([]int32, size), make([]int32, size), g.prev[:0], 0
	}
	for end := g.known + 1; end <= last; end++ {
		for k := 1; k <= min(shortGram, end); k++ {
			g.short[g.slot(tokens, end, k)] = int32(end)
		}
	}
	g.prev = grow(g.prev, last+1)
	for end := max(g.known+1, longGram); end <= last; end++ {
		slot := g.slot(tokens, end, longGram)
		g.prev[end] = g.long[slot]
		g.long[slot] = int32(end)
	}
	g.known = last
}

// slot is the place of the n-gram that ends before position end.
func (g *ngrams) slot(tokens []Token, end, n int) int {
	h := uint64(n)
	for _, t := range tokens[end-n : end] {
		h = (h ^ uint64(uint32(t))) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return int(h>>20) & (len(g.long) - 1)
}

// grow makes s n long, with room for as many again.
func grow(s []int32, n int) []int32 {
	if n <= cap(s) {
		return s[:n]
	}
	bigger := make([]int32, n, 2*n)
	copy(bigger, s)
	return bigger
}
