package server

import "bytes"

// tokenLogprob is one token of the visible text with its log probability. Text
// may be a part of a character, and a part of the token where a stop string
// cut it.
type tokenLogprob struct {
	text    []byte
	logprob float32
	top     []alternative
}

// alternative is a token that could have stood there.
type alternative struct {
	text    []byte
	logprob float32
}

// appendLogprobs appends the entries, comma between them.
func appendLogprobs(dst []byte, list []tokenLogprob) []byte {
	for i, t := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendLogprob(dst, t.text, t.logprob)
		dst = append(dst, `,"top_logprobs":[`...)
		for j, a := range t.top {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendLogprob(dst, a.text, a.logprob), '}')
		}
		dst = append(dst, `]}`...)
	}
	return dst
}

// appendLogprob appends an object without its closing brace.
func appendLogprob(dst []byte, text []byte, logprob float32) []byte {
	dst = append(dst, `{"token":`...)
	dst = appendString(dst, text)
	dst = append(dst, `,"bytes":[`...)
	for i, b := range text {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendInt(dst, int(b))
	}
	dst = append(dst, `],"logprob":`...)
	return appendFloat32(dst, logprob)
}

// logprobQueue holds sampled tokens until the text that they gave is shown. The
// text of a response is the text of its tokens less what was reasoning, markup,
// arguments or cut away; the queue finds the shown text among its tokens, so
// that the tokens told always join to the text told.
type logprobQueue struct {
	tokens []tokenLogprob
	raw    []byte // the text of the tokens, joined
	out    []tokenLogprob
}

func (q *logprobQueue) push(t tokenLogprob) {
	q.tokens = append(q.tokens, t)
	q.raw = append(q.raw, t.text...)
}

// clear forgets the tokens so far: their text is not shown.
func (q *logprobQueue) clear() {
	q.tokens, q.raw = q.tokens[:0], q.raw[:0]
}

// take returns the tokens of the shown text, the first and the last of them cut
// to it. The slice is valid until the next call.
func (q *logprobQueue) take(shown []byte) []tokenLogprob {
	q.out = q.out[:0]
	at := bytes.Index(q.raw, shown)
	if at < 0 {
		return nil
	}
	end := at + len(shown)
	pos := 0
	for len(q.tokens) > 0 && pos < end {
		t := q.tokens[0]
		next := pos + len(t.text)
		if next > at {
			part := t
			part.text = t.text[max(0, at-pos):min(len(t.text), end-pos)]
			q.out = append(q.out, part)
		}
		if next > end {
			q.tokens[0].text = t.text[end-pos:]
			pos = end
			break
		}
		q.tokens = q.tokens[1:]
		pos = next
	}
	q.raw = append(q.raw[:0], q.raw[end:]...)
	return q.out
}
