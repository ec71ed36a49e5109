package engine

import "slices"

// index finds token sequences by prefix: one radix tree for each cache salt.
// Edges are slices of the inserted sequences, which must not change.
type index[T any] map[string]*branch[T]

// entry is one sequence in an index. Its owner keeps it.
type entry[T any] struct {
	owner  T
	salt   string
	tokens []Token    // as inserted
	at     *branch[T] // ends here; nil = not in the index
}

// branch is a stretch of tokens that the same entries have in common.
type branch[T any] struct {
	parent   *branch[T]
	edge     []Token
	depth    int // tokens from the root to the end of edge
	children []*branch[T]
	entries  []*entry[T] // that end here
}

// insert puts e in, or moves it to a longer or shorter form of its tokens.
func (x index[T]) insert(e *entry[T], tokens []Token) {
	if e.at != nil && len(tokens) < e.at.depth {
		x.remove(e)
	}
	if len(tokens) == 0 {
		return
	}
	root := x[e.salt]
	if root == nil {
		root = &branch[T]{}
		x[e.salt] = root
	}
	was := e.at
	at := was
	if at == nil {
		at = root
	} else {
		at.entries = without(at.entries, e)
	}
	e.tokens = tokens
	for at.depth < len(tokens) {
		rest := tokens[at.depth:]
		if at == was && len(at.entries) == 0 && len(at.children) == 0 {
			at.edge = tokens[at.depth-len(at.edge):]
			at.depth = len(tokens)
			break
		}
		next := at.child(rest[0])
		if next == nil {
			next = &branch[T]{parent: at, edge: rest, depth: len(tokens)}
			at.children = append(at.children, next)
		} else if n := common(next.edge, rest); n < len(next.edge) {
			next = next.split(n)
		}
		at = next
	}
	at.entries = append(at.entries, e)
	e.at = at
	if was != nil && was != at {
		was.tidy()
	}
}

// remove takes e out; it need not be in.
func (x index[T]) remove(e *entry[T]) {
	at := e.at
	if at == nil {
		return
	}
	at.entries = without(at.entries, e)
	e.at = nil
	at.tidy()
	if root := x[e.salt]; len(root.children) == 0 && len(root.entries) == 0 {
		delete(x, e.salt)
	}
}

// lookup returns how many of the tokens some entry begins with, and the branch
// in whose edge that match ends: the entries at and below it are those that do.
func (x index[T]) lookup(salt string, tokens []Token) (n int, at *branch[T]) {
	at = x[salt]
	if at == nil {
		return 0, nil
	}
	for n < len(tokens) {
		next := at.child(tokens[n])
		if next == nil {
			break
		}
		at = next
		k := common(at.edge, tokens[n:])
		n += k
		if k < len(at.edge) {
			break
		}
	}
	return n, at
}

// first returns one of the entries at or below b.
func (b *branch[T]) first() *entry[T] {
	for len(b.entries) == 0 {
		b = b.children[0]
	}
	return b.entries[0]
}

func (b *branch[T]) child(t Token) *branch[T] {
	for _, c := range b.children {
		if c.edge[0] == t {
			return c
		}
	}
	return nil
}

// split cuts the edge after n tokens and returns the upper part.
func (b *branch[T]) split(n int) *branch[T] {
	upper := &branch[T]{
		parent:   b.parent,
		edge:     b.edge[:n],
		depth:    b.depth - len(b.edge) + n,
		children: []*branch[T]{b},
	}
	b.parent.children[slices.Index(b.parent.children, b)] = upper
	b.parent, b.edge = upper, b.edge[n:]
	return upper
}

// tidy removes b if nothing needs it: no entry ends here and nothing forks.
func (b *branch[T]) tidy() {
	if b.parent == nil || len(b.entries) > 0 || len(b.children) > 1 {
		return
	}
	p := b.parent
	if len(b.children) == 0 {
		p.children = without(p.children, b)
		p.tidy()
		return
	}
	c := b.children[0]
	c.edge = c.first().tokens[b.depth-len(b.edge) : c.depth]
	c.parent = p
	p.children[slices.Index(p.children, b)] = c
}

func common(a, b []Token) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func without[E comparable](s []E, e E) []E {
	if i := slices.Index(s, e); i >= 0 {
		return slices.Delete(s, i, i+1)
	}
	return s
}
