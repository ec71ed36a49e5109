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
//
// A token may end within a character. The text then comes with the token that
// completes the character, while the bytes stay with the token that has them.
type logprobQueue struct {
	tokens []queuedToken
	text   []byte // that the tokens gave, joined
	out    []tokenLogprob
}

// queuedToken is a token and the length of the text that came with it.
type queuedToken struct {
	tokenLogprob
	gave int
}

// push takes a token and the text that the decoder gave for it.
func (q *logprobQueue) push(t tokenLogprob, gave []byte) {
	q.tokens = append(q.tokens, queuedToken{t, len(gave)})
	q.text = append(q.text, gave...)
}

// complete takes the text that the decoder gave at the end, for a character
// that the last token left open.
func (q *logprobQueue) complete(gave []byte) {
	if n := len(q.tokens); n > 0 {
		q.tokens[n-1].gave += len(gave)
		q.text = append(q.text, gave...)
	}
}

// clear forgets the tokens so far: their text is not shown.
func (q *logprobQueue) clear() {
	q.tokens, q.text = q.tokens[:0], q.text[:0]
}

// take returns the tokens of the shown text, the first and the last of them cut
// to it. The slice is valid until the next call.
func (q *logprobQueue) take(shown []byte) []tokenLogprob {
	q.out = q.out[:0]
	from := bytes.Index(q.text, shown)
	if from < 0 {
		return nil
	}
	to := from + len(shown)
	for pos := 0; len(q.tokens) > 0 && pos < to; {
		t := &q.tokens[0]
		next := pos + t.gave
		inside := next > from || t.gave == 0 && len(t.text) > 0 && pos >= from
		head, tail := t.split(from-pos, to-pos)
		if inside {
			q.out = append(q.out, head)
		}
		if next > to {
			*t = tail
			break
		}
		q.tokens = q.tokens[1:]
		pos = next
	}
	q.text = append(q.text[:0], q.text[to:]...)
	return q.out
}

// whole says how much of the text, which is about to be shown, ends with a token.
func (q *logprobQueue) whole(text []byte) int {
	from := bytes.Index(q.text, text)
	if from < 0 {
		return len(text)
	}
	end, pos := from, 0
	for i := range q.tokens {
		if pos += q.tokens[i].gave; pos > from+len(text) {
			break
		}
		end = max(end, pos)
	}
	return end - from
}

// split cuts a token to the part of its text from..to and what is behind that.
// Bytes of a character that an earlier token began are not this token's, and
// bytes of one that it leaves open are, without having given text yet.
func (t *queuedToken) split(from, to int) (part tokenLogprob, rest queuedToken) {
	foreign := max(0, t.gave-len(t.text))
	unseen := max(0, len(t.text)-t.gave)
	part, rest = t.tokenLogprob, *t
	end := len(t.text)
	if to < t.gave {
		end = max(0, len(t.text)-unseen-(t.gave-to))
		rest.text, rest.gave = t.text[end:], t.gave-to
	}
	part.text = t.text[min(end, max(0, from-foreign)):end]
	return part, rest
}
