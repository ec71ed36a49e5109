package schema

import (
	"fmt"
	"strings"
)

// Bounds on one compiled schema; llama.cpp's parser and its stacks grow with
// both.
const (
	maxRules       = 6000
	maxGrammarSize = 512 << 10
)

// Rule is one line of a grammar.
type Rule struct{ Name, Body string }

// builder collects the rules of one schema. Equal bodies share a rule.
type builder struct {
	prefix string
	rules  []Rule
	byBody map[string]string
	prims  map[string]bool
	size   int
	next   int
}

func newBuilder(prefix string) *builder {
	return &builder{prefix: prefix, byBody: map[string]string{}, prims: map[string]bool{}}
}

// reserve takes a name for a rule whose body comes later, which is how rules
// refer to themselves.
func (b *builder) reserve() string {
	b.next++
	return fmt.Sprintf("%s-%d", b.prefix, b.next)
}

// put sets the body of a reserved name.
func (b *builder) put(name, body string) error {
	b.rules = append(b.rules, Rule{name, body})
	b.size += len(name) + len(body) + 6
	if len(b.rules) > maxRules || b.size > maxGrammarSize {
		return fmt.Errorf("the grammar exceeds %d rules or %d KiB", maxRules, maxGrammarSize>>10)
	}
	return nil
}

// add makes a rule of a body, or finds the one that has it.
func (b *builder) add(body string) (string, error) {
	if name, ok := b.byBody[body]; ok {
		return name, nil
	}
	name := b.reserve()
	b.byBody[body] = name
	return name, b.put(name, body)
}

// append adds a rule that is the same in every grammar.
func (b *builder) append(name, body string) {
	b.rules = append(b.rules, Rule{name, body})
	b.size += len(name) + len(body)
}

// prim makes sure that a rule of the fixed set and all it needs are there.
func (b *builder) prim(name string) string {
	if b.prims[name] {
		return name
	}
	b.prims[name] = true
	p := primitives[name]
	b.append(name, p.body)
	for _, need := range p.needs {
		b.prim(need)
	}
	return name
}

type primitive struct {
	body  string
	needs []string
}

// primitives are shared by all grammars, under the same names. The rules that
// end in -l (line) have no line breaks between tokens; those in -p (pretty)
// allow one and some indentation. White space and digits are bounded
// everywhere: a small model at a loss repeats them without end. Escapes of
// lone surrogates are left out, since no client can encode them.
var primitives = map[string]primitive{
	"sp":   {`" "?`, nil},
	"ws-l": {`" "?`, nil},
	"ws-p": {`"" | " " | "\n" [ \t]{0,64}`, nil},
	"hex":  {`[0-9a-fA-F]`, nil},
	"esc": {`["\\/bfnrt] | "u" ( [0-9a-cefA-CEF] hex hex hex | [dD] [0-7] hex hex | ` +
		`[dD] [89abAB] hex hex "\\u" [dD] [c-fC-F] hex hex )`, []string{"hex"}},
	"char":    {`[^"\\\x00-\x1F\x7F] | "\\" esc`, []string{"esc"}},
	"char-s":  {`[^'\\\x00-\x1F\x7F] | "\\" ( esc | "'" )`, []string{"esc"}},
	"string":  {`"\"" char* "\""`, []string{"char"}},
	"int":     {`"0" | [1-9] [0-9]{0,15}`, nil},
	"integer": {`"-"? int`, []string{"int"}},
	"number":  {`"-"? int ( "." [0-9]{1,16} )? ( [eE] [-+]? [0-9]{1,2} )?`, []string{"int"}},
	"boolean": {`"true" | "false"`, nil},
	"null":    {`"null"`, nil},
	// Models of tags and keywords write Python's constants, too.
	"truth": {`"true" | "false" | "True" | "False"`, nil},
	"none":  {`"null" | "None"`, nil},

	"value-l":  {`object-l | array-l | string | number | boolean | null`, []string{"object-l", "array-l", "string", "number", "boolean", "null"}},
	"pair-l":   {`string ":" sp value-l`, []string{"string", "sp", "value-l"}},
	"object-l": {`"{" ( pair-l ( "," ws-l pair-l )* )? "}"`, []string{"pair-l", "ws-l"}},
	"array-l":  {`"[" ( value-l ( "," ws-l value-l )* )? "]"`, []string{"value-l", "ws-l"}},

	"value-p":  {`object-p | array-p | string | number | boolean | null`, []string{"object-p", "array-p", "string", "number", "boolean", "null"}},
	"pair-p":   {`string ":" sp value-p`, []string{"string", "sp", "value-p"}},
	"object-p": {`"{" ws-p ( pair-p ( "," ws-p pair-p )* ws-p )? "}"`, []string{"pair-p", "ws-p"}},
	"array-p":  {`"[" ws-p ( value-p ( "," ws-p value-p )* ws-p )? "]"`, []string{"value-p", "ws-p"}},
}

// quote spells a text as a GBNF literal.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\x%02X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// classRune spells a rune inside [ ].
func classRune(b *strings.Builder, r rune) {
	switch {
	case r == '[' || r == ']' || r == '\\':
		b.WriteByte('\\')
		b.WriteRune(r)
	case r == '-' || r == '^' || r < 0x20 || r == 0x7f:
		fmt.Fprintf(b, `\x%02X`, r)
	case r < 0x7f:
		b.WriteRune(r)
	case r <= 0xffff:
		fmt.Fprintf(b, `\u%04X`, r)
	default:
		fmt.Fprintf(b, `\U%08X`, r)
	}
}

// repeat spells "from lo to hi times elem", hi < 0 meaning no upper bound. It
// nests large counts in blocks of about their square root: llama.cpp spends a
// rule on every optional repetition, copies every required one, and takes no
// bound above 2000.
func (b *builder) repeat(elem string, lo, hi int) (string, error) {
	const direct = 48
	if hi < 0 {
		if lo == 0 {
			return elem + "*", nil
		}
		head, err := b.exactly(elem, lo)
		return head + " " + elem + "*", err
	}
	var parts []string
	if lo > 0 {
		head, err := b.exactly(elem, lo)
		if err != nil {
			return "", err
		}
		parts = append(parts, head)
	}
	switch n := hi - lo; {
	case n == 0:
	case n <= direct:
		parts = append(parts, fmt.Sprintf("%s{0,%d}", elem, n))
	default:
		tail, err := b.upTo(elem, n)
		if err != nil {
			return "", err
		}
		parts = append(parts, tail)
	}
	return strings.Join(parts, " "), nil
}

func (b *builder) exactly(elem string, n int) (string, error) {
	const direct = 48
	if n <= direct {
		if n == 1 {
			return elem, nil
		}
		return fmt.Sprintf("%s{%d}", elem, n), nil
	}
	k := sqrt(n)
	block, err := b.add(fmt.Sprintf("%s{%d}", elem, k))
	if err != nil {
		return "", err
	}
	out := fmt.Sprintf("%s{%d}", block, n/k)
	if n%k > 0 {
		out += fmt.Sprintf(" %s{%d}", elem, n%k)
	}
	return out, nil
}

// upTo allows 0 to n times elem: a chain of full blocks of k with a partial
// block after any of them.
func (b *builder) upTo(elem string, n int) (string, error) {
	k := sqrt(n + 1)
	block, err := b.add(fmt.Sprintf("%s{%d}", elem, k))
	if err != nil {
		return "", err
	}
	partial, err := b.add(fmt.Sprintf("%s{0,%d}", elem, k-1))
	if err != nil {
		return "", err
	}
	// n = full*k + rest; after the last full block only rest may follow.
	full, rest := n/k, n%k
	tail := `""`
	if rest > 0 {
		if tail, err = b.add(fmt.Sprintf("%s{0,%d}", elem, rest)); err != nil {
			return "", err
		}
	}
	for range full {
		if tail, err = b.add(fmt.Sprintf("%s | %s %s", partial, block, tail)); err != nil {
			return "", err
		}
	}
	return tail, nil
}

func sqrt(n int) int {
	k := 1
	for k*k < n {
		k++
	}
	return k
}
