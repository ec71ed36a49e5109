package server

import (
	"strings"

	"quern/tokenizer"
)

// byteVocab is a vocabulary of all bytes and a few special tokens, so that a
// test can write any answer token by token.
type byteVocab struct{ pieces [][]byte }

var specialPieces = []string{"<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"}

const eogToken = 257 // <|im_end|>

func newByteVocab() *byteVocab {
	v := &byteVocab{}
	for b := range 256 {
		v.pieces = append(v.pieces, []byte{byte(b)})
	}
	for _, s := range specialPieces {
		v.pieces = append(v.pieces, []byte(s))
	}
	return v
}

func (v *byteVocab) Size() int                            { return len(v.pieces) }
func (v *byteVocab) Piece(t tokenizer.Token) []byte       { return v.pieces[t] }
func (v *byteVocab) IsControl(t tokenizer.Token) bool     { return t == 256 || t == eogToken }
func (v *byteVocab) IsUserDefined(t tokenizer.Token) bool { return t > eogToken }
func (v *byteVocab) IsEOG(t tokenizer.Token) bool         { return t == eogToken }
func (v *byteVocab) BOS() tokenizer.Token                 { return -1 }
func (v *byteVocab) EOS() tokenizer.Token                 { return eogToken }
func (v *byteVocab) AddBOS() bool                         { return false }

func (v *byteVocab) Tokenize(text string, parseSpecial bool) ([]tokenizer.Token, error) {
	var out []tokenizer.Token
next:
	for len(text) > 0 {
		if parseSpecial {
			for i, s := range specialPieces {
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
