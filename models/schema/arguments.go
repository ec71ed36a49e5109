package schema

import (
	"encoding/json"
	"fmt"
	"strings"
)

// maxShapes bounds the alternatives of arguments that are written one by one.
const maxShapes = 16

// Arguments is what a schema says of each argument of a call, for those that
// read and write them one by one. It belongs to one goroutine.
type Arguments struct {
	c      *compiler
	shapes []flat
	byName map[string]*Argument
}

// Argument is what the alternatives of a schema say of one argument.
type Argument struct {
	// Text says that it is a string whatever it looks like.
	Text  bool
	c     *compiler
	types typeSet
	any   bool // some alternative says nothing
	alts  []conj
}

// NewArguments reads a schema; one that cannot be read says nothing.
func NewArguments(schema json.RawMessage) *Arguments {
	root, err := decode(schema)
	if err != nil {
		root = &value{kind: kindBool, bool: true}
	}
	c := newCompiler(root, Options{}, "")
	shapes, err := c.flatten(node{root, "$"})
	if err != nil {
		shapes = nil
	}
	return &Arguments{c: c, shapes: shapes, byName: map[string]*Argument{}}
}

// NewArgument is an argument that a schema of its own speaks of.
func NewArgument(schema json.RawMessage) *Argument {
	root, err := decode(schema)
	if err != nil {
		root = &value{kind: kindBool, bool: true}
	}
	all := conj{{root, "$"}}
	return newCompiler(root, Options{}, "").argument([]flat{{props: []property{{schema: all}}}}, "")
}

// Of finds an argument by its name.
func (a *Arguments) Of(name string) *Argument {
	arg, ok := a.byName[name]
	if !ok {
		arg = a.c.argument(a.shapes, name)
		a.byName[name] = arg
	}
	return arg
}

// Fits checks a value, as Checker does.
func (a *Argument) Fits(text []byte) bool {
	v, err := decode(text)
	if err != nil {
		return false
	}
	for _, all := range a.alts {
		fits := true
		c := *a.c // the work counter is per check
		for _, n := range all {
			fits = fits && c.fits(v, n.v, 0)
		}
		if fits {
			return true
		}
	}
	return a.any
}

// argument joins what the shapes say of one argument.
func (c *compiler) argument(shapes []flat, name string) *Argument {
	a := &Argument{c: c, any: len(shapes) == 0}
	for i := range shapes {
		all, known := shapes[i].of(name)
		if !known {
			a.any = a.any || !shapes[i].extra.shut
			continue
		}
		a.alts = append(a.alts, all)
		types, open, err := c.typesOf(all)
		a.types |= types
		a.any = a.any || open || err != nil
	}
	a.Text = !a.any && a.types == typeString
	return a
}

// of are the schemas of one property.
func (f *flat) of(name string) (all conj, known bool) {
	for _, p := range f.props {
		if p.key == name {
			return p.schema, true
		}
	}
	return f.extra.schema, len(f.extra.schema) > 0
}

// typesOf are the types that schemas allow; open says that they name none.
func (c *compiler) typesOf(all conj) (types typeSet, open bool, err error) {
	flats, err := c.alternatives(all)
	for i := range flats {
		f := &flats[i]
		if f.hasEnum {
			for _, v := range f.enum {
				if f.admits(v, nil) {
					types |= v.typeSet()
				}
			}
			continue
		}
		f.implied()
		types |= f.types
		open = open || f.types == typeAny
	}
	return types, open, err
}

func (v *value) typeSet() typeSet {
	return [...]typeSet{
		kindNull: typeNull, kindBool: typeBool, kindNumber: typeNumber,
		kindString: typeString, kindArray: typeArray, kindObject: typeObject,
	}[v.kind]
}

// arguments writes the arguments of a call in the chosen spelling.
func (c *compiler) arguments(all conj) (string, error) {
	flats, err := c.alternatives(all)
	if err != nil {
		return "", err
	}
	var shapes []flat
	for i := range flats {
		f := &flats[i]
		if f.hasEnum {
			return "", errorAt(f.path, "fixed objects are not written one argument at a time")
		}
		if f.types&typeObject != 0 {
			shapes = append(shapes, *f)
		}
	}
	if len(shapes) > maxShapes {
		return "", errorAt(all.path(), "more than %d kinds of arguments", maxShapes)
	}
	var alts []string
	for i := range shapes {
		alt, err := c.argumentList(&shapes[i], shapes)
		if isUnsatisfiable(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		alts = append(alts, alt)
	}
	if len(alts) == 0 {
		return "", unsatisfiable(all.path())
	}
	return c.b.add(strings.Join(alts, " | "))
}

// argumentList writes the arguments of one shape.
func (c *compiler) argumentList(f *flat, shapes []flat) (string, error) {
	s := &c.opt.Spelling
	open, between := "", c.comma()
	if s.Kind == AsTags {
		open, between = quote(s.KeyStart), quote(s.KeyStart)
	}
	members, err := c.members(f, func(key string, schema conj) (string, error) {
		text, err := c.argumentText(key, schema, shapes)
		if err != nil {
			return "", err
		}
		return c.b.add(text)
	})
	if err != nil {
		return "", err
	}
	extra := ""
	if len(f.patterned) == 0 && c.isOpen(f) && f.maxProps != 0 { // of patterns, the declared keys do
		if extra, err = c.extraArgument(f, shapes); err != nil && !isUnsatisfiable(err) {
			return "", err
		}
	}
	if err := c.propertyCount(f, members, extra); err != nil {
		return "", err
	}
	if len(members) == 0 && extra == "" {
		if f.minProps > 0 {
			return "", unsatisfiable(f.path)
		}
		return `""`, nil
	}
	write := c.chain
	if len(members) <= maxAnyOrder {
		write = c.anyOrder
	}
	entry, err := write(members, extra, between)
	for i := range members {
		if members[i].required {
			return sequence(open, entry), err
		}
	}
	return "( " + sequence(open, entry) + " )?", err
}

// maxAnyOrder is the number of arguments that may come in any order; the rules
// are one for each set of them.
const maxAnyOrder = 4

// anyOrder is chain for few members, in any order.
func (c *compiler) anyOrder(members []member, extra, between string) (string, error) {
	more := ""
	if extra != "" {
		name := c.b.reserve()
		if err := c.b.put(name, fmt.Sprintf("%s ( %s %s )?", extra, between, name)); err != nil {
			return "", err
		}
		more = name
	}
	required := 0
	for i, m := range members {
		if m.required {
			required |= 1 << i
		}
	}
	all := 1<<len(members) - 1
	entries := make([]string, all+1) // what may come behind a set of members
	for done := all; done >= 0; done-- {
		var alts []string
		for i, m := range members {
			with := done | 1<<i
			if with == done {
				continue
			}
			rest := ""
			if entries[with] != "" {
				rest = between + " " + entries[with]
				if with&required == required {
					rest = "( " + rest + " )?"
				}
			}
			alts = append(alts, sequence(m.text, rest))
		}
		if done&required == required && more != "" {
			alts = append(alts, more)
		}
		if len(alts) == 0 {
			continue
		}
		var err error
		if entries[done], err = c.b.add(strings.Join(alts, " | ")); err != nil {
			return "", err
		}
	}
	return entries[0], nil
}

// argumentText writes a declared argument, behind what all begin with.
func (c *compiler) argumentText(key string, schema conj, shapes []flat) (string, error) {
	s := &c.opt.Spelling
	if s.Kind == AsKeywords {
		value, err := c.anyOf(schema)
		if isWordKey(key) {
			return quote(key+s.Assign) + " " + value, err
		}
		return quote(quotedIn(key, '"')+s.Assign) + " " + value, err
	}
	if strings.TrimSpace(key) != key || key == "" || strings.Contains(key, s.KeyEnd) || strings.ContainsAny(key, "\r\n") {
		return "", errorAt(schema.path(), "the name can't stand in a tag")
	}
	value, err := c.tagged(schema, c.argument(shapes, key))
	return sequence(quote(key+s.KeyEnd), value), err
}

// inventedKeys are the names that undeclared arguments may have.
const inventedKeys = `^[a-zA-Z_][a-zA-Z0-9_]{0,31}$`

// extraArgument writes an argument that no shape declares.
func (c *compiler) extraArgument(f *flat, shapes []flat) (string, error) {
	keys, err := compilePattern(inventedKeys)
	if err != nil {
		return "", err
	}
	if own, err := c.freeKeys(f); err != nil {
		return "", err
	} else if keys, err = intersectAll(own, keys); err != nil {
		return "", err
	}
	for i := range shapes {
		if other, err := c.freeKeys(&shapes[i]); err != nil {
			return "", err
		} else if keys, err = intersectAll(other, keys); err != nil {
			return "", err
		}
	}
	reduced, ok := keys.reduce()
	if !ok {
		return "", unsatisfiable(f.path)
	}
	s := &c.opt.Spelling
	end, value := s.KeyEnd, ""
	if s.Kind == AsKeywords {
		end = s.Assign
		value, err = c.anyOf(f.extra.schema)
	} else {
		value, err = c.tagged(f.extra.schema, c.argument(shapes, "\x00"))
	}
	if err != nil {
		return "", err
	}
	key, err := c.b.automaton(reduced, plainText, quote(end))
	return sequence(key, value), err
}
