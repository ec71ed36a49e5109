package toolcall

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"quern/models/chat"
)

// Renderer is a chat template: what it makes of messages as they are. With open
// it begins an answer behind them.
type Renderer func(messages []chat.Message, tools []chat.Tool, open bool) (string, error)

// Probed is the name of a format that was read off a template.
const Probed = "probed"

// Words that no template writes of its own accord.
const (
	askWord    = "zqask"
	sayWord    = "QZsay"
	thinkWord  = "zqthink"
	firstName  = "zqalpha"
	otherName  = "zqbeta"
	firstKey   = "zqkeya"
	otherKey   = "zqkeyb"
	numberKey  = "zqkeyn"
	firstValue = "zqvala"
	otherValue = "zqvalb"
	someNumber = "70707"
)

// sample is a call as the template writes it, without the beginning and the end of
// its turn.
type sample string

// prober knows what a template makes of answers that differ in one thing each.
type prober struct {
	render   Renderer
	open     string // how an answer begins
	text     string // an answer in words
	one, two sample // a call, two calls
	none     sample // a call without arguments
	keys     sample // with two arguments
	number   sample // with one that is no string
}

var errNoCall = errors.New("calls don't show up")

// Probe finds out how a template writes calls, by rendering answers that differ
// in one thing each, and says what it has seen. A format is returned only if a
// lexer that goes by it reads all of these answers.
func Probe(render Renderer) (Format, string, error) {
	p := &prober{render: render}
	f := Format{Name: Probed}
	if err := p.ask(); err != nil {
		return f, "", err
	}
	var err error
	for _, shape := range [...]func() (Block, bool){p.objects, p.afterName, p.tags, p.expressions} {
		b, ok := shape()
		if !ok {
			continue
		}
		f.Blocks = []Block{b}
		f.Bare = b.bare()
		f.Reasoning, f.ThoughtsEnd = p.thoughts()
		f.Frames = p.frames(f.Reasoning)
		if err = p.verify(&f); err == nil {
			return f, b.describe(), nil
		}
	}
	if err == nil {
		err = errors.New("no known shape of calls")
	}
	return f, "", err
}

// bare is what an answer without marks can be.
func (b *Block) bare() Bare {
	switch {
	case b.first() != "":
		return BareNone
	case b.List:
		return BareList
	case b.Style == ArgsInObject:
		return BareNative
	}
	return BareNone
}

// describe says what was read, for people.
func (b *Block) describe() string {
	what := map[ArgStyle]string{
		ArgsInObject: "JSON objects", ArgsAfterName: "JSON behind a name", NameIsKey: "JSON under a name",
		Tagged: "tags", Expression: "expressions",
	}[b.Style]
	if b.first() == "" {
		return what + " without marks"
	}
	marks := fmt.Sprintf("%s between %s and %s", what, b.first(), orElse(orElse(b.SectionEnd, b.End), "the end"))
	return strings.ReplaceAll(marks, "\n", `\n`)
}

// callOf is a call with an id of its name's, of nine letters and digits, as some
// templates want them.
func callOf(name, args string) chat.Call {
	id := "q7w8e9r0t"
	if name != firstName {
		id = "M3n4B5v6C"
	}
	return chat.Call{ID: id, Name: name, Arguments: args}
}

var firstCall = callOf(firstName, `{"`+firstKey+`": "`+firstValue+`"}`)

func asks() chat.Message { return chat.Message{Role: chat.User, Content: askWord} }

// offered is a tool that no sample calls, so that the names of samples stand
// nowhere but in their calls.
var offered = []chat.Tool{{
	Name: "zqoffered", Description: "zqdescription", Parameters: json.RawMessage(`{"type": "object", "properties": {"zqproperty": {"type": "string"}}}`),
}}

// after renders an answer to the user and returns what follows the user's words.
func (p *prober) after(open bool, answer ...chat.Message) string {
	text, err := p.render(append([]chat.Message{asks()}, answer...), offered, open)
	i := strings.LastIndex(text, askWord)
	if err != nil || i < 0 {
		return ""
	}
	return text[i+len(askWord):]
}

func (p *prober) calls(calls ...chat.Call) sample {
	text := p.after(false, chat.Message{Role: chat.Assistant, Calls: calls})
	head := max(commonStart(text, p.text), commonStart(text, p.open))
	tail := min(commonEnd(text, p.text), len(text)-head)
	return sample(text[head : len(text)-tail])
}

// ask renders the samples. Without the first of them nothing can be told.
func (p *prober) ask() error {
	p.open = p.after(true)
	p.text = p.after(false, chat.Message{Role: chat.Assistant, Content: sayWord})
	p.one = p.calls(firstCall)
	if !strings.Contains(string(p.one), firstName) || !strings.Contains(string(p.one), firstValue) {
		return errNoCall
	}
	p.two = p.calls(firstCall, callOf(otherName, `{"`+firstKey+`": "`+otherValue+`"}`))
	if !strings.Contains(string(p.two), firstName) || !strings.Contains(string(p.two), otherName) {
		p.two = ""
	}
	p.none = p.calls(callOf(firstName, `{}`))
	p.keys = p.calls(callOf(firstName, `{"`+firstKey+`": "`+firstValue+`", "`+otherKey+`": "`+otherValue+`"}`))
	p.number = p.calls(callOf(firstName, `{"`+numberKey+`": `+someNumber+`}`))
	p.leaveEmptyThoughts()
	return nil
}

// Reads says what is wrong with a format for a template: nil if the calls that the
// template writes are read by it.
func Reads(render Renderer, f *Format) error {
	p := &prober{render: render}
	if err := p.ask(); err != nil {
		return err
	}
	return p.verify(f)
}

// verify reads the samples by the format and wants exactly the calls that they
// were made of.
func (p *prober) verify(f *Format) error {
	const tool = `{"type":"object","properties":{"` + firstKey + `":{"type":"string"},"` + otherKey + `":{"type":"string"},"` + numberKey + `":{"type":"integer"}}}`
	tools := []chat.Tool{{Name: firstName, Parameters: json.RawMessage(tool)}, {Name: otherName, Parameters: json.RawMessage(tool)}}
	one := firstName + `{"` + firstKey + `":"` + firstValue + `"}`
	for _, c := range []struct {
		s    sample
		want string
	}{
		{p.one, one},
		{p.two, one + otherName + `{"` + firstKey + `":"` + otherValue + `"}`},
		{p.none, firstName + `{}`},
		{p.keys, firstName + `{"` + firstKey + `":"` + firstValue + `","` + otherKey + `":"` + otherValue + `"}`},
		{p.number, firstName + `{"` + numberKey + `":` + someNumber + `}`},
	} {
		if c.s == "" {
			continue
		}
		raw := f.Blocks[0].without(string(c.s))
		for _, chunk := range []int{len(raw), 1} {
			if got := readBack(f, tools, raw, chunk); got != c.want {
				return fmt.Errorf("%q reads as %q", raw, got)
			}
		}
	}
	return nil
}

// without leaves out what stands behind the last mark of the block.
func (b *Block) without(raw string) string {
	last := orElse(b.SectionEnd, b.End)
	if i := strings.LastIndex(raw, last); last != "" && i >= 0 {
		return raw[:i+len(last)]
	}
	return raw
}

// readBack joins the names and arguments of what a lexer reads, visible text
// among them.
func readBack(f *Format, tools []chat.Tool, raw string, chunk int) string {
	l := NewLexer(f, Options{Tools: tools, Bare: true})
	var out strings.Builder
	add := func(events []Event) {
		for i := range events {
			out.WriteString(events[i].Name)
			if e := &events[i]; e.Kind == ArgsDelta {
				out.WriteString(strings.Map(withoutBlanks, string(e.Text)))
			} else {
				out.WriteString(trim(string(e.Text)))
			}
		}
	}
	for at := 0; at < len(raw); at += chunk {
		add(l.Push(-1, []byte(raw[at:min(len(raw), at+chunk)])))
	}
	add(l.Flush(false))
	return out.String()
}

func withoutBlanks(r rune) rune {
	if strings.ContainsRune(blanks, r) {
		return -1
	}
	return r
}
