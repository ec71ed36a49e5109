package tokenizer

import (
	"unicode/utf8"
)

const replacement = "\uFFFD"

// DecodeOptions says which text tokens give.
type DecodeOptions struct {
	// Control gives control tokens the text they are spelled with.
	Control bool
	// KeepSpace leaves the space that a SentencePiece vocabulary puts before
	// the first word; for text that continues other text.
	KeepSpace bool
}

// Decoder turns the tokens of one text into whole UTF-8. Bytes that are no
// UTF-8 become U+FFFD, one for each longest part of a character, so that any
// split of the tokens gives the same text.
type Decoder struct {
	t       *Tokenizer
	control bool
	trim    bool // the next text loses a leading space
	held    int
	// buf starts with the held bytes of an unfinished character.
	buf []byte
	out []byte
}

// NewDecoder is for generated text: control tokens give none.
func (t *Tokenizer) NewDecoder() *Decoder { return t.NewDecoderWith(DecodeOptions{}) }

// NewDecoderWith is NewDecoder with other choices.
func (t *Tokenizer) NewDecoderWith(o DecodeOptions) *Decoder {
	return &Decoder{t: t, control: o.Control, trim: t.spacePrefix && !o.KeepSpace}
}

// Push returns the text that tok completes. The slice is valid until the next
// call and must not be modified.
func (d *Decoder) Push(tok Token) []byte {
	piece := d.piece(tok)
	if d.held == 0 && utf8.Valid(piece) {
		return piece
	}
	d.out = d.append(d.out[:0], piece)
	return d.out
}

// Append appends the text that tok completes to dst.
func (d *Decoder) Append(dst []byte, tok Token) []byte {
	piece := d.piece(tok)
	if d.held == 0 && utf8.Valid(piece) {
		return append(dst, piece...)
	}
	return d.append(dst, piece)
}

// Partial says that the text so far ends within a character.
func (d *Decoder) Partial() bool { return d.held > 0 }

// Flush ends the text: a held part of a character becomes U+FFFD.
func (d *Decoder) Flush() []byte {
	if d.held == 0 {
		return nil
	}
	d.held = 0
	d.out = append(d.out[:0], replacement...)
	return d.out
}

func (d *Decoder) piece(tok Token) []byte {
	if !d.control && d.t.IsControl(tok) {
		return nil
	}
	piece := d.t.Piece(tok)
	if d.trim && len(piece) > 0 {
		d.trim = false
		if piece[0] == ' ' {
			piece = piece[1:]
		}
	}
	return piece
}

// append moves the whole characters of the held bytes and piece to dst.
func (d *Decoder) append(dst, piece []byte) []byte {
	d.buf = append(d.buf[:d.held], piece...)
	rest := d.buf
	for len(rest) > 0 {
		r, n := utf8.DecodeRune(rest)
		if r != utf8.RuneError || n > 1 {
			dst = append(dst, rest[:n]...)
			rest = rest[n:]
			continue
		}
		n = unfinished(rest)
		if n == len(rest) {
			break
		}
		dst = append(dst, replacement...)
		rest = rest[max(n, 1):]
	}
	d.held = copy(d.buf, rest)
	return dst
}

// unfinished is the length of the longest start of b that more bytes could
// make a character, at most 3.
func unfinished(b []byte) int {
	n := 0
	for n < min(3, len(b)) && !utf8.FullRune(b[:n+1]) {
		n++
	}
	return n
}

// Detokenize is the text of toks, control tokens spelled out.
func (t *Tokenizer) Detokenize(toks []Token) string {
	return t.DetokenizeWith(toks, DecodeOptions{Control: true})
}

// DetokenizeWith is Detokenize with other choices.
func (t *Tokenizer) DetokenizeWith(toks []Token, o DecodeOptions) string {
	d := t.NewDecoderWith(o)
	text := make([]byte, 0, 4*len(toks))
	for _, tok := range toks {
		text = d.Append(text, tok)
	}
	return string(append(text, d.Flush()...))
}
