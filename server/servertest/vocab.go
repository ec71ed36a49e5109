package servertest

import (
	"strings"

	"quern/tokenizer"
)

// Marks are the special tokens of a ByteVocab, in order, from 256 on.
var Marks = []string{
	"<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>",
	"<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>",
}

// messages is the first of the marks around the parts of messages with headers.
const messages tokenizer.Token = 262

// EOG is the token that ends a turn, <|im_end|>.
const EOG tokenizer.Token = 257

// ByteVocab is a vocabulary of all bytes and a few special tokens, so that a
// test can write any answer as text.
type ByteVocab struct{ pieces [][]byte }

var _ tokenizer.Vocab = (*ByteVocab)(nil)

// NewByteVocab makes the vocabulary.
func NewByteVocab() *ByteVocab {
	v := &ByteVocab{}
	for b := range 256 {
		v.pieces = append(v.pieces, []byte{byte(b)})
	}
	for _, s := range Marks {
		v.pieces = append(v.pieces, []byte(s))
	}
	return v
}

// Size implements tokenizer.Vocab.
func (v *ByteVocab) Size() int { return len(v.pieces) }

// Piece implements tokenizer.Vocab.
func (v *ByteVocab) Piece(t tokenizer.Token) []byte { return v.pieces[t] }

// IsControl implements tokenizer.Vocab: the marks around a turn or a message.
func (v *ByteVocab) IsControl(t tokenizer.Token) bool { return t == 256 || t == EOG || t >= messages }

// IsUserDefined implements tokenizer.Vocab: the marks within a turn.
func (v *ByteVocab) IsUserDefined(t tokenizer.Token) bool { return t > EOG && t < messages }

// IsEOG implements tokenizer.Vocab.
func (v *ByteVocab) IsEOG(t tokenizer.Token) bool { return t == EOG }

// BOS implements tokenizer.Vocab: there is none.
func (v *ByteVocab) BOS() tokenizer.Token { return -1 }

// EOS implements tokenizer.Vocab.
func (v *ByteVocab) EOS() tokenizer.Token { return EOG }

// AddBOS implements tokenizer.Vocab.
func (v *ByteVocab) AddBOS() bool { return false }

// Tokenize implements tokenizer.Vocab.
func (v *ByteVocab) Tokenize(text string, parseSpecial bool) ([]tokenizer.Token, error) {
	var out []tokenizer.Token
next:
	for len(text) > 0 {
		if parseSpecial {
			for i, s := range Marks {
				if strings.HasPrefix(text, s) {
					out = append(out, tokenizer.Token(256+i))
					text = text[len(s):]
					continue next
				}
			}
		}
		out = append(out, tokenizer.Token(text[0]))
		text = text[1:]
	}
	return out, nil
}
