package schema

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
)

// Pattern is a set of texts that a regular expression describes, each as a
// whole.
type Pattern struct{ d *dfa }

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
	reduced, ok := d.reduce()
	if !ok {
		return nil, fmt.Errorf("matches no text: %w", ErrUnsupported)
	}
	return &Pattern{reduced}, nil
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
	return &Pattern{reduced}, nil
}

// Text collects the rules of a language whose sentences are to be the text of a
// JSON string, so that quotes, backslashes and line breaks are escaped.
type Text struct{ b *builder }

// NewText begins a language; source tells its rules from those of others.
func NewText(source string) *Text {
	return &Text{newBuilder(prefix([]byte(source), Options{}) + "t")}
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
	expr, err := t.b.automaton(p.d, jsonString, "")
	return expr, tooLarge(err)
}

func tooLarge(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrTooLarge, err)
}

// Member is the grammar of an object with one member, whose value is a string
// with a text of the rule start.
func (t *Text) Member(key, start string) (*Compiled, error) {
	root, err := t.Add(fmt.Sprintf(`%s %s "\"" %s "\"}"`, quote(`{"`+keyText(key)), t.b.prim("sp"), start))
	if err != nil {
		return nil, err
	}
	return &Compiled{Root: root, Rules: t.b.rules}, nil
}

// IsBeyond says that an error tells of something that a grammar can't hold, not
// of a fault.
func IsBeyond(err error) bool { return errors.Is(err, ErrUnsupported) || errors.Is(err, ErrTooLarge) }
