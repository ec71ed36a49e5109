package schema

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
)

// Pattern is a set of texts that a regular expression describes, each as a
// whole.
type Pattern struct {
	d    *dfa
	work int
}

// Work is what it took to make the pattern, in bytes and states.
func (p *Pattern) Work() int { return p.work }

// CompilePattern makes a Pattern of a regular expression in RE2's syntax, with
// \uXXXX. ErrUnsupported and ErrTooLarge mark what is beyond a grammar, anchors
// among them; other errors are faults of the expression.
func CompilePattern(expr string) (*Pattern, error) {
	expr = fromECMA(expr)
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, patternError(err)
	}
	if looksAround(re) {
		return nil, fmt.Errorf("anchor or word boundary: %w", ErrUnsupported)
	}
	d, err := compilePattern("^(?:" + expr + ")$")
	if err != nil {
		return nil, err
	}
	work := len(expr) + len(d.states)
	reduced, ok := d.reduce()
	if !ok {
		return nil, fmt.Errorf("matches no text: %w", ErrUnsupported)
	}
	return &Pattern{reduced, work}, nil
}

// looksAround says that an expression depends on what stands beside its text.
func looksAround(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return slices.ContainsFunc(re.Sub, looksAround)
}

// MatchesEmpty says whether the empty text is in the set.
func (p *Pattern) MatchesEmpty() bool { return p.d.states[0].accept }

// Within says whether all characters of all texts are among chars.
func (p *Pattern) Within(chars string) bool {
	for _, s := range p.d.states {
		for _, e := range s.edges {
			for r := e.lo; r <= e.hi; r++ {
				if !slices.Contains([]rune(chars), r) {
					return false
				}
			}
		}
	}
	return true
}

// Sized leaves the texts of lo to hi characters; hi < 0 is no bound. It is nil
// if none is left.
func (p *Pattern) Sized(lo, hi int) (*Pattern, error) {
	size, err := lengthBetween(lo, hi)
	if err != nil {
		return nil, err
	}
	d, err := intersect(p.d, size)
	if err != nil {
		return nil, err
	}
	reduced, ok := d.reduce()
	if !ok {
		return nil, nil
	}
	return &Pattern{reduced, p.work + len(d.states)}, nil
}

// Text collects the rules of a language whose sentences are to be the text of a
// JSON string, so that quotes, backslashes and line breaks are escaped, or are
// to stand as they are.
type Text struct {
	b   *builder
	how spelling
}

// NewText begins a language; source tells its rules from those of others. A
// plain one has no escapes.
func NewText(source string, plain bool) *Text {
	t := &Text{newBuilder(prefix([]byte(source), Options{}) + "t"), jsonString}
	if plain {
		t.b.prefix, t.how = t.b.prefix+"p", plainText
	}
	return t
}

// Reserve takes a name for a rule that Put gives its body later.
func (t *Text) Reserve() string { return t.b.reserve() }

// Put sets the body of a reserved rule.
func (t *Text) Put(name, body string) error { return tooLarge(t.b.put(name, body)) }

// Add makes a rule of a body, or finds the one that has it.
func (t *Text) Add(body string) (string, error) {
	name, err := t.b.add(body)
	return name, tooLarge(err)
}

// Repeat spells "lo to hi times" for the name of a rule; hi < 0 is no bound.
func (t *Text) Repeat(rule string, lo, hi int) (string, error) {
	if hi == 0 {
		return `""`, nil
	}
	expr, err := t.b.repeat(rule, lo, hi)
	return expr, tooLarge(err)
}

// Pattern writes a pattern and returns the name of its rule, or an expression
// without alternatives.
func (t *Text) Pattern(p *Pattern) (string, error) {
	expr, err := t.b.automaton(p.d, t.how, "")
	return expr, tooLarge(err)
}

func tooLarge(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrTooLarge, err)
}

// Member is the grammar of an object with one member, whose value is a string
// with a text of the rule start; plainStart is the same in a plain Text.
func (t *Text) Member(key, start string, plain *Text, plainStart string) (*Compiled, error) {
	root, err := t.Add(sequence(quote("{"+quotedIn(key, '"')+":"), t.b.prim("sp"), `"\""`, start, `"\"}"`))
	if err != nil {
		return nil, err
	}
	return &Compiled{Root: root, Rules: t.b.rules, member: &textMember{key, start, plainStart, plain.b.rules}}, nil
}

// textMember is a text that is the only argument of a call.
type textMember struct {
	key, start, plainStart string
	plainRules             []Rule
}

// Spelled is the grammar of a Text's Member as an argument in a spelling. It is
// nil for a schema's grammar, which has to be compiled so. Between tags, a text
// that contains the marker at its end is left to the language not to have.
func (c *Compiled) Spelled(s Spelling) *Compiled {
	m := c.member
	switch {
	case s.Kind == AsJSON:
		return c
	case m == nil:
		return nil // its text is plain JSON
	case s.Kind == AsLiterals:
		return c // its string is Python's as well
	case s.Kind == AsKeywords:
		body := sequence(quote(m.key+s.Assign+`"`), m.start, `"\""`)
		return &Compiled{Root: c.Root + "-k", Rules: append(slices.Clip(c.Rules), Rule{c.Root + "-k", body})}
	}
	if s.Trim && s.Lead == "" { // readers drop a line break at each end
		s.Lead, s.Trail = "\n", "\n"
	}
	body := sequence(quote(s.KeyStart+m.key+s.KeyEnd), s.optional(s.Gap), s.declare(typeString), m.plainStart, quote(s.Trail+s.ValueEnd), s.optional(s.After))
	return &Compiled{Root: c.Root + "-x", Rules: append(slices.Clip(m.plainRules), Rule{c.Root + "-x", body})}
}

// IsBeyond says that an error tells of something that a grammar can't hold, not
// of a fault.
func IsBeyond(err error) bool { return errors.Is(err, ErrUnsupported) || errors.Is(err, ErrTooLarge) }
