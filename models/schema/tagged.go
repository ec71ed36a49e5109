package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// tagged writes the value of an argument, from behind its key to the end of its
// tags. arg is what readers go by: they take text that looks like another type
// that the argument may have for a value of that type.
func (c *compiler) tagged(schema conj, arg *Argument) (string, error) {
	flats, err := c.alternatives(schema)
	if err != nil {
		return "", err
	}
	w := &tagWriter{c: c, s: &c.opt.Spelling, arg: arg}
	for i := range flats {
		if err := w.add(&flats[i]); err != nil {
			return "", err
		}
	}
	if w.text == nil && w.json == nil {
		return "", unsatisfiable(schema.path())
	}
	return sequence(w.s.optional(w.s.Gap), w.body(), w.s.optional(w.s.After)), nil
}

// optional is white space that a loose spelling may leave out.
func (s *Spelling) optional(space string) string {
	switch {
	case space == "":
		return ""
	case s.Loose:
		return "( " + quote(space) + " )?"
	}
	return quote(space)
}

// declare is what stands between the key's tag and a value of the given types.
func (s *Spelling) declare(types typeSet) string {
	open := s.ValueStart + s.Lead
	switch {
	case s.Typed == "string":
		open = fmt.Sprintf(` string="%t"`, types == typeString) + open
	case s.Typed != "":
		var names []string
		for _, t := range [...]struct {
			set  typeSet
			name string
		}{{typeString, "string"}, {typeNumber, "number"}, {typeBool, "boolean"}, {typeNull, "null"}, {typeArray, "array"}, {typeObject, "object"}} {
			if types&t.set != 0 {
				names = append(names, quote(t.name))
			}
		}
		return fmt.Sprintf(`%s ( %s ) %s`, quote(" "+s.Typed+`="`), strings.Join(names, " | "), quote(`"`+open))
	}
	if open == "" {
		return ""
	}
	return quote(open)
}

// tagWriter collects the alternatives of a value: text from behind Lead to
// ValueEnd, JSON between Lead and Trail.
type tagWriter struct {
	c          *compiler
	s          *Spelling
	arg        *Argument
	text, json []string
	types      typeSet // of json
}

func (w *tagWriter) body() string {
	var alts []string
	either := func(list []string) string {
		if len(list) == 1 {
			return list[0]
		}
		return "( " + strings.Join(list, " | ") + " )"
	}
	add := func(types typeSet, body string) {
		alts = append(alts, sequence(w.s.declare(types), body))
	}
	end := quote(w.s.Trail + w.s.ValueEnd)
	switch text, json := w.text, w.json; {
	case w.s.Typed != "" || text == nil || json == nil:
		if text != nil {
			add(typeString, either(text))
		}
		if json != nil {
			add(w.types&^typeString, either(json)+" "+end)
		}
	default: // what they begin with stands before both
		add(0, "( "+strings.Join(text, " | ")+" | "+either(json)+" "+end+" )")
	}
	return either(alts)
}

// add writes one alternative.
func (w *tagWriter) add(f *flat) error {
	if f.hasEnum {
		return w.fixed(f)
	}
	f.implied()
	if f.types == typeAny && !f.typed {
		if w.s.Typed != "" {
			w.types, w.json = typeAny, append(w.json, w.c.prim("value"))
		}
		return w.raw(f, nil, 0)
	}
	if f.types&typeString != 0 {
		d, err := w.c.textOf(f)
		if err == nil {
			err = w.raw(f, d, w.lookalikes())
		}
		if err != nil && !isUnsatisfiable(err) {
			return err
		}
	}
	if f.types == typeString && (w.arg.Text || w.s.Typed != "") {
		return nil
	}
	other := *f
	if w.s.Typed != "" || w.arg.Text {
		other.types &^= typeString
	} else {
		w.constant(&other, typeBool, "truth")
		w.constant(&other, typeNull, "none")
	}
	if other.types == 0 {
		return nil
	}
	w.types |= other.types
	exprs, err := w.c.types(&other)
	w.json = append(w.json, exprs...)
	return err
}

// constant writes a type that has Python's spelling, too.
func (w *tagWriter) constant(f *flat, t typeSet, name string) {
	if f.types&t != 0 {
		f.types &^= t
		w.json = append(w.json, w.c.b.prim(name))
	}
}

// fixed writes the values of an enum.
func (w *tagWriter) fixed(f *flat) error {
	values, err := w.c.allowed(f)
	if err != nil {
		return err
	}
	var words []string
	var others []*value
	for _, v := range values {
		if v.kind == kindString {
			words = append(words, v.text)
		}
		if v.kind != kindString || w.s.Typed == "" && !w.arg.Text {
			others = append(others, v)
			w.types |= v.typeSet()
		}
	}
	if len(words) > 0 {
		d, err := wordSet(words, false)
		if err == nil {
			err = w.raw(f, d, w.lookalikes())
		}
		if err != nil && !isUnsatisfiable(err) {
			return fmt.Errorf("enum of %d strings: %w", len(words), err)
		}
	}
	exprs, err := w.c.literals(others)
	w.json = append(w.json, exprs...)
	return err
}

// lookalikes are the types whose values text must not look like.
func (w *tagWriter) lookalikes() typeSet {
	switch {
	case w.s.Typed != "" || w.arg.Text:
		return 0
	case w.arg.any:
		return typeAny
	}
	return w.arg.types
}

// textOf accepts the text of a string; nil accepts all.
func (c *compiler) textOf(f *flat) (*dfa, error) {
	if len(f.patterns) == 0 && len(f.formats) == 0 {
		if f.maxLen >= maxRepeat {
			f.maxLen = -1
		}
		if f.minLen == 0 && f.maxLen < 0 {
			return nil, nil
		}
		if f.maxLen >= 0 && f.minLen > f.maxLen {
			return nil, unsatisfiable(f.path)
		}
		return c.sizedText(f)
	}
	return c.stringAutomaton(f)
}

// raw writes text as it is, in which no tag ends too early and which does not
// look like a value of another type.
func (w *tagWriter) raw(f *flat, text *dfa, lookalikes typeSet) error {
	s := w.s
	end := s.Trail + s.ValueEnd
	within := avoid(end, s.ValueEnd, "\n"+s.KeyStart)
	if lookalikes != 0 {
		other, err := compilePattern(looksLike(lookalikes))
		if err != nil {
			return err
		}
		if within, err = intersect(within, complement(other)); err != nil {
			return err
		}
	}
	if text == nil { // line breaks that a reader drops do no harm
		name := "raw-" + short(fmt.Sprintf("%+v", *s)) + "-" + strconv.Itoa(int(lookalikes))
		name, err := w.c.b.shared(name, emitter{d: within, tail: quote(end)})
		w.text = append(w.text, name)
		return err
	}
	if s.Trim && s.Lead == "" {
		text = trimmed(text)
	}
	both, err := intersect(within, text)
	if err != nil {
		return errorAt(f.path, "text between tags is %v", err)
	}
	reduced, ok := both.reduce()
	if !ok {
		return unsatisfiable(f.path)
	}
	if len(reduced.states) > maxRawStates {
		return errorAt(f.path, "text between tags is %v", ErrTooLarge)
	}
	expr, err := w.c.b.automaton(reduced, plainText, quote(end))
	w.text = append(w.text, expr)
	return err
}

// looksLike is a pattern of the text that readers take for values of some types.
func looksLike(types typeSet) string {
	const space = `[\s\v\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]*`
	forms := []string{`"`}
	for _, t := range [...]struct {
		set  typeSet
		form string
	}{
		{typeNull, `(?:null|None)` + space + `$`},
		{typeBool, `(?:true|false|True|False)` + space + `$`},
		{typeNumber, `-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?` + space + `$`},
		{typeArray, `\[`},
		{typeObject, `\{`},
	} {
		if types&t.set != 0 {
			forms = append(forms, t.form)
		}
	}
	return `^` + space + `(?:` + strings.Join(forms, "|") + `)`
}
