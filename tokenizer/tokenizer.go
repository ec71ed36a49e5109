package tokenizer

import (
	"fmt"
	"hash/maphash"
)

// Token is an index into the vocabulary.
type Token = int32

// Vocab is what the package needs from a loaded model. All methods are called
// from many goroutines at once.
type Vocab interface {
	Size() int
	// Piece is the text of a token, that of control tokens included. It does
	// not allocate; callers do not modify it.
	Piece(Token) []byte
	IsControl(Token) bool
	IsUserDefined(Token) bool
	IsEOG(Token) bool
	// BOS and EOS are negative where the model has none.
	BOS() Token
	EOS() Token
	// AddBOS says whether the model wants BOS before every prompt.
	AddBOS() bool
	// Tokenize adds neither BOS nor EOS. With parseSpecial the spelling of a
	// special token becomes that token.
	Tokenize(text string, parseSpecial bool) ([]Token, error)
}

// unknowner is met by a Vocab that can tell the token for unknown text, which
// llama.cpp parses and hides like a control token.
type unknowner interface{ IsUnknown(Token) bool }

// defaultCacheBytes bounds the text and tokens kept of earlier prompts.
const defaultCacheBytes = 16 << 20

// Tokenizer encodes and decodes for one model.
type Tokenizer struct {
	vocab    Vocab
	specials specials
	seed     maphash.Seed
	cache    *cache
	// spacePrefix: the vocabulary puts a space before text at the start and
	// after a special token, as SentencePiece does.
	spacePrefix bool
}

// New prepares a tokenizer over v.
func New(v Vocab) *Tokenizer { return NewWithCache(v, defaultCacheBytes) }

// NewWithCache is New with a bound of its own for the fragment cache; 0 turns
// the cache off.
func NewWithCache(v Vocab, cacheBytes int) *Tokenizer {
	t := &Tokenizer{vocab: v, specials: newSpecials(v), seed: maphash.MakeSeed(), cache: newCache(cacheBytes)}
	t.spacePrefix = addsSpacePrefix(v)
	return t
}

// addsSpacePrefix finds out by trial whether text gets a space before it.
func addsSpacePrefix(v Vocab) bool {
	toks, err := v.Tokenize("a", false)
	if err != nil || len(toks) == 0 {
		return false
	}
	first := v.Piece(toks[0])
	return len(first) > 0 && first[0] == ' '
}

// ContainsSpecial tells whether text holds the spelling of a special token and
// must therefore be encoded as a literal segment. Whitespace and single
// characters that a vocabulary lists as tokens of their own do not count.
func (t *Tokenizer) ContainsSpecial(text string) bool { return t.specials.in(text) }

// Lookup finds the special token that is spelled exactly piece.
func (t *Tokenizer) Lookup(piece string) (Token, bool) {
	s := t.specials.longest(piece, 0)
	if s == nil || len(s.text) != len(piece) {
		return 0, false
	}
	return s.id, true
}

// IsControl tells whether tok gives no text.
func (t *Tokenizer) IsControl(tok Token) bool { return t.specials.kind(tok)&kindHidden != 0 }

// Piece is the text of tok, that of control tokens included; nil if tok is
// outside the vocabulary. The caller must not modify it.
func (t *Tokenizer) Piece(tok Token) []byte {
	if tok < 0 || int(tok) >= len(t.specials.kinds) {
		return nil
	}
	return t.vocab.Piece(tok)
}

// Vocab is what the tokenizer was made of.
func (t *Tokenizer) Vocab() Vocab { return t.vocab }

// TextOptions says how a text that is no rendered prompt is encoded.
type TextOptions struct {
	AddSpecial   bool // put BOS before it if the model wants one
	ParseSpecial bool // spellings of special tokens become those tokens
}

// EncodeText encodes text alone, as the reference does.
func (t *Tokenizer) EncodeText(text string, o TextOptions) ([]Token, error) {
	if o.ParseSpecial {
		toks, err := t.encode([]Segment{{Text: text}})
		if err == nil && o.AddSpecial {
			toks = t.withBOS(toks)
		}
		return toks, err
	}
	toks, err := t.tokenize(text, false, false)
	if err != nil {
		return nil, fmt.Errorf("encode text of %d bytes: %w", len(text), err)
	}
	if o.AddSpecial {
		toks = t.withBOS(toks)
	}
	return toks, nil
}

// withBOS puts BOS first, once, where the model wants it.
func (t *Tokenizer) withBOS(toks []Token) []Token {
	bos := t.vocab.BOS()
	if !t.vocab.AddBOS() || bos < 0 || (len(toks) > 0 && toks[0] == bos) {
		return toks
	}
	toks = append(toks, 0)
	copy(toks[1:], toks)
	toks[0] = bos
	return toks
}
