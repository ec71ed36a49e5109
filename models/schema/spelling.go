package schema

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// Spelling is how a family of models writes the arguments of a call, where it
// does not write a JSON object. The zero value is JSON.
type Spelling struct {
	Kind SpellingKind

	// Of AsTags: KeyStart key KeyEnd Gap ValueStart Lead value Trail ValueEnd
	// After. What is no string is JSON. Typed is the attribute before ValueStart
	// in which a tag says which of the two its value is: string="false", or
	// type="string" and the other names of types in JSON. Trim says that readers drop one line break at each end of a value. Loose
	// makes the white space of Gap and After optional.
	KeyStart, KeyEnd, ValueStart, ValueEnd string
	Lead, Trail, Gap, After                string
	Typed                                  string
	Trim, Loose                            bool

	// Of AsKeywords: key Assign value, comma, and so on. Quote is a marker
	// around strings without escapes, beside which keys stand bare at every
	// level; without it, strings and the keys of inner objects have quotation
	// marks, single or double, and the escapes of JSON. AsLiterals has the same
	// literals in an object with quoted keys.
	Assign, Quote string
}

// SpellingKind is the shape of a Spelling.
type SpellingKind uint8

// The kinds of spelling.
const (
	AsJSON SpellingKind = iota
	AsTags
	AsKeywords
	AsLiterals
)

// dialect is how values are written inside of a spelling.
type dialect struct {
	suffix string // of the primitives that differ from those of other dialects
	pretty bool   // JSON with line breaks
	// until is a text that may not occur in JSON, since it would end it.
	until string
	// literals are those of a programming language: constants of Python's or
	// JSON's, strings in either quotation mark, or in the marker quote, beside
	// which keys are bare.
	literals bool
	quote    string
}

func (o *Options) dialect() dialect {
	s := &o.Spelling
	switch {
	case s.Kind == AsTags:
		return dialect{suffix: "-t" + short(s.ValueEnd), until: s.ValueEnd}
	case s.Kind == AsKeywords || s.Kind == AsLiterals:
		return dialect{suffix: "-w" + short(s.Quote), literals: true, quote: s.Quote}
	case o.Pretty:
		return dialect{suffix: "-p", pretty: true}
	}
	return dialect{suffix: "-l"}
}

// short is a name for a text.
func short(s string) string {
	h := fnv.New32a()
	h.Write([]byte(s))
	return strconv.FormatUint(uint64(h.Sum32()), 36)
}

// json says that the fixed primitives are those of the dialect.
func (d *dialect) json() bool { return d.until == "" && !d.literals }

// prim makes sure that the dialect's primitive is there: value, string, boolean,
// null or list.
func (c *compiler) prim(name string) string {
	d := &c.dialect
	switch {
	case d.json() && name != "value":
		return c.b.prim(name)
	case d.json():
		return c.b.prim(name + d.suffix)
	case !d.literals && (name == "boolean" || name == "null"):
		return c.b.prim(name)
	case name == "boolean":
		return c.b.prim("truth")
	case name == "null":
		return c.b.prim("none")
	}
	own := name + d.suffix
	if !c.b.prims[own] {
		c.b.prims[own] = true
		c.b.append(own, c.primBody(name))
	}
	return own
}

// primBody is a primitive of a dialect that is not plain JSON.
func (c *compiler) primBody(name string) string {
	space := c.b.prim("sp")
	list := func(open, item, shut string) string {
		return quote(open) + " ( " + item + ` ( "," ` + space + " " + item + " )* )? " + quote(shut)
	}
	switch name {
	case "string":
		return c.anyString()
	case "key":
		return `[a-zA-Z_] [a-zA-Z0-9_]{0,63}` // wordKeys
	case "pair":
		key := "string"
		if c.dialect.quote != "" {
			key = "key"
		}
		return c.prim(key) + ` ":" ` + space + " " + c.prim("value")
	case "object":
		return list("{", c.prim("pair"), "}")
	case "array":
		return list("[", c.prim("value"), "]")
	}
	return strings.Join([]string{
		c.prim("object"), c.prim("array"), c.prim("string"), c.b.prim("number"), c.prim("boolean"), c.prim("null"),
	}, " | ")
}

// anyString is any string of a dialect that is not plain JSON.
func (c *compiler) anyString() string {
	d := &c.dialect
	if d.literals && d.quote == "" {
		return `"\"" ` + c.b.prim("char") + `* "\"" | "'" ` + c.b.prim("char-s") + `* "'"`
	}
	open, e := quote(`"`), emitter{d: avoid(d.until, d.until), how: jsonString, tail: quote(`"`), also: `"\\" ` + c.b.prim("esc")}
	if d.literals {
		open, e = quote(d.quote), emitter{d: avoid(d.quote, d.quote), tail: quote(d.quote)}
	}
	text, err := c.b.shared("text"+d.suffix, e)
	if err != nil { // a marker that every text contains; there is none
		text = quote("")
	}
	return open + " " + text
}

// quoted writes the strings that d accepts, quotation marks included.
func (c *compiler) quoted(d *dfa) (string, error) {
	switch q := &c.dialect; {
	case q.quote != "":
		inner, err := c.between(d, avoid(q.quote, q.quote), plainText, quote(q.quote))
		return quote(q.quote) + " " + inner, err
	case q.until != "":
		inner, err := c.between(d, avoid(q.until, q.until), jsonString, quote(`"`))
		return `"\"" ` + inner, err
	case q.literals:
		double, err := c.b.automaton(d, jsonString, quote(`"`))
		if err != nil {
			return "", err
		}
		single, err := c.b.automaton(d, singleQuoted, quote(`'`))
		return `( "\"" ` + double + ` | "'" ` + single + " )", err
	}
	inner, err := c.b.automaton(d, jsonString, quote(`"`))
	return `"\"" ` + inner, err
}

// between writes the texts of d, which is not empty, that keep out of the way of
// a marker.
func (c *compiler) between(d, markers *dfa, how spelling, tail string) (string, error) {
	both, err := intersect(d, markers)
	if err != nil {
		return "", err
	}
	reduced, ok := both.reduce()
	if !ok {
		return "", unsatisfiable("$")
	}
	return c.b.automaton(reduced, how, tail)
}

// keyOpen is what every key of an object begins with, as an expression.
func (c *compiler) keyOpen() string {
	if c.dialect.literals {
		return `""`
	}
	return `"\""`
}

// keyText is a key of an object behind keyOpen, with its colon.
func (c *compiler) keyText(key string) string {
	switch d := &c.dialect; {
	case d.quote != "" && isWordKey(key):
		return quote(key + ":")
	case d.quote != "":
		return quote(quotedIn(key, '"') + ":")
	case d.literals:
		return "( " + quote(quotedIn(key, '"')) + " | " + quote(quotedIn(key, '\'')) + ` ) ":"`
	}
	return quote(c.guarded(quotedIn(key, '"'))[1:] + ":")
}

// wordKeys are the invented keys that stand without quotation marks.
const wordKeys = `^[a-zA-Z_][a-zA-Z0-9_]{0,63}$`

// isWordKey says that a key can stand without quotation marks.
func isWordKey(key string) bool {
	return key != "" && !strings.ContainsAny(key, "=:,()[]{}'\"<> \t\r\n\\")
}

// guarded escapes what would end a JSON text too early.
func (c *compiler) guarded(text string) string {
	until := c.dialect.until
	if until == "" || !strings.Contains(text, until) {
		return text
	}
	first := []rune(until)[0]
	hex := strconv.FormatInt(int64(first), 16)
	return strings.ReplaceAll(text, string(first), `\u`+strings.Repeat("0", 4-len(hex))+hex)
}

// spell is a fixed value without parts as an expression.
func (c *compiler) spell(v *value) string {
	d := &c.dialect
	switch {
	case !d.literals:
		var b strings.Builder
		v.write(&b)
		return quote(c.guarded(b.String()))
	case v.kind == kindString && (d.quote == "" || strings.Contains(v.text, d.quote)):
		return "( " + quote(quotedIn(v.text, '"')) + " | " + quote(quotedIn(v.text, '\'')) + " )"
	case v.kind == kindString:
		return quote(d.quote + v.text + d.quote)
	case v.kind == kindNull:
		return `( "null" | "None" )`
	case v.kind == kindBool && v.bool:
		return `( "true" | "True" )`
	case v.kind == kindBool:
		return `( "false" | "False" )`
	}
	var b strings.Builder
	v.write(&b) // a number, or empty brackets
	return quote(b.String())
}

// quotedIn is a string in the given quotation marks.
func quotedIn(s string, mark rune) string {
	var b strings.Builder
	b.WriteRune(mark)
	for _, r := range s {
		writeQuotedRune(&b, r, mark)
	}
	b.WriteRune(mark)
	return b.String()
}
