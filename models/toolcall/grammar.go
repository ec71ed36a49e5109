package toolcall

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"quern/models/chat"
	"quern/models/schema"
)

// Thinking says what a prompt leaves to the model.
type Thinking uint8

const (
	// NoThoughts means that the answer begins at once.
	NoThoughts Thinking = iota
	// MayThink lets the model open a block of thoughts first.
	MayThink
	// InThoughts means that the prompt has opened them.
	InThoughts
)

// GrammarOptions say what an answer has to be.
type GrammarOptions struct {
	// Require demands a call of one of the tools: tool_choice required, or a
	// named or allowed tool if only those are passed.
	Require bool
	// MaxCalls is the largest number of calls, 0 for the default of 16;
	// parallel_tool_calls: false is 1.
	MaxCalls int
	Thinking Thinking
	// Framed says that the prompt has opened the frame of the answer's text.
	Framed bool
	// Recursion is how often a value may stand inside one of the same schema, 0
	// for no limit.
	Recursion int
	// Answer demands JSON instead of free text.
	Answer *Answer
	// Schemas remembers compiled schemas; it may be nil.
	Schemas *schema.Cache
}

// Answer is text.format json_object, or json_schema with a Schema.
type Answer struct {
	Schema json.RawMessage
	Strict bool
}

const (
	defaultCalls = 16
	// maxBehindThoughts bounds the white space between thoughts and what is
	// demanded.
	maxBehindThoughts = 3
	maxGrammarText    = 2 << 20
)

// Grammar is what a sampler needs to hold a model to a format.
type Grammar struct {
	// GBNF is the grammar, from the first generated token on. Thoughts and
	// free text are part of it, so there is no trigger to wait for. It is
	// empty if nothing is demanded.
	GBNF string
	// Opening is text to put at the end of the prompt, in the assistant's
	// turn; the lexer needs it, too.
	Opening string
}

// Diag says that a grammar holds less than the client's schema does.
type Diag struct {
	// Tool is the index of the tool, -1 for the answer's schema.
	Tool int
	// Path and Msg are those of a schema.Error.
	Path, Msg string
}

// SchemaError is a schema that cannot be enforced although it has to be.
type SchemaError struct {
	Tool int // index of the tool, -1 for the answer's schema
	Name string
	Err  *schema.Error
}

func (e *SchemaError) Error() string {
	if e.Tool < 0 {
		return "schema of the answer: " + e.Err.Error()
	}
	return fmt.Sprintf("parameters of tool %q: %v", e.Name, e.Err)
}

func (e *SchemaError) Unwrap() error { return e.Err }

// errSpelling says that a tool's arguments cannot be held to the family's own
// spelling.
var errSpelling = errors.New("not in the family's spelling")

// Grammar makes the grammar for an answer with the given tools. Errors are
// *SchemaError.
func (f *Format) Grammar(tools []chat.Tool, o GrammarOptions) (Grammar, []Diag, error) {
	if len(f.Blocks) == 0 {
		return f.grammar(nil, tools, o)
	}
	if f.Blocks[0].Tags.Nested { // as elements, values have no grammar
		return f.grammar(f.Blocks[0].asObjects(), tools, o)
	}
	g, diags, err := f.grammar(&f.Blocks[0], tools, o)
	if errors.Is(err, errSpelling) { // what one spelling cannot hold, the other may
		return f.grammar(f.Blocks[0].asObjects(), tools, o)
	}
	return g, diags, err
}

// grammar makes a grammar whose calls are written as b says.
func (f *Format) grammar(b *Block, tools []chat.Tool, o GrammarOptions) (Grammar, []Diag, error) {
	g := &grammarWriter{f: f, b: b, o: o, tools: tools}
	strict := false
	for i := range tools {
		strict = strict || isHeld(&tools[i])
	}
	canCall := len(tools) > 0 && b != nil
	var body string
	var err error
	demanded := o.Require && canCall || o.Answer != nil || strict && canCall
	switch {
	case f.Messages != nil && demanded:
		body, err = g.messages(canCall)
	case o.Require && canCall:
		body, err = g.required()
	case o.Answer != nil:
		body, err = g.answer(canCall)
	case strict && canCall && b.first() != "":
		body, err = g.auto()
	case strict && canCall:
		body, err = g.autoUnmarked()
	default:
		return Grammar{}, nil, nil
	}
	if err != nil {
		return Grammar{}, g.diags, err
	}
	if f.Messages == nil {
		body = g.thoughts(body)
	}
	return Grammar{GBNF: g.rules.Text(body), Opening: g.opening}, g.diags, nil
}

type grammarWriter struct {
	f       *Format
	b       *Block // how calls are written
	o       GrammarOptions
	tools   []chat.Tool
	rules   schema.Grammar
	argsOf  []string // rule of each tool's arguments
	opening string
	diags   []Diag
	size    int
}

func (g *grammarWriter) add(name, body string) string {
	g.rules.AddRules(schema.Rule{Name: name, Body: body})
	return name
}

// required is an answer of calls only.
func (g *grammarWriter) required() (string, error) {
	call, err := g.call(false)
	if err != nil {
		return "", err
	}
	before, after := g.b.around()
	epilogue := maybe(g.b.Epilogue)
	if g.o.Thinking == NoThoughts {
		g.opening = before
		if s := g.f.frame(); g.o.Framed && s != nil {
			g.opening = s.End + before
		}
		return sequence(g.calls(call), literal(after), epilogue), nil
	}
	return sequence(maybe(g.b.Preface), literal(before), g.calls(call), literal(after), epilogue), nil
}

// calls repeats a call as the format does, between the outermost markers.
func (g *grammarWriter) calls(call string) string {
	b := g.b
	open, between, shut := b.repeat()
	if b.first() == "" && !b.List {
		return sequence(open, call, shut)
	}
	return sequence(open, call, g.furtherCalls(between, call), shut)
}

// furtherCalls is what may follow the first call, within the limit.
func (g *grammarWriter) furtherCalls(between, call string) string {
	most := g.o.MaxCalls
	if most <= 0 {
		most = defaultCalls
	}
	if most == 1 {
		return ""
	}
	return fmt.Sprintf("( %s %s ){0,%d}", between, call, min(most, 128)-1)
}

// call is one call of any tool, without its markers: what all share, then an
// alternative for each tool.
func (g *grammarWriter) call(onlyStrict bool) (string, error) {
	alts := make([]string, len(g.tools))
	g.argsOf = make([]string, len(g.tools))
	for i := range g.tools {
		args, err := g.arguments(i, onlyStrict && !isHeld(&g.tools[i]))
		if err != nil {
			return "", err
		}
		g.argsOf[i] = args
		alts[i] = g.add(fmt.Sprintf("tool-%d", i), g.b.callOf(g.tools[i].Name, args))
	}
	return g.add("call", sequence(g.b.callLead(), "( "+strings.Join(alts, " | ")+" )")), nil
}

// inJSON is s as it stands inside a JSON string.
func inJSON(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return s
	}
	out := strings.TrimSuffix(b.String(), "\n")
	return out[1 : len(out)-1]
}

// isHeld says that calls of a tool are right even where none is required.
func isHeld(t *chat.Tool) bool { return t.Strict || t.Grammar != nil }

const tooLarge = "the schemas and grammars are too large together"

// arguments is the rule for a tool's arguments. A schema that does not
// compile, or is too large, leaves that tool with any object, unless it is
// strict.
func (g *grammarWriter) arguments(i int, free bool) (string, error) {
	t := &g.tools[i]
	spelling := g.b.spelling()
	var held *schema.Compiled
	if t.Grammar != nil {
		held = t.Grammar.Spelled(spelling)
	}
	switch {
	case free:
	case held != nil && g.fits(held):
		return held.Root, nil
	case held != nil:
		g.diags = append(g.diags, Diag{Tool: i, Path: "$", Msg: tooLarge})
	default:
		c, err := g.o.Schemas.Compile(t.Parameters, schema.Options{Object: true, Closed: true, Strict: t.Strict, Spelling: spelling, Recursion: g.o.Recursion})
		if err == nil && g.fits(c) {
			g.relaxed(i, c)
			return c.Root, nil
		}
		if spelling.Kind != schema.AsJSON {
			return "", errSpelling
		}
		if err == nil {
			err = &schema.Error{Path: "$", Msg: tooLarge}
		}
		var e *schema.Error
		errors.As(err, &e)
		if t.Strict {
			return "", &SchemaError{Tool: i, Name: t.Name, Err: e}
		}
		g.diags = append(g.diags, Diag{Tool: i, Path: e.Path, Msg: e.Msg})
	}
	c, err := g.o.Schemas.Compile(nil, schema.Options{Object: true, Spelling: spelling})
	if err != nil {
		return "", fmt.Errorf("any object: %w", err)
	}
	g.rules.Add(c)
	return c.Root, nil
}

// fits takes over the rules of a schema if there is room for them.
func (g *grammarWriter) fits(c *schema.Compiled) bool {
	size := 0
	for _, r := range c.Rules {
		size += len(r.Name) + len(r.Body)
	}
	if g.size+size > maxGrammarText {
		return false
	}
	g.size += size
	g.rules.Add(c)
	return true
}

func (g *grammarWriter) relaxed(tool int, c *schema.Compiled) {
	for _, e := range c.Relaxed {
		g.diags = append(g.diags, Diag{Tool: tool, Path: e.Path, Msg: e.Msg})
	}
}

// answer is a JSON text, or calls where there are tools.
func (g *grammarWriter) answer(canCall bool) (string, error) {
	root, err := g.answerSchema()
	if err != nil {
		return "", err
	}
	root = g.framed(root)
	if !canCall || g.b.first() == "" {
		return root, nil
	}
	call, err := g.call(true)
	if err != nil {
		return "", err
	}
	before, after := g.b.around()
	return fmt.Sprintf("( %s | %s )", root, sequence(literal(before), g.calls(call), literal(after))), nil
}

// framed allows the family's frame around an answer.
func (g *grammarWriter) framed(answer string) string {
	s := g.f.frame()
	switch {
	case s == nil:
		return answer
	case g.o.Framed:
		return sequence(answer, maybe(s.End))
	}
	return "( " + sequence(literal(s.Start), answer, maybe(s.End)) + " | " + answer + " )"
}

// answerSchema is the JSON that the answer has to be.
func (g *grammarWriter) answerSchema() (string, error) {
	o := schema.Options{Pretty: true, Closed: true, Strict: g.o.Answer.Strict, Recursion: g.o.Recursion}
	if len(g.o.Answer.Schema) == 0 {
		o = schema.Options{Pretty: true, Object: true}
	}
	c, err := g.o.Schemas.Compile(g.o.Answer.Schema, o)
	if err != nil {
		var e *schema.Error
		errors.As(err, &e)
		return "", &SchemaError{Tool: -1, Err: e}
	}
	g.rules.Add(c)
	g.relaxed(-1, c)
	return c.Root, nil
}

// auto is free text in which calls, where there are any, are right. Behind a
// block the text goes on, and may lead to the next, unless there may be but one.
func (g *grammarWriter) auto() (string, error) {
	call, err := g.call(true)
	if err != nil {
		return "", err
	}
	b, rest := g.b, "text"
	if g.o.MaxCalls == 1 {
		rest = maybe(b.Epilogue)
	} else if !b.List && !b.Shared && (b.Section == "" || b.Single) {
		defer func(n int) { g.o.MaxCalls = n }(g.o.MaxCalls)
		g.o.MaxCalls = 1 // in a block
	}
	before, after := b.around()
	g.add("block", sequence(literal(strings.TrimPrefix(before, b.first())), g.calls(call), literal(after), rest))
	patterns := []pattern{{b.first(), "block"}}
	if b.Section != "" { // calls without their section
		lead, trail := b.inside()
		end := literal(b.Inner + b.SectionEnd)
		patterns = append(patterns, pattern{b.Start, g.add("bare-block", sequence(literal(lead), call, literal(trail), "( "+end+" )?", rest))})
	}
	g.rules.AddRules(freeText("text", true, patterns...)...)
	if g.f.Bare != BareObject || b.Style != 0 {
		return "text", nil
	}
	// An answer may also begin as a call without the markers does.
	g.add("calls-end", `[ \n]{0,3}`)
	departs := map[rune]string{}
	a := buildAutomaton(patterns)
	for _, p := range patterns {
		r, _ := utf8.DecodeRuneInString(p.text)
		departs[r] = ruleName("text", a.step(0, r))
	}
	var begin []pattern
	for i := range g.tools {
		begin = append(begin, g.objects(i, "", b)...)
	}
	g.rules.AddRules(beginsWith("begin", "text", departs, begin)...)
	return "begin", nil
}

// thoughts puts the model's thoughts before body.
func (g *grammarWriter) thoughts(body string) string {
	if g.o.Thinking == NoThoughts || len(g.f.Reasoning) == 0 {
		return body
	}
	g.add("answer", body)
	g.add("thought-end", fmt.Sprintf(`[ \n]{0,%d} answer`, maxBehindThoughts))
	span := g.f.Reasoning[0]
	g.rules.AddRules(freeText("thought", false, pattern{span.End, "thought-end"})...)
	if g.o.Thinking == InThoughts {
		return "thought"
	}
	return literal(span.Start) + " thought | answer"
}

func literal(s string) string {
	if s == "" {
		return ""
	}
	return schema.Quote(s)
}

// maybe is a text that may be missing, as an expression.
func maybe(s string) string {
	if s == "" {
		return ""
	}
	return "( " + literal(s) + " )?"
}

func sequence(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		if p == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(p)
	}
	return b.String()
}
