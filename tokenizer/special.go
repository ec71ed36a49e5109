package tokenizer

import (
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

const (
	kindHidden byte = 1 << iota // control or unknown: no text
	kindMarker                  // must not come out of literal text
)

// special is a token that the vocabulary finds in text before any other
// tokenisation.
type special struct {
	id   Token
	text string
	user bool // found in text without special parsing, too
	// edge is found out at first use, see Tokenizer.edgeOf.
	edge atomic.Uint32
}

// specials finds the spellings of special tokens in text. Tokens of whitespace
// only and user-defined tokens of one character are left out: they are
// ordinary text, and cutting a prompt at them gains nothing.
type specials struct {
	kinds []byte // by token
	root  trieNode
	first [256]bool
	// spaces: some whitespace-only token exists, so that a token that strips
	// whitespace around it may compete with it.
	spaces bool
}

type trieNode struct {
	labels []byte
	nodes  []*trieNode
	end    *special
}

func newSpecials(v Vocab) specials {
	s := specials{kinds: make([]byte, v.Size())}
	unk, _ := v.(unknowner)
	for i := range s.kinds {
		id := Token(i)
		control, user := v.IsControl(id), v.IsUserDefined(id)
		unknown := unk != nil && unk.IsUnknown(id)
		if !control && !user && !unknown {
			continue
		}
		text := string(v.Piece(id))
		if control || unknown {
			s.kinds[i] |= kindHidden
		}
		if strings.TrimSpace(text) == "" {
			s.spaces = s.spaces || text != ""
			continue
		}
		if !control && !unknown && utf8.RuneCountInString(text) == 1 {
			continue
		}
		if !unknown {
			s.kinds[i] |= kindMarker
		}
		s.add(&special{id: id, text: text, user: user})
	}
	return s
}

func (s *specials) add(sp *special) {
	s.first[sp.text[0]] = true
	n := &s.root
	for i := range len(sp.text) {
		next := n.child(sp.text[i])
		if next == nil {
			next = &trieNode{}
			n.labels = append(n.labels, sp.text[i])
			n.nodes = append(n.nodes, next)
		}
		n = next
	}
	if n.end == nil {
		n.end = sp
	}
}

func (n *trieNode) child(b byte) *trieNode {
	for i, l := range n.labels {
		if l == b {
			return n.nodes[i]
		}
	}
	return nil
}

func (s *specials) kind(tok Token) byte {
	if tok < 0 || int(tok) >= len(s.kinds) {
		return kindHidden
	}
	return s.kinds[tok]
}

// longest is the longest special token spelled in text from position i on.
func (s *specials) longest(text string, i int) *special {
	var found *special
	for n := &s.root; n != nil; i++ {
		if n.end != nil {
			found = n.end
		}
		if i >= len(text) {
			break
		}
		n = n.child(text[i])
	}
	return found
}

// userAt tells whether text spells a user-defined token from position i on.
func (s *specials) userAt(text string, i int) bool {
	for n := &s.root; n != nil && i < len(text); i++ {
		if n = n.child(text[i]); n != nil && n.end != nil && n.end.user {
			return true
		}
	}
	return false
}

func (s *specials) in(text string) bool {
	for i := range len(text) {
		if s.first[text[i]] && s.longest(text, i) != nil {
			return true
		}
	}
	return false
}

// occurrence is a place where text[from:to] spells one special token, or
// several that overlap (token is then nil).
type occurrence struct {
	from, to int
	token    *special
}

// find appends the occurrences in text[from:to]. The vocabulary looks for the
// longest token first, everywhere in the text; which of two that overlap wins
// is certain only if one holds the other, so other overlaps give a nil token.
func (s *specials) find(dst []occurrence, text string, from, to int) []occurrence {
	text = text[:to]
	start := len(dst)
	for i := from; i < to; i++ {
		if !s.first[text[i]] {
			continue
		}
		sp := s.longest(text, i)
		if sp == nil {
			continue
		}
		end := i + len(sp.text)
		if n := len(dst); n > start && i < dst[n-1].to {
			if end > dst[n-1].to {
				dst[n-1].to, dst[n-1].token = end, nil
			}
			continue
		}
		dst = append(dst, occurrence{i, end, sp})
	}
	return dst
}

// The ways a special token treats the text beside it.
const (
	edgeUnknown uint32 = iota
	edgePlain
	edgeStripsLeft
	edgeStripsRight
	edgeStripsBoth
	edgeOpaque // none of these: text is never cut here
)

func stripsLeft(edge uint32) bool  { return edge == edgeStripsLeft || edge == edgeStripsBoth }
func stripsRight(edge uint32) bool { return edge == edgeStripsRight || edge == edgeStripsBoth }

// edgeOf finds out by trial what cutting the text at sp must do to give the
// tokens of the uncut text. Some models (Phi-3) strip whitespace beside
// special tokens, and a vocabulary does not tell.
func (t *Tokenizer) edgeOf(sp *special) uint32 {
	if e := sp.edge.Load(); e != edgeUnknown {
		return e
	}
	e := t.tryEdges(sp)
	sp.edge.Store(e)
	return e
}

func (t *Tokenizer) tryEdges(sp *special) uint32 {
	r, _ := utf8.DecodeRuneInString(sp.text)
	l, _ := utf8.DecodeLastRuneInString(sp.text)
	if unicode.IsSpace(r) || unicode.IsSpace(l) {
		return edgeOpaque
	}
	whole, err := t.vocab.Tokenize("a "+sp.text+" b", true)
	if err != nil {
		return edgeOpaque
	}
	for _, e := range []uint32{edgePlain, edgeStripsRight, edgeStripsLeft, edgeStripsBoth} {
		left, right := "a ", " b"
		if stripsLeft(e) {
			left = "a"
		}
		if stripsRight(e) {
			right = "b"
		}
		before, err1 := t.vocab.Tokenize(left, true)
		after, err2 := t.vocab.Tokenize(right, true)
		if err1 != nil || err2 != nil || !joins(whole, before, sp.id, after) {
			continue
		}
		if e != edgePlain && t.specials.spaces {
			return edgeOpaque
		}
		return e
	}
	return edgeOpaque
}

func joins(whole, before []Token, mid Token, after []Token) bool {
	if len(whole) != len(before)+1+len(after) || whole[len(before)] != mid {
		return false
	}
	for i, tok := range before {
		if whole[i] != tok {
			return false
		}
	}
	for i, tok := range after {
		if whole[len(before)+1+i] != tok {
			return false
		}
	}
	return true
}
