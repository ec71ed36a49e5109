package template

import (
	"errors"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"

	"quern/models/chat"
	"quern/models/template/dialect"
	"quern/tokenizer"
)

// guard keeps a client's text from becoming control tokens. Where such text
// spells a special token, that spelling alone is replaced by a stand-in before
// the template runs, so that the template trims, splits and compares the text
// around it as ever; afterwards the stand-in becomes a literal segment. A
// template that looks for the spelling itself ("</think>" in an answer) does
// not find it, which is the point, with one exception: see answer.
//
// A stand-in is a private-use character, a random number that occurs nowhere
// in the conversation, an index, and a closing character. tojson swaps the
// closing character, because the literal then has to be escaped.
type guard struct {
	special func(string) bool
	absent  func(string) bool // the text occurs nowhere in the conversation
	open    string            // up to the index; empty until the first is made
	items   []standIn
}

// standIn is what takes the place of one: a literal, or a mark of ours.
type standIn struct {
	literal string
	mark    mark
}

// mark is a place in the prompt that something is done at.
type mark int

const (
	markNone   mark = iota
	markCut         // the prompt ends here
	markResult      // the result of a tool ends here
)

const (
	guardOpen  = "\uE0F0"
	guardIndex = "\uE0F3"
	guardPlain = "\uE0F1"
	guardJSON  = "\uE0F2"
)

var errStandIn = errors.New("the template took the text of a special token apart")

// text guards one text of the client.
func (g *guard) text(s string) string {
	if g.special == nil || !g.special(s) {
		return s
	}
	var b strings.Builder
	for {
		// The shortest head that holds a spelling ends with one, and the
		// shortest tail of that head is the spelling.
		end, found := least(len(s), func(n int) bool { return g.special(s[:n]) })
		if !found {
			b.WriteString(s)
			return b.String()
		}
		length, _ := least(end, func(n int) bool { return g.special(s[end-n : end]) })
		b.WriteString(s[:end-length])
		b.WriteString(g.add(standIn{literal: s[end-length : end]}))
		s = s[end:]
	}
}

// least is the smallest n up to limit for which ok holds; it then holds for
// all above. It looks near 0 first: a text full of special tokens would
// otherwise cost its whole length for each.
func least(limit int, ok func(int) bool) (n int, found bool) {
	low, high := 0, min(32, limit)
	for !ok(high) {
		if high == limit {
			return 0, false
		}
		low, high = high, min(2*high, limit)
	}
	return low + sort.Search(high-low, func(n int) bool { return ok(low + n) }), true
}

// answer guards the text of an assistant. Thoughts that a client sent back in
// front of the answer keep their two marks: the template knows what to do with
// them, and the model had written them as control tokens.
func (g *guard) answer(s string) string {
	const open, end = "<think>", "</think>"
	lead := len(s) - len(strings.TrimLeft(s, " \t\r\n"))
	thought, rest, ok := strings.Cut(s[lead:], end)
	if !ok || !strings.HasPrefix(thought, open) {
		return g.text(s)
	}
	return s[:lead] + open + g.text(thought[len(open):]) + end + g.text(rest)
}

func (g *guard) add(s standIn) string {
	if g.open == "" {
		for g.open == "" || !g.absent(g.open) {
			g.open = guardOpen + strconv.FormatUint(rand.Uint64(), 10) + guardIndex
		}
	}
	g.items = append(g.items, s)
	return g.open + strconv.Itoa(len(g.items)-1) + guardPlain
}

// inJSON is applied to strings that tojson has written.
func (g *guard) inJSON(s string) string {
	if g.open == "" || !strings.Contains(s, g.open) {
		return s
	}
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, g.open)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		index, after, _ := strings.Cut(rest, guardPlain)
		b.WriteString(g.open + index + guardJSON)
		s = after
	}
}

// split finds the next stand-in of s.
func (g *guard) split(s string) (before string, found standIn, escaped bool, after string, err error) {
	i := -1
	if g.open != "" {
		i = strings.Index(s, g.open)
	}
	if i < 0 {
		return s, standIn{}, false, "", nil
	}
	rest := s[i+len(g.open):]
	end := strings.IndexAny(rest, guardPlain+guardJSON)
	if end < 0 {
		return "", standIn{}, false, "", errStandIn
	}
	n, err := strconv.Atoi(rest[:end])
	if err != nil || n < 0 || n >= len(g.items) {
		return "", standIn{}, false, "", errStandIn
	}
	escaped = strings.HasPrefix(rest[end:], guardJSON)
	return s[:i], g.items[n], escaped, rest[end+len(guardPlain):], nil
}

// resolve makes the segments of a rendered text. after is put behind anchor
// where a result's mark stands before it. cut tells whether the prompt was
// ended at a mark.
func (g *guard) resolve(rendered, anchor, after string) (segs []tokenizer.Segment, cut bool, err error) {
	var plain strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			segs = append(segs, tokenizer.Segment{Text: plain.String()})
			plain.Reset()
		}
	}
	for rest := rendered; rest != ""; {
		before, found, escaped, tail, err := g.split(rest)
		if err != nil {
			return nil, false, err
		}
		plain.WriteString(before)
		rest = tail
		switch {
		case found.mark == markCut:
			flush()
			return segs, true, nil
		case found.mark == markResult:
			if i := strings.Index(rest, anchor); i >= 0 {
				rest = rest[:i+len(anchor)] + after + rest[i+len(anchor):]
			}
		case found.literal != "":
			text := found.literal
			if escaped {
				text = dialect.QuoteJSON(text)
				text = text[1 : len(text)-1]
			}
			flush()
			segs = append(segs, tokenizer.Segment{Text: text, Literal: true})
		}
	}
	flush()
	return segs, false, nil
}

// holds tells whether any text of the conversation contains s.
func holds(c *chat.Conversation, s string) bool {
	for _, m := range c.Messages {
		if strings.Contains(m.Content, s) || strings.Contains(m.Reasoning, s) ||
			strings.Contains(m.Name, s) || strings.Contains(m.CallID, s) {
			return true
		}
		for _, call := range m.Calls {
			if strings.Contains(call.Arguments, s) || strings.Contains(call.Name, s) || strings.Contains(call.ID, s) {
				return true
			}
		}
	}
	for _, t := range c.Tools {
		if strings.Contains(t.Name, s) || strings.Contains(t.Description, s) || strings.Contains(string(t.Parameters), s) {
			return true
		}
	}
	for _, kv := range c.Kwargs {
		if strings.Contains(string(kv.Value), s) {
			return true
		}
	}
	return false
}
