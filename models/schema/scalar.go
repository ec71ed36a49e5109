package schema

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// string writes a string with its length, patterns and formats.
func (c *compiler) string(f *flat) (string, error) {
	if f.maxLen >= 0 && f.minLen > f.maxLen {
		return "", unsatisfiable(f.path)
	}
	if f.maxLen >= maxRepeat {
		f.maxLen = -1
	}
	if f.minLen > maxRepeat {
		if err := c.relax(f.path, "minLength %d is too large", f.minLen); err != nil {
			return "", err
		}
		f.minLen = 0
	}
	if len(f.patterns) == 0 && len(f.formats) == 0 {
		return c.sizedString(f)
	}
	return c.once(f.textKey(), func() (string, error) { return c.patternString(f) })
}

// once returns the expression that write gave for this key before. What was
// relaxed or failed is written again, since each place is told of it.
func (c *compiler) once(key string, write func() (string, error)) (string, error) {
	if expr, ok := c.written[key]; ok {
		return expr, nil
	}
	relaxed := len(c.relaxed)
	expr, err := write()
	if err == nil && len(c.relaxed) == relaxed {
		c.written[key] = expr
	}
	return expr, err
}

// textKey is all that decides the text of a string.
func (f *flat) textKey() string {
	key := []string{"text", strconv.Itoa(f.minLen), strconv.Itoa(f.maxLen), strings.Join(f.formats, " ")}
	for _, p := range f.patterns {
		key = append(key, p.text)
	}
	for _, v := range f.enum {
		key = append(key, "="+v.text)
	}
	return strings.Join(key, "\x00")
}

func (c *compiler) patternString(f *flat) (string, error) {
	d, err := c.stringAutomaton(f)
	if err != nil {
		return "", err
	}
	if d == nil {
		return c.sizedString(f)
	}
	reduced, ok := d.reduce()
	if !ok {
		return "", unsatisfiable(f.path)
	}
	return c.quoted(reduced)
}

// sizedString counts characters. Where a text has to keep out of the way of a
// marker, its first character has to be escaped; the marker of strings without
// escapes is kept apart by an automaton.
func (c *compiler) sizedString(f *flat) (string, error) {
	lo, hi := f.minLen, f.maxLen
	if lo == 0 && hi < 0 {
		return c.prim("string"), nil
	}
	quoted := func(mark, char string) (string, error) {
		expr, err := c.b.repeat(char, lo, hi)
		return sequence(quote(mark), expr, quote(mark)), err
	}
	switch d := &c.dialect; {
	case d.quote != "":
		text, err := c.sizedText(f)
		if err != nil || text == nil {
			return c.prim("string"), err
		}
		return c.quoted(text)
	case d.literals:
		double, err := quoted(`"`, c.b.prim("char"))
		if err != nil {
			return "", err
		}
		single, err := quoted(`'`, c.b.prim("char-s"))
		return "( " + double + " | " + single + " )", err
	case d.until != "":
		var b strings.Builder
		classRune(&b, []rune(d.until)[0])
		char, err := c.b.add(`[^"\\\x00-\x1F\x7F` + b.String() + `] | "\\" ` + c.b.prim("esc"))
		if err != nil {
			return "", err
		}
		return quoted(`"`, char)
	}
	return quoted(`"`, c.b.prim("char"))
}

func sequence(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " ")
}

// stringAutomaton joins all that is said about a string's text; nil means
// that nothing can be said.
func (c *compiler) stringAutomaton(f *flat) (*dfa, error) {
	var d *dfa
	join := func(other *dfa, path string) error {
		if other == nil {
			return nil
		}
		both, err := intersectAll(d, other)
		if err != nil {
			return c.relax(path, "%v", err)
		}
		d = both
		return nil
	}
	for _, p := range f.patterns {
		other, err := c.pattern(p)
		if err == nil {
			err = join(other, p.path)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, name := range f.formats {
		if err := join(formatAutomaton(name), f.path); err != nil {
			return nil, err
		}
	}
	if f.hasEnum {
		var words []string
		for _, v := range f.enum {
			if v.kind == kindString {
				words = append(words, v.text)
			}
		}
		other, err := wordSet(words, false)
		if err == nil {
			err = join(other, f.path)
		}
		if err != nil {
			return nil, err
		}
	}
	if f.minLen > 0 || f.maxLen >= 0 {
		other, err := lengthBetween(f.minLen, f.maxLen)
		if err != nil {
			return d, c.relax(f.path, "a length beside a pattern is %v", err)
		}
		return d, join(other, f.path)
	}
	return d, nil
}

// pattern compiles a pattern. What is no regular expression at all is an
// error even where much is relaxed: to ignore it would be to fail open.
func (c *compiler) pattern(p located) (*dfa, error) {
	d, err := compilePattern(p.text)
	switch {
	case errors.Is(err, ErrUnsupported) || errors.Is(err, ErrTooLarge):
		return nil, c.relax(p.path, "%v", err)
	case err != nil:
		return nil, errorAt(p.path, "not a regular expression: %v", err)
	}
	return d, c.spend(p.path, 100+len(d.states))
}

// intersectAll is intersect where nil stands for "everything".
func intersectAll(a, b *dfa) (*dfa, error) {
	if a == nil {
		return b, nil
	}
	return intersect(a, b)
}

// complement accepts what d does not.
func complement(d *dfa) *dfa {
	sink := len(d.states)
	out := &dfa{states: make([]dfaState, sink+1)}
	for i, s := range append(d.states[:sink:sink], dfaState{}) {
		n := &out.states[i]
		n.accept = !s.accept
		for _, a := range alphabet {
			lo := a.lo
			for _, e := range s.edges {
				if e.hi < lo || e.lo > a.hi {
					continue
				}
				if e.lo > lo {
					n.edges = append(n.edges, dfaEdge{lo, e.lo - 1, sink})
				}
				n.edges = append(n.edges, dfaEdge{max(lo, e.lo), min(e.hi, a.hi), e.to})
				lo = e.hi + 1
			}
			if lo <= a.hi {
				n.edges = append(n.edges, dfaEdge{lo, a.hi, sink})
			}
		}
	}
	return out
}

// number writes an integer or a number with its bounds.
func (c *compiler) number(f *flat) (string, error) {
	whole := f.types&typeFraction == 0
	if f.lo == nil && f.hi == nil && len(f.multipleOf) == 0 {
		if whole {
			return c.b.prim("integer"), nil
		}
		return c.b.prim("number"), nil
	}
	var step *big.Int
	for _, m := range f.multipleOf {
		d, _ := parseDecimal(m.text)
		k := d.rat.Num()
		switch {
		case !d.isInt() || !k.IsInt64() || k.Int64() > 1000 || step != nil:
			if err := c.relax(m.path, "multipleOf %s cannot be enforced", m.text); err != nil {
				return "", err
			}
		default:
			step, whole = k, true
		}
	}
	pattern := numberPattern(f.lo, f.hi)
	if whole {
		pattern = integerPattern(f.lo, f.hi)
	}
	if pattern == "" {
		return "", unsatisfiable(f.path)
	}
	key := fmt.Sprint("number ", pattern, step)
	return c.once(key, func() (string, error) { return c.numberText(f.path, pattern, step) })
}

// numberText writes the numbers of a pattern that step divides, if there is one.
func (c *compiler) numberText(path, pattern string, step *big.Int) (string, error) {
	d, err := compilePattern("^" + pattern + "$")
	if err == nil && step != nil && step.Int64() > 1 {
		d, err = intersect(d, multiplesOf(int(step.Int64())))
	}
	if err != nil {
		return "", errorAt(path, "bounds: %v", err)
	}
	reduced, ok := d.reduce()
	if !ok {
		return "", unsatisfiable(path)
	}
	return c.b.automaton(reduced, plainText, "")
}

// multiplesOf accepts the integers that k divides, by their remainder so far.
func multiplesOf(k int) *dfa {
	d := &dfa{states: make([]dfaState, k+2)} // remainders 0..k-1 at 2 and up
	sign := dfaEdge{'-', '-', 1}
	d.states[0].edges = []dfaEdge{sign}
	for digit := range 10 {
		e := dfaEdge{rune('0' + digit), rune('0' + digit), 2 + digit%k}
		d.states[0].edges = append(d.states[0].edges, e)
		d.states[1].edges = append(d.states[1].edges, e)
	}
	for r := range k {
		s := &d.states[2+r]
		s.accept = r == 0
		for digit := range 10 {
			s.edges = append(s.edges, dfaEdge{rune('0' + digit), rune('0' + digit), 2 + (r*10+digit)%k})
		}
	}
	return d
}

// allowed are the values of an enum that the rest of the alternative admits.
func (c *compiler) allowed(f *flat) ([]*value, error) {
	var out []*value
	var text *dfa
	if len(f.patterns)+len(f.formats) > 0 || f.minLen > 0 || f.maxLen >= 0 {
		g := *f
		g.hasEnum = false
		var err error
		if text, err = c.stringAutomaton(&g); err != nil {
			return nil, err
		}
	}
	for _, v := range f.enum {
		if f.admits(v, text) {
			out = append(out, v)
		}
	}
	return out, nil
}

func (f *flat) admits(v *value, text *dfa) bool {
	switch v.kind {
	case kindNull:
		return f.types&typeNull != 0
	case kindBool:
		return f.types&typeBool != 0
	case kindString:
		return f.types&typeString != 0 && (text == nil || text.accepts(v.text))
	case kindArray:
		return f.types&typeArray != 0
	case kindObject:
		return f.types&typeObject != 0
	}
	d, ok := parseDecimal(v.text)
	if !ok {
		return f.types&typeNumber == typeNumber
	}
	if f.types&typeInteger == 0 || f.types&typeFraction == 0 && !d.isInt() {
		return false
	}
	in := func(b *bound, sign int) bool {
		return b == nil || d.cmp(b.at) == sign || d.cmp(b.at) == 0 && !b.exclusive
	}
	return in(f.lo, 1) && in(f.hi, -1)
}

// literals writes fixed values. Many strings become one automaton, so that the
// sampler follows one path and not one for each.
func (c *compiler) literals(values []*value) ([]string, error) {
	const few = 8
	var words, out []string
	for _, v := range values {
		if v.kind == kindString && len(values) > few {
			words = append(words, v.text)
			continue
		}
		expr, err := c.literal(v)
		if err != nil {
			return nil, err
		}
		out = append(out, expr)
	}
	if len(words) == 0 {
		return out, nil
	}
	d, err := wordSet(words, false)
	if err != nil {
		return nil, fmt.Errorf("enum of %d strings: %w", len(words), err)
	}
	reduced, ok := d.reduce()
	if !ok {
		return out, nil
	}
	expr, err := c.quoted(reduced)
	return append([]string{expr}, out...), err
}

// literal writes a fixed value, with the space between its parts that objects
// and arrays of a schema have.
func (c *compiler) literal(v *value) (string, error) {
	if len(v.vals) == 0 { // no list, or an empty one
		return c.spell(v), nil
	}
	open, shut := "[", "]"
	if v.kind == kindObject {
		open, shut = "{", "}"
	}
	parts := make([]string, len(v.vals))
	for i, item := range v.vals {
		expr, err := c.literal(item)
		if err != nil {
			return "", err
		}
		if v.kind == kindObject {
			expr = sequence(c.keyOpen(), c.keyText(v.keys[i]), c.b.prim("sp"), expr)
		}
		parts[i] = expr
	}
	expr := quote(open) + c.inner() + " " + strings.Join(parts, " "+c.comma()+" ") + c.inner() + " " + quote(shut)
	if len(expr) > longBody {
		return c.b.add(expr)
	}
	return expr, nil
}
