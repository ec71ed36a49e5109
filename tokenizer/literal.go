package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// mark breaks a spelling apart: a private use character that no vocabulary
// merges with its neighbours, so that its tokens can be taken out again.
const mark = "\uE000"

// guarded tokenises a client's text so that no special token comes out. With
// special parsing off the vocabulary still finds user-defined tokens, and a
// SentencePiece one may merge plain characters into a control token. Such a
// spelling gets a mark behind its first character, whose tokens are dropped.
// One call for the whole text matters: llama.cpp compiles the word pattern
// anew for each fragment, some half a millisecond.
// follows: raw text stands before, so no space prefix is due.
func (t *Tokenizer) guarded(text string, follows bool) ([]Token, error) {
	breaks := t.specials.breaks(text)
	for {
		toks, err := t.tokenizeMarked(text, breaks, follows)
		if err != nil {
			return nil, err
		}
		n := len(breaks)
		breaks = append(breaks, t.leaks(text, toks)...)
		slices.Sort(breaks)
		if breaks = slices.Compact(breaks); len(breaks) == n {
			return toks, nil
		}
	}
}

// breaks gives the places, in order, that break each spelling of a
// user-defined token in text.
func (s *specials) breaks(text string) []int {
	var breaks []int
	for i := range len(text) {
		if !s.first[text[i]] {
			continue
		}
		if s.userAt(text, i) {
			_, n := utf8.DecodeRuneInString(text[i:])
			breaks = append(breaks, i+n)
		}
	}
	return breaks
}

// leaks gives the places that break each spelling of the special tokens that
// stand among toks all the same. One that stays although each spelling of it is
// broken is what the vocabulary makes of unknown words.
func (t *Tokenizer) leaks(text string, toks []Token) []int {
	var breaks []int
	var seen []Token
	for _, tok := range toks {
		if t.specials.kind(tok)&kindMarker == 0 || slices.Contains(seen, tok) {
			continue
		}
		seen = append(seen, tok)
		spelling := string(t.vocab.Piece(tok))
		_, inside := utf8.DecodeRuneInString(spelling)
		for at := 0; inside < len(spelling); at += inside {
			i := strings.Index(text[at:], spelling)
			if i < 0 {
				break
			}
			at += i
			breaks = append(breaks, at+inside)
		}
	}
	return breaks
}

// tokenizeMarked tokenises text with marks at the breaks and takes their
// tokens out. If a token reaches over the edge of a mark (the text holds what
// the vocabulary does not give back byte by byte) the text is cut at the
// breaks instead.
func (t *Tokenizer) tokenizeMarked(text string, breaks []int, follows bool) ([]Token, error) {
	if len(breaks) == 0 {
		return t.tokenize(text, false, follows)
	}
	var b strings.Builder
	b.Grow(len(text) + len(breaks)*len(mark))
	from := 0
	for _, at := range breaks {
		b.WriteString(text[from:at])
		b.WriteString(mark)
		from = at
	}
	b.WriteString(text[from:])
	toks, err := t.tokenize(b.String(), false, follows)
	if err != nil {
		return nil, err
	}
	if toks, ok := t.dropMarks(b.String(), toks, breaks); ok {
		return toks, nil
	}
	toks, from = nil, 0
	for _, at := range append(slices.Clone(breaks), len(text)) {
		part, err := t.tokenize(text[from:at], false, follows || from > 0)
		if err != nil {
			return nil, err
		}
		toks, from = append(toks, part...), at
	}
	return toks, nil
}

// dropMarks leaves out the tokens of the marks. It reads the tokens along the
// text and gives up if they don't spell it, but for added space prefixes.
func (t *Tokenizer) dropMarks(marked string, toks []Token, breaks []int) ([]Token, bool) {
	at, passed := 0, 0
	kept := toks[:0]
	for _, tok := range toks {
		n, ok := t.spells(marked[at:], t.vocab.Piece(tok))
		if !ok {
			return nil, false
		}
		from := len(marked)
		if passed < len(breaks) {
			from = breaks[passed] + passed*len(mark)
		}
		switch to := from + len(mark); {
		case at+n <= from:
			kept = append(kept, tok)
		case at < from || at+n > to:
			return nil, false
		case at+n == to:
			passed++
		}
		at += n
	}
	return kept, at == len(marked)
}

// spells tells how much of text piece spells.
func (t *Tokenizer) spells(text string, piece []byte) (int, bool) {
	if strings.HasPrefix(text, string(piece)) {
		return len(piece), true
	}
	if t.spacePrefix && len(piece) > 0 && piece[0] == ' ' && strings.HasPrefix(text, string(piece[1:])) {
		return len(piece) - 1, true
	}
	return 0, false
}

// tokenize is the only way to the vocabulary for text of any length. follows:
// raw text stands before, so no space prefix is due.
func (t *Tokenizer) tokenize(text string, parseSpecial, follows bool) ([]Token, error) {
	if text == "" {
		return nil, nil
	}
	if !t.spacePrefix {
		return t.tokenizeBounded(text, parseSpecial)
	}
	if !follows {
		return t.vocab.Tokenize(text, parseSpecial)
	}
	toks, err := t.vocab.Tokenize(mark+text, parseSpecial)
	if err != nil {
		return nil, err
	}
	left := len(" " + mark)
	for i, tok := range toks {
		if left -= len(t.vocab.Piece(tok)); left == 0 {
			return toks[i+1:], nil
		}
		if left < 0 {
			break
		}
	}
	return t.vocab.Tokenize(text, parseSpecial)
}
