package toolcall

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

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

// Grammar makes the grammar for an answer with the given tools. Errors are
// *SchemaError.
func (f *Format) Grammar(tools []chat.Tool, o GrammarOptions) (Grammar, []Diag, error) {
	g := &grammarWriter{f: f, o: o, tools: tools}
	strict := false
	for i := range tools {
		strict = strict || isHeld(&tools[i])
	}
	canCall := len(tools) > 0 && len(f.Blocks) > 0
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
	case strict && canCall && f.Blocks[0].first() != "":
		body, err = g.auto()
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

// forced is the block that grammars write. For tags and expressions it is one of objects
// between the same markers, which is read as well: a schema's rules then hold for
// values of every type.
func (f *Format) forced() *Block {
	b := &f.Blocks[0]
	switch {
	case b.Style == Expression && b.closing() == '}': // JSON has that form
		c := *b
		c.Style, c.NameEnd = ArgsAfterName, ""
		return &c
	case b.Style == Expression:
		return &Block{Start: b.Start, End: b.End, List: true}
	case b.Style != Tagged:
		return b
	}
	return &Block{Start: b.first(), End: orElse(b.SectionEnd, b.End), Lead: "\n", Trail: "\n", Between: "\n"}
}

// first is the marker that begins a block.
func (b *Block) first() string { return orElse(b.Section, b.Start) }

type grammarWriter struct {
	f       *Format
	o       GrammarOptions
	tools   []chat.Tool
	rules   schema.Grammar
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
	b := g.f.forced()
	before, after := b.around()
	if g.o.Thinking == NoThoughts {
		g.opening = before
		before = ""
	}
	return sequence(literal(before), g.calls(call, b), literal(after)), nil
}

// around is what stands before the first and after the last call.
func (b *Block) around() (before, after string) {
	before, after = b.Section+b.Start, b.End+b.SectionEnd
	if b.List {
		return before, after
	}
	return before + b.Lead, b.Trail + after
}

// calls repeats a call as the format does, between the outermost markers.
func (g *grammarWriter) calls(call string, b *Block) string {
	most := g.o.MaxCalls
	if most <= 0 {
		most = defaultCalls
	}
	between := b.Trail + b.End + b.Between + b.Start + b.Lead
	open, shut := "", ""
	switch {
	case b.List:
		between = orElse(b.Between, ", ")
		open, shut = "["+b.Lead, b.Trail+"]"
		if strings.HasSuffix(b.Start, "[") {
			open = b.Lead
		}
	case b.Shared:
		between = b.Between
	case b.first() == "":
		most = 1
	}
	body := sequence(literal(open), call)
	if most > 1 {
		body = sequence(body, fmt.Sprintf("( %s %s ){0,%d}", literal(between), call, min(most, 128)-1))
	}
	return sequence(body, literal(shut))
}

// call is one call of any tool, without its markers: what all share, then an
// alternative for each tool.
func (g *grammarWriter) call(onlyStrict bool) (string, error) {
	b := g.f.forced()
	alts := make([]string, len(g.tools))
	for i := range g.tools {
		args, err := g.arguments(i, onlyStrict && !isHeld(&g.tools[i]))
		if err != nil {
			return "", err
		}
		alts[i] = g.add(fmt.Sprintf("tool-%d", i), b.callOf(g.tools[i].Name, args))
	}
	return g.add("call", sequence(b.callLead(), "( "+strings.Join(alts, " | ")+" )")), nil
}

// callLead is what every call begins with.
func (b *Block) callLead() string {
	switch {
	case b.Style == NameIsKey:
		return literal(`{"`)
	case b.Style == ArgsAfterName && b.Indexed:
		return literal("functions.")
	case b.Style == ArgsAfterName:
		return ""
	}
	name := `"` + orElse(b.NameKey, "name") + `": "`
	if b.IDKey != "" {
		return sequence(literal(`{"`+b.IDKey+`": "`), "[0-9]{1,2}", literal(`", `+name))
	}
	return literal("{" + name)
}

// callOf is the rest of a call of one tool.
func (b *Block) callOf(name, args string) string {
	switch {
	case b.Style == NameIsKey:
		return sequence(literal(inJSON(name)+`": `), args, literal("}"))
	case b.Style == ArgsAfterName && b.Indexed:
		return sequence(literal(name+":"), "[0-9]{1,3}", literal(b.NameEnd), args)
	case b.Style == ArgsAfterName:
		return sequence(literal(name+b.NameEnd), args)
	}
	return sequence(literal(inJSON(name)+`", "`+orElse(b.ArgsKey, "arguments")+`": `), args, literal("}"))
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
	switch {
	case free:
	case t.Grammar != nil && g.fits(t.Grammar):
		return t.Grammar.Root, nil
	case t.Grammar != nil:
		g.diags = append(g.diags, Diag{Tool: i, Path: "$", Msg: tooLarge})
	default:
		c, err := g.o.Schemas.Compile(t.Parameters, schema.Options{Object: true, Closed: true, Strict: t.Strict})
		if err == nil && g.fits(c) {
			g.relaxed(i, c)
			return c.Root, nil
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
	c, err := g.o.Schemas.Compile(nil, schema.Options{Object: true})
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
	if err != nil || !canCall || g.f.forced().first() == "" {
		return root, err
	}
	call, err := g.call(true)
	if err != nil {
		return "", err
	}
	b := g.f.forced()
	before, after := b.around()
	return fmt.Sprintf("( %s | %s )", root, sequence(literal(before), g.calls(call, b), literal(after))), nil
}

// answerSchema is the JSON that the answer has to be.
func (g *grammarWriter) answerSchema() (string, error) {
	o := schema.Options{Pretty: true, Closed: true, Strict: g.o.Answer.Strict}
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

// auto is free text in which calls, where there are any, are right.
func (g *grammarWriter) auto() (string, error) {
	call, err := g.call(true)
	if err != nil {
		return "", err
	}
	b := g.f.forced()
	before, after := b.around()
	if g.o.MaxCalls != 1 && !b.List && !b.Shared {
		defer func(n int) { g.o.MaxCalls = n }(g.o.MaxCalls)
		g.o.MaxCalls = 1 // a block; text between them leads to the next
		return g.autoText(b, call, before, after, " text"), nil
	}
	rest := " text"
	if g.o.MaxCalls == 1 {
		rest = ""
	}
	return g.autoText(b, call, before, after, rest), nil
}

func (g *grammarWriter) autoText(b *Block, call, before, after, rest string) string {
	g.add("block", sequence(literal(strings.TrimPrefix(before, b.first())), g.calls(call, b), literal(after)+rest))
	patterns := []pattern{{b.first(), "block"}}
	if b.Section != "" { // calls without their section
		body := sequence(literal(strings.TrimPrefix(before, b.Section+b.Start)), g.calls(call, b), literal(after)+rest)
		patterns = append(patterns, pattern{b.Start, g.add("bare-block", body)})
	}
	g.rules.AddRules(freeText("text", true, patterns...)...)
	return "text"
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
