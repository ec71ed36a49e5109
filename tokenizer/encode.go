package tokenizer

import (
	"fmt"
	"strings"
)

// Segment is a part of a rendered prompt.
type Segment struct {
	Text string
	// Literal text is a client's and holds the spelling of a special token; it
	// never gives control or user-defined tokens.
	Literal bool
}

// Encode turns a whole rendered prompt into tokens, BOS included where the
// model wants it. Special tokens are recognised in the text that is not
// literal; between two of them literal and other text is tokenised together,
// so that the border of a segment leaves no trace.
func (t *Tokenizer) Encode(segs []Segment) ([]Token, error) {
	toks, err := t.encode(segs)
	if err != nil {
		return nil, err
	}
	return t.withBOS(toks), nil
}

func (t *Tokenizer) encode(segs []Segment) ([]Token, error) {
	p := t.plan(segs)
	toks := make([]Token, 0, len(p.text)/3+8)
	for _, r := range p.regions {
		var err error
		if toks, err = t.appendRegion(toks, p, r); err != nil {
			return nil, fmt.Errorf("encode prompt at byte %d: %w", r.from, err)
		}
	}
	return toks, nil
}

// span is a half-open range of bytes.
type span struct{ from, to int }

// region is a stretch of raw text, followed by a special token unless it is
// the last. Raw text after a special token is tokenised without regard to what
// stands before the token, so regions are independent.
type region struct {
	span
	next *special
}

type plan struct {
	text     string
	literals []span // in order, not empty, not adjacent
	uncut    []span // special tokens left inside regions, in order
	regions  []region
}

func (t *Tokenizer) plan(segs []Segment) plan {
	p := join(segs)
	var found []occurrence
	at := 0
	for _, l := range p.literals {
		found = t.specials.find(found, p.text, at, l.from)
		at = l.to
	}
	found = t.specials.find(found, p.text, at, len(p.text))

	from := 0
	for _, o := range found {
		edge := edgeOpaque
		if o.token != nil {
			edge = t.edgeOf(o.token)
		}
		if edge == edgeOpaque {
			p.uncut = append(p.uncut, span{o.from, o.to})
			continue
		}
		left := o.from
		for stripsLeft(edge) && left > from && isSpace(p.text[left-1]) {
			left--
		}
		p.regions = append(p.regions, region{span{from, max(from, left)}, o.token})
		from = o.to
		for stripsRight(edge) && from < len(p.text) && isSpace(p.text[from]) {
			from++
		}
	}
	p.regions = append(p.regions, region{span{from, len(p.text)}, nil})
	return p
}

// isSpace is C's isspace, which llama.cpp strips by.
func isSpace(b byte) bool { return b == ' ' || (b >= '\t' && b <= '\r') }

func join(segs []Segment) plan {
	if len(segs) == 1 && !segs[0].Literal {
		return plan{text: segs[0].Text}
	}
	size := 0
	for _, s := range segs {
		size += len(s.Text)
	}
	var p plan
	var b strings.Builder
	b.Grow(size)
	for _, s := range segs {
		from := b.Len()
		b.WriteString(s.Text)
		if !s.Literal || s.Text == "" {
			continue
		}
		if n := len(p.literals); n > 0 && p.literals[n-1].to == from {
			p.literals[n-1].to = b.Len()
		} else {
			p.literals = append(p.literals, span{from, b.Len()})
		}
	}
	p.text = b.String()
	return p
}

// within returns the spans that overlap s.
func within(spans []span, s span) []span {
	for len(spans) > 0 && spans[0].to <= s.from {
		spans = spans[1:]
	}
	for len(spans) > 0 && spans[len(spans)-1].from >= s.to {
		spans = spans[:len(spans)-1]
	}
	return spans
}

func (t *Tokenizer) appendRegion(dst []Token, p plan, r region) ([]Token, error) {
	if r.from < r.to {
		var err error
		literals := within(p.literals, r.span)
		switch {
		case len(literals) == 0:
			dst, err = t.appendCached(dst, p.text[r.from:r.to], false)
		case len(within(p.uncut, r.span)) == 0:
			dst, err = t.appendCached(dst, p.text[r.from:r.to], true)
		default:
			dst, err = t.appendMixed(dst, p.text, r.span, literals)
		}
		if err != nil {
			return nil, err
		}
	}
	if r.next != nil {
		dst = append(dst, r.next.id)
	}
	return dst, nil
}

// appendMixed is for a region that needs both kinds of parsing because it
// holds a special token at which text can't be cut, and literal text: it is
// then cut where the literal text begins and ends.
func (t *Tokenizer) appendMixed(dst []Token, text string, r span, literals []span) ([]Token, error) {
	at := r.from
	add := func(to int, literal bool) error {
		if at >= to {
			return nil
		}
		encode := t.guarded
		if !literal {
			encode = func(s string, follows bool) ([]Token, error) { return t.tokenize(s, true, follows) }
		}
		toks, err := encode(text[at:to], at > r.from)
		dst, at = append(dst, toks...), to
		return err
	}
	for _, l := range literals {
		if err := add(max(l.from, r.from), false); err != nil {
			return nil, err
		}
		if err := add(min(l.to, r.to), true); err != nil {
			return nil, err
		}
	}
	return dst, add(r.to, false)
}

func (t *Tokenizer) appendCached(dst []Token, text string, literal bool) ([]Token, error) {
	key := t.key(text, literal)
	if toks, ok := t.cache.get(key, text); ok {
		return append(dst, toks...), nil
	}
	var toks []Token
	var err error
	if literal {
		toks, err = t.guarded(text, false)
	} else {
		toks, err = t.tokenize(text, true, false)
	}
	if err != nil {
		return nil, err
	}
	t.cache.put(key, text, toks)
	return append(dst, toks...), nil
}
