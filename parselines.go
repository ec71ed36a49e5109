package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"quern/models/toolcall"
	"quern/tokenizer"
)

const (
	finishLength = "length"
	completed    = "completed"
	incomplete   = "incomplete"
)

// rawCase is one raw output and what the request said of it.
type rawCase struct {
	ID       string         `json:"id"`
	Format   string         `json:"format"`
	Thinking string         `json:"thinking"`
	Tools    []declaredTool `json:"tools"`
	Parallel *bool          `json:"parallel"`
	Starts   bool           `json:"starts_in_reasoning"`
	Raw      string         `json:"raw"`
	Finish   string         `json:"finish"`
	Stop     []string       `json:"stop"`
	PlainAt  []int          `json:"plain_at"` // in characters
}

// parsedItem is an output item of a response, without what the server adds.
type parsedItem struct {
	Type      string        `json:"type"`
	Role      string        `json:"role,omitempty"`
	Status    string        `json:"status"`
	Name      string        `json:"name,omitempty"`
	CallID    string        `json:"call_id,omitempty"` // where the model wrote one
	Arguments *string       `json:"arguments,omitempty"`
	Content   []contentPart `json:"content,omitempty"`
}

type contentPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// reading collects the events of one output into items.
type reading struct {
	items     []parsedItem
	malformed []string
	cut       bool
	parts     bool // the next text is another message
	stops     *tokenizer.StopMatcher
	stopped   bool
}

// piece is what the lexer gets at once: text, and the marker that it is as a
// token, counted from 0, or -1.
type piece struct {
	token int32
	text  string
}

// read runs the lexer over the output. Markers are told by their spelling,
// except where some of them are known to be letters: then the others are tokens.
func (c *rawCase) read(f *toolcall.Format, chunk int) *reading {
	o := toolcall.Options{Tools: chatTools(c.Tools), StartInReasoning: c.Starts, Bare: true}
	if c.Parallel != nil && !*c.Parallel {
		o.MaxCalls = 1
	}
	var markers []string
	if len(c.PlainAt) > 0 {
		markers = f.Markers()
		o.Lookup = func(text string) (int32, bool) {
			i := slices.Index(markers, text)
			return int32(i), i >= 0
		}
	}
	r := &reading{cut: c.Finish == finishLength, items: []parsedItem{}}
	if len(c.Stop) > 0 {
		r.stops = tokenizer.NewStopMatcher(c.Stop)
	}
	l := toolcall.NewLexer(f, o)
	for _, p := range c.pieces(markers, chunk) {
		if r.stopped || l.Done() {
			break
		}
		r.add(l.Push(p.token, []byte(p.text)))
	}
	if !r.stopped {
		r.add(l.Flush(r.cut))
	}
	r.end()
	return r
}

// pieces cuts the output at each marker that counts and every chunk bytes.
func (c *rawCase) pieces(markers []string, chunk int) []piece {
	var out []piece
	from, runes := 0, 0
	text := func(to int) {
		for from < to {
			n := to - from
			if chunk > 0 {
				n = min(n, chunk)
			}
			out = append(out, piece{-1, c.Raw[from : from+n]})
			from += n
		}
	}
	for i := 0; i < len(c.Raw); {
		_, n := utf8.DecodeRuneInString(c.Raw[i:])
		if m := longest(markers, c.Raw[i:]); m >= 0 && !slices.Contains(c.PlainAt, runes) {
			text(i)
			n = len(markers[m])
			out = append(out, piece{int32(m), markers[m]})
			from = i + n
		}
		runes += utf8.RuneCountInString(c.Raw[i : i+n])
		i += n
	}
	text(len(c.Raw))
	return out
}

// longest is the index of the longest marker that s begins with, or -1.
func longest(markers []string, s string) int {
	best := -1
	for i, m := range markers {
		if strings.HasPrefix(s, m) && (best < 0 || len(m) > len(markers[best])) {
			best = i
		}
	}
	return best
}

func (r *reading) add(events []toolcall.Event) {
	for i := range events {
		e := &events[i]
		if r.stopped {
			return
		}
		switch e.Kind {
		case toolcall.TextDelta:
			text := e.Text
			if r.stops != nil {
				text, r.stopped = r.stops.Push(text)
			}
			r.say("message", "output_text", text)
		case toolcall.ReasoningDelta:
			r.say("reasoning", "reasoning_text", e.Text)
		case toolcall.CallStart:
			r.flush()
			r.items = append(r.items, parsedItem{Type: "function_call", Status: incomplete, Name: e.Name, CallID: e.ID, Arguments: new(string)})
		case toolcall.ArgsDelta:
			*r.last().Arguments += string(e.Text)
		case toolcall.CallEnd:
			r.last().CallID = e.ID
			if !e.Cut {
				r.last().Status = completed
			}
		case toolcall.Break:
			r.flush()
			r.parts = true
		case toolcall.Malformed:
			r.malformed = append(r.malformed, e.Why)
		}
	}
}

func (r *reading) last() *parsedItem { return &r.items[len(r.items)-1] }

// say adds text to the last item, or begins an item with it.
func (r *reading) say(kind, part string, text []byte) {
	if kind != "message" {
		r.flush()
	}
	if len(text) == 0 {
		return
	}
	if len(r.items) == 0 || r.last().Type != kind || r.parts {
		r.parts = false
		r.items = append(r.items, parsedItem{Type: kind, Status: completed, Content: []contentPart{{Type: part}}})
		if kind == "message" {
			r.last().Role = "assistant"
		}
	}
	r.last().Content[0].Text += string(text)
}

// flush gives out text that turned out to be no stop string.
func (r *reading) flush() {
	if r.stops != nil && !r.stopped {
		r.say("message", "output_text", r.stops.Flush())
	}
}

// end drops messages of nothing but blanks; a limit leaves what it fell into
// incomplete.
func (r *reading) end() {
	r.flush()
	r.items = slices.DeleteFunc(r.items, func(i parsedItem) bool {
		return len(i.Content) > 0 && strings.TrimSpace(i.Content[0].Text) == ""
	})
	if r.cut && len(r.items) > 0 && r.last().Arguments == nil {
		r.last().Status = incomplete
	}
}

func (r *reading) status() string {
	if r.cut {
		return incomplete
	}
	return completed
}

type parsedCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type parsedLine struct {
	ID        string       `json:"id"`
	Reasoning *string      `json:"reasoning"`
	Text      string       `json:"text"`
	Calls     []parsedCall `json:"calls"`
	Status    string       `json:"status"`
	Last      *string      `json:"last_item_status"`
}

// line is the result in the form of the JSON lines.
func (r *reading) line(id string) parsedLine {
	out := parsedLine{ID: id, Calls: []parsedCall{}, Status: r.status()}
	var texts, thoughts []string
	for i := range r.items {
		switch item := &r.items[i]; item.Type {
		case "message":
			texts = append(texts, item.Content[0].Text)
		case "reasoning":
			thoughts = append(thoughts, item.Content[0].Text)
		default:
			out.Calls = append(out.Calls, parsedCall{item.Name, *item.Arguments})
		}
		out.Last = &r.items[i].Status
	}
	out.Text = strings.Join(texts, "\n")
	if len(thoughts) > 0 {
		all := strings.Join(thoughts, "\n")
		out.Reasoning = &all
	}
	return out
}

// parseLines answers every line whose format is known; the others are named in
// the error.
func parseLines(in io.Reader, out io.Writer, chunk int) error {
	lines := bufio.NewReader(in)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	var unknown []string
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if len(strings.TrimSpace(string(line))) > 0 {
			var c rawCase
			if err := json.Unmarshal(line, &c); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
			f, err := toolcall.ByName(c.Format)
			switch {
			case err != nil && !slices.Contains(unknown, c.Format):
				unknown = append(unknown, c.Format)
			case err == nil:
				if c.Thinking == "none" {
					f.Reasoning = nil
				}
				if err := e.Encode(c.read(&f, chunk).line(c.ID)); err != nil {
					return fmt.Errorf("write line %d: %w", n, err)
				}
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read line %d: %w", n, err)
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("lines left out: no tool format %s; there are %s", strings.Join(unknown, ", "), strings.Join(toolcall.Names(), ", "))
	}
	return nil
}
