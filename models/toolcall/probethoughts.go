package toolcall

import (
	"strings"

	"quern/models/chat"
)

// thoughts reads the marks around thoughts, where the template writes those of
// earlier answers, and how they end.
func (p *prober) thoughts() (spans []Span, end string) {
	said := chat.Message{Role: chat.Assistant, Reasoning: thinkWord, Content: sayWord}
	text, next := p.after(false, said), sayWord
	if !strings.Contains(text, thinkWord) { // maybe in a chain of calls that is still open
		text, next = p.chain(), string(p.one)
	}
	before, _, found := strings.Cut(text, thinkWord)
	after, ok := cutBetween(text, thinkWord, next)
	if !found || !ok || trim(after) == "" {
		return nil, ""
	}
	start := trim(before[commonStart(before, p.text):])
	head, _, _ := strings.Cut(p.text, sayWord)
	list := atoms(trim(before))
	switch {
	case start != "":
	case trim(before) == trim(head): // thoughts begin with the turn
		start = trim(p.open[commonStart(p.open, before):])
	case len(list) > 0: // an empty block stands in answers without thoughts
		start = list[len(list)-1]
	}
	mark := trim(after)
	if marks := atoms(mark); len(marks) > 1 && len(marks[0]) > 1 {
		mark = marks[0] // what follows opens the visible text
	}
	if start == "" || mark == "" {
		return nil, ""
	}
	behind := leading(after[strings.Index(after, mark)+len(mark):])
	return []Span{{start, mark}}, leading(after) + mark + behind[:min(len(behind), maxBehindThoughts)]
}

// chain is a call behind thoughts.
func (p *prober) chain() string {
	return p.after(false, chat.Message{Role: chat.Assistant, Reasoning: thinkWord, Calls: []chat.Call{firstCall}})
}

// leaveEmptyThoughts takes the empty block of thoughts that some templates write
// before calls out of the samples.
func (p *prober) leaveEmptyThoughts() {
	before, after, _ := strings.Cut(p.chain(), thinkWord)
	marks, ends := atoms(trim(before)), atoms(trim(after))
	if len(marks) == 0 || len(ends) == 0 || !isTag(ends[0]) {
		return
	}
	start, end := marks[len(marks)-1], ends[0]
	for _, s := range []*sample{&p.one, &p.two, &p.none, &p.keys, &p.number} {
		rest, opened := strings.CutPrefix(strings.TrimLeft(string(*s), blanks), start)
		if rest, closed := strings.CutPrefix(strings.TrimLeft(rest, blanks), end); opened && closed {
			*s = sample(rest)
		}
	}
}

// frames reads the marks around visible text.
func (p *prober) frames(thoughts []Span) []Span {
	call := p.after(false, chat.Message{Role: chat.Assistant, Calls: []chat.Call{firstCall}})
	text := p.text[commonStart(p.text, call) : len(p.text)-commonEnd(p.text, call)]
	start, end, ok := strings.Cut(text, sayWord)
	for _, s := range append(thoughts, think...) {
		start = strings.Replace(strings.Replace(start, s.Start, "", 1), s.End, "", 1)
	}
	if start, end = trim(start), trim(end); !ok || start == "" || end == "" {
		return nil
	}
	return []Span{{start, end}}
}
