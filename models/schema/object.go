package schema

import (
	"fmt"
	"slices"
	"strings"
)

// member is a declared property: its key, behind what all keys begin with, and
// its value as an expression.
type member struct {
	text     string
	required bool
}

// object writes the properties in the order of the schema. Optional ones may
// be left out, but not moved.
func (c *compiler) object(f *flat) (string, error) {
	members, err := c.members(f, c.member)
	if err != nil {
		return "", err
	}
	extra, err := c.extra(f)
	if err != nil {
		return "", err
	}
	need := slices.ContainsFunc(members, func(m member) bool { return m.required })
	switch {
	case len(members) == 0 && extra == "" && f.minProps > 0:
		return "", unsatisfiable(f.path)
	case len(members) == 0 && extra == "":
		return `"{}"`, nil
	case len(members) == 0:
		return c.mapping(f, extra)
	}
	if err := c.propertyCount(f, members, extra); err != nil {
		return "", err
	}
	entry, err := c.chain(members, extra, c.comma()+" "+c.keyOpen())
	if err != nil {
		return "", err
	}
	if need {
		return fmt.Sprintf(`"{"%s %s %s%s "}"`, c.inner(), c.keyOpen(), entry, c.inner()), nil
	}
	return fmt.Sprintf(`"{"%s ( %s %s%s )? "}"`, c.inner(), c.keyOpen(), entry, c.inner()), nil
}

// member writes a declared property of an object.
func (c *compiler) member(key string, schema conj) (string, error) {
	value, err := c.anyOf(schema)
	return c.keyText(key) + " " + c.b.prim("sp") + " " + value, err
}

// longBody is where an expression becomes a rule, so that bodies which nest
// in each other are not copied over and over.
const longBody = 2048

// chain writes the members from the last to the first and returns the
// expression that goes on behind what every key begins with; between stands
// before each further one, that beginning included. Which keys may come next is
// decided behind it, which keeps the alternatives that the sampler has to
// follow few.
func (c *compiler) chain(members []member, extra, between string) (string, error) {
	entry, rest := "", ""
	if extra != "" {
		entry = c.b.reserve()
		rest = fmt.Sprintf(` ( %s %s )?`, between, entry)
		if err := c.b.put(entry, extra+rest); err != nil {
			return "", err
		}
	}
	must := false // a required member follows
	for i := len(members) - 1; i >= 0; i-- {
		m := &members[i]
		self := m.text + rest
		switch {
		case m.required:
			must = true
			entry = self
		default:
			if entry != "" {
				self += " | " + entry
			}
			name, err := c.b.add(self)
			if err != nil {
				return "", err
			}
			entry = name
		}
		if len(entry) > longBody {
			name, err := c.b.add(entry)
			if err != nil {
				return "", err
			}
			entry = name
		}
		rest = fmt.Sprintf(` %s %s`, between, entry)
		if !must {
			rest = fmt.Sprintf(` (%s )?`, rest)
		}
	}
	return entry, nil
}

// members compiles the declared properties with write. One that nothing
// satisfies falls away if it is optional.
func (c *compiler) members(f *flat, write func(key string, schema conj) (string, error)) ([]member, error) {
	required := map[string]bool{}
	for _, k := range f.required {
		required[k] = true
	}
	var out []member
	patterns := make([]*dfa, len(f.patterned))
	for i, p := range f.patterned {
		var err error
		if patterns[i], err = c.pattern(p.pattern); err != nil {
			return nil, err
		}
	}
	for _, p := range f.props {
		for i, d := range patterns {
			if d != nil && d.accepts(p.key) {
				p.schema = both(p.schema, f.patterned[i].schema)
			}
		}
		text, err := write(p.key, p.schema)
		if isUnsatisfiable(err) {
			if required[p.key] {
				return nil, unsatisfiable(f.path)
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, member{text, required[p.key]})
		delete(required, p.key)
	}
	for _, k := range f.required { // required, but not declared
		if !required[k] {
			continue
		}
		delete(required, k)
		if possible, err := c.undeclared(f, k); err != nil {
			return nil, err
		} else if !possible {
			continue
		}
		text, err := write(k, f.extra.schema)
		if err != nil {
			return nil, err
		}
		out = append(out, member{text, true})
	}
	return out, nil
}

// undeclared says whether there can be a required key that properties lacks.
func (c *compiler) undeclared(f *flat, key string) (bool, error) {
	switch {
	case !f.extra.shut && !f.sealed:
		return true, nil
	case len(f.patterned) > 0:
		return false, c.relax(f.path, "required %q is left to patternProperties", key)
	}
	return false, c.relax(f.path, "required %q is not among the properties", key)
}

// open says that there may be keys that properties lacks.
func (c *compiler) isOpen(f *flat) bool {
	return !f.extra.shut && !f.sealed && (!c.opt.Closed || !f.declares || f.extra.given)
}

// extra is the expression for one further member, behind what every key begins
// with; "" if there can be none.
func (c *compiler) extra(f *flat) (string, error) {
	open := c.isOpen(f)
	if f.maxProps == 0 || !open && len(f.patterned) == 0 {
		return "", nil
	}
	keys, err := c.freeKeys(f)
	if err != nil {
		return "", err
	}
	var alts []string
	add := func(keys *dfa, schema conj) error {
		alt, err := c.pair(keys, schema)
		if err == nil {
			alts = append(alts, alt)
		}
		if isUnsatisfiable(err) {
			return nil
		}
		return err
	}
	for _, p := range f.patterned {
		d, err := c.pattern(p.pattern)
		if err != nil {
			return "", err
		}
		if d == nil {
			open = false // the pattern's own keys cannot be told apart
			continue
		}
		mine, err := intersectAll(keys, d)
		if err != nil {
			return "", errorAt(p.pattern.path, "%v", err)
		}
		if err := add(mine, p.schema); err != nil {
			return "", err
		}
		if keys, err = intersectAll(keys, complement(d)); err != nil {
			return "", errorAt(p.pattern.path, "%v", err)
		}
	}
	if open {
		if err := add(keys, f.extra.schema); err != nil {
			return "", err
		}
	}
	switch len(alts) {
	case 0:
		return "", nil
	case 1:
		return alts[0], nil
	}
	return "( " + strings.Join(alts, " | ") + " )", nil
}

// freeKeys accepts the keys that are not declared and that propertyNames
// allows; nil accepts all.
func (c *compiler) freeKeys(f *flat) (*dfa, error) {
	var keys *dfa
	if len(f.props) > 0 || len(f.required) > 0 {
		words := slices.Clone(f.required)
		for _, p := range f.props {
			words = append(words, p.key)
		}
		d, err := wordSet(words, true)
		if err != nil {
			return nil, errorAt(f.path, "property names are %v", err)
		}
		keys = d
	}
	if f.names == nil {
		return keys, nil
	}
	all := []flat{newFlat(f.path)}
	for _, n := range f.names {
		var err error
		if all, err = c.with(all, []node{n}); err != nil {
			return nil, err
		}
	}
	if len(all) != 1 {
		return keys, c.relax(f.names[0].path, "with alternatives cannot be enforced")
	}
	d, err := c.stringAutomaton(&all[0])
	if err != nil || d == nil {
		return keys, err
	}
	return intersectAll(keys, d)
}

// pair writes a key out of keys, behind what every key begins with, and a value.
func (c *compiler) pair(keys *dfa, schema conj) (string, error) {
	key, err := c.freeKey(keys)
	if err != nil {
		return "", err
	}
	value, err := c.anyOf(schema)
	return fmt.Sprintf(`%s ":" %s %s`, key, c.b.prim("sp"), value), err
}

// anyOf is the rule for what fits the schemas, if there are any.
func (c *compiler) anyOf(schema conj) (string, error) {
	if len(schema) == 0 {
		return c.prim("value"), nil
	}
	return c.rule(schema)
}

// freeKey writes the keys that an automaton accepts, all of them if it is nil.
func (c *compiler) freeKey(keys *dfa) (string, error) {
	d := &c.dialect
	switch {
	case keys == nil && d.quote != "":
		return c.prim("key"), nil
	case keys == nil && d.literals:
		return c.prim("string"), nil
	case keys == nil && d.json():
		return c.b.prim("char") + `* "\""`, nil
	case keys == nil:
		return strings.TrimPrefix(c.anyString(), `"\"" `), nil
	case d.quote != "":
		words, err := compilePattern(wordKeys)
		if err != nil {
			return "", err
		}
		return c.between(keys, words, plainText, "")
	}
	reduced, ok := keys.reduce()
	if !ok {
		return "", unsatisfiable("$")
	}
	text, err := c.quoted(reduced)
	if d.literals {
		return text, err
	}
	return strings.TrimPrefix(text, `"\"" `), err
}

// mapping is an object without declared properties.
func (c *compiler) mapping(f *flat, extra string) (string, error) {
	lo, hi := f.minProps, f.maxProps
	if hi >= 0 && lo > hi {
		return "", unsatisfiable(f.path)
	}
	pair, err := c.b.add(c.keyOpen() + " " + extra)
	if err != nil {
		return "", err
	}
	return c.list("{", "}", pair, lo, hi)
}

// propertyCount checks minProperties and maxProperties against what the
// declared properties already guarantee.
func (c *compiler) propertyCount(f *flat, members []member, extra string) error {
	required := 0
	for _, m := range members {
		if m.required {
			required++
		}
	}
	if f.minProps > required {
		if err := c.relax(f.path, "minProperties beside properties cannot be enforced"); err != nil {
			return err
		}
	}
	if f.maxProps >= 0 && (extra != "" || f.maxProps < len(members)) {
		return c.relax(f.path, "maxProperties beside properties cannot be enforced")
	}
	return nil
}
