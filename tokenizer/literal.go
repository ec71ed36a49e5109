package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// guarded tokenises a client's text so that no special token comes out. With
// special parsing off the vocabulary still finds user-defined tokens, and a
// SentencePiece one may merge plain characters into a control token; such a
// spelling is cut after its first character, and the halves tokenised apart.
// follows: raw text stands before, so no space prefix is due.
func (t *Tokenizer) guarded(text string, follows bool) ([]Token, error) {
	toks, err := t.tokenize(text, false, follows)
	if err != nil {
		return nil, err
	}
	cuts, err := t.markerCuts(text, toks)
	if err != nil || len(cuts) == 0 {
		return toks, err
	}
	toks = toks[:0]
	from := 0
	for _, cut := range append(cuts, len(text)) {
		part, err := t.guarded(text[from:cut], follows || from > 0)
		if err != nil {
			return nil, err
		}
		toks = append(toks, part...)
		from = cut
	}
	return toks, nil
}

// markerCuts gives the places, in order, that break each spelling of the
// special tokens among toks.
func (t *Tokenizer) markerCuts(text string, toks []Token) ([]int, error) {
	var cuts []int
	var seen []Token
	for _, tok := range toks {
		if t.specials.kind(tok)&kindMarker == 0 || slices.Contains(seen, tok) {
			continue
		}
		seen = append(seen, tok)
		spelling := string(t.vocab.Piece(tok))
		_, inside := utf8.DecodeRuneInString(spelling)
		found := false
		for at := 0; inside < len(spelling); at += inside {
			i := strings.Index(text[at:], spelling)
			if i < 0 {
				break
			}
			at += i
			cuts, found = append(cuts, at+inside), true
		}
		if !found {
			return nil, fmt.Errorf("literal text gives the special token %d (%q)", tok, spelling)
		}
	}
	slices.Sort(cuts)
	return slices.Compact(cuts), nil
}

// mark stands before raw text whose space prefix is to be left out: a private
// use character no vocabulary merges with its neighbours.
const mark = "\uE000"

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
