package schema

import (
	"math"
	"strconv"
)

// typeSet is a set of JSON types; every integer is a number, so "number" is
// both bits.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBool
	typeInteger
	typeFraction
	typeString
	typeArray
	typeObject

	typeNumber = typeInteger | typeFraction
	typeAny    = typeObject<<1 - 1
)

var typeNames = map[string]typeSet{
	"null": typeNull, "boolean": typeBool, "integer": typeInteger, "number": typeNumber,
	"string": typeString, "array": typeArray, "object": typeObject,
}

// node is a subschema and the path to it.
type node struct {
	v    *value
	path string
}

// conj is a list of schemas that all hold.
type conj []node

// path is where the first of them stands.
func (all conj) path() string {
	if len(all) == 0 {
		return "$"
	}
	return all[0].path
}

// flat is a schema without combinators: one alternative of what a schema
// allows. Limits of -1 are not there.
type flat struct {
	path    string
	types   typeSet
	typed   bool // a type was given; otherwise the keywords tell
	enum    []*value
	hasEnum bool

	declares   bool // the schema has the keyword properties
	props      []property
	required   []string
	extra      extra
	sealed     bool // unevaluatedProperties: false
	patterned  []patterned
	names      conj
	minProps   int
	maxProps   int
	prefix     []conj
	items      conj
	itemsShut  bool // nothing may follow prefix
	minItems   int
	maxItems   int
	minLen     int
	maxLen     int
	patterns   []located
	formats    []string
	lo, hi     *bound
	multipleOf []located
}

type property struct {
	key    string
	schema conj
}

// extra is what additionalProperties says.
type extra struct {
	given, shut bool
	schema      conj
}

type patterned struct {
	pattern located
	schema  conj
}

type located struct{ text, path string }

func newFlat(path string) flat {
	return flat{path: path, types: typeAny, maxProps: -1, maxItems: -1, maxLen: -1}
}

// implied fills in the types of a schema that gives none: "properties" alone
// is meant as an object, "pattern" alone as a string.
func (f *flat) implied() {
	if f.typed || f.hasEnum {
		return
	}
	var t typeSet
	if f.declares || len(f.required) > 0 || f.extra.given || len(f.patterned) > 0 || f.names != nil || f.minProps > 0 || f.maxProps >= 0 {
		t |= typeObject
	}
	if f.items != nil || f.prefix != nil || f.minItems > 0 || f.maxItems >= 0 {
		t |= typeArray
	}
	if f.minLen > 0 || f.maxLen >= 0 || len(f.patterns) > 0 || len(f.formats) > 0 {
		t |= typeString
	}
	if f.lo != nil || f.hi != nil || len(f.multipleOf) > 0 {
		t |= typeNumber
	}
	if t != 0 {
		f.types &= t
	}
}

// read takes the keywords of an object schema that are not combinators.
func (c *compiler) read(n node) (flat, error) {
	f := newFlat(n.path)
	for i, key := range n.v.keys {
		if err := c.keyword(&f, key, node{n.v.vals[i], join(n.path, key)}); err != nil {
			return f, err
		}
	}
	// Draft 4 has flags beside minimum and maximum.
	if f.lo != nil && n.v.get("exclusiveMinimum").isTrue() {
		f.lo.exclusive = true
	}
	if f.hi != nil && n.v.get("exclusiveMaximum").isTrue() {
		f.hi.exclusive = true
	}
	if n.v.get("nullable").isTrue() && f.typed {
		f.types |= typeNull
		if f.hasEnum {
			f.enum = append(f.enum, &value{kind: kindNull})
		}
	}
	return f, nil
}

func (v *value) isTrue() bool { return v != nil && v.kind == kindBool && v.bool }

func (c *compiler) keyword(f *flat, key string, n node) error {
	switch key {
	case "type":
		return c.readTypes(f, n)
	case "enum":
		if n.v.kind != kindArray {
			return c.malformed(n, "an array")
		}
		f.hasEnum, f.enum = true, n.v.vals
	case "const":
		f.hasEnum, f.enum = true, []*value{n.v}
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		return c.readCount(f, key, n)
	case "pattern", "format":
		if n.v.kind != kindString {
			return c.malformed(n, "a string")
		}
		if key == "pattern" {
			f.patterns = append(f.patterns, located{n.v.text, n.path})
		} else if _, ok := formats[n.v.text]; ok {
			f.formats = append(f.formats, n.v.text)
		}
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		return c.readNumber(f, key, n)
	case "items", "prefixItems", "additionalItems", "unevaluatedItems", "uniqueItems", "contains", "minContains", "maxContains":
		return c.readArray(f, key, n)
	case "properties", "required", "additionalProperties", "unevaluatedProperties", "patternProperties", "propertyNames":
		return c.readObject(f, key, n)
	case "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "$dynamicRef", "$recursiveRef":
		return c.relax(n.path, "this keyword is beyond a grammar")
	}
	return nil // annotations, and combinators that flatten reads
}

func (c *compiler) malformed(n node, want string) error {
	return c.relax(n.path, "must be %s", want)
}

func (c *compiler) readTypes(f *flat, n node) error {
	list := []*value{n.v}
	if n.v.kind == kindArray {
		list = n.v.vals
	}
	var set typeSet
	for _, t := range list {
		bit, ok := typeNames[t.text]
		if !ok || t.kind != kindString {
			return c.relax(n.path, "unknown type %q", t.text)
		}
		set |= bit
	}
	if set != 0 {
		f.types, f.typed = set, true
	}
	return nil
}

func (c *compiler) readCount(f *flat, key string, n node) error {
	x, err := strconv.ParseFloat(n.v.text, 64) // "3.0" is a count, too
	if n.v.kind != kindNumber || err != nil || x < 0 || x != math.Trunc(x) {
		return c.malformed(n, "a whole number from 0 up")
	}
	count := int(min(x, math.MaxInt32))
	switch key {
	case "minLength":
		f.minLen = count
	case "maxLength":
		f.maxLen = count
	case "minItems":
		f.minItems = count
	case "maxItems":
		f.maxItems = count
	case "minProperties":
		f.minProps = count
	case "maxProperties":
		f.maxProps = count
	}
	return nil
}

func (c *compiler) readNumber(f *flat, key string, n node) error {
	if n.v.kind == kindBool && (key == "exclusiveMinimum" || key == "exclusiveMaximum") {
		return nil // see read
	}
	if n.v.kind != kindNumber {
		return c.malformed(n, "a number")
	}
	d, ok := parseDecimal(n.v.text)
	if !ok {
		return c.relax(n.path, "has more than %d digits", maxDigits)
	}
	switch key {
	case "multipleOf":
		if d.sign() <= 0 {
			return c.malformed(n, "above 0")
		}
		f.multipleOf = append(f.multipleOf, located{n.v.text, n.path})
	case "minimum", "exclusiveMinimum":
		if b := (&bound{d, key != "minimum"}); b.tighter(f.lo, false) {
			f.lo = b
		}
	default:
		if b := (&bound{d, key != "maximum"}); b.tighter(f.hi, true) {
			f.hi = b
		}
	}
	return nil
}

func (c *compiler) readArray(f *flat, key string, n node) error {
	switch key {
	case "items":
		if n.v.kind == kindArray { // before 2020-12
			return c.readPrefix(f, n)
		}
		if n.v.kind == kindBool && !n.v.bool {
			f.itemsShut = true
		}
		f.items = append(f.items, n)
	case "prefixItems":
		return c.readPrefix(f, n)
	case "additionalItems", "unevaluatedItems":
		if n.v.kind == kindBool && !n.v.bool {
			f.itemsShut = f.items == nil
		} else if f.items == nil && key == "additionalItems" {
			f.items = append(f.items, n)
		}
	case "uniqueItems":
		if n.v.isTrue() {
			return c.relax(n.path, "this keyword is beyond a grammar")
		}
	default:
		return c.relax(n.path, "this keyword is beyond a grammar")
	}
	return nil
}

func (c *compiler) readPrefix(f *flat, n node) error {
	if n.v.kind != kindArray {
		return c.malformed(n, "an array")
	}
	f.prefix = []conj{}
	for i, v := range n.v.vals {
		f.prefix = append(f.prefix, conj{{v, index(n.path, i)}})
	}
	return nil
}

func (c *compiler) readObject(f *flat, key string, n node) error {
	switch key {
	case "properties":
		if n.v.kind != kindObject {
			return errorAt(n.path, "must be an object")
		}
		f.declares = true
		for i, k := range n.v.keys {
			f.props = append(f.props, property{k, conj{{n.v.vals[i], join(n.path, k)}}})
		}
	case "required":
		if n.v.kind != kindArray {
			return c.malformed(n, "an array")
		}
		for _, k := range n.v.vals {
			if k.kind != kindString {
				return c.malformed(n, "an array of strings")
			}
			f.required = append(f.required, k.text)
		}
	case "additionalProperties":
		f.extra = extra{given: true, shut: n.v.kind == kindBool && !n.v.bool}
		if n.v.kind == kindObject {
			f.extra.schema = conj{n}
		}
	case "unevaluatedProperties":
		f.sealed = n.v.kind == kindBool && !n.v.bool
	case "patternProperties":
		for i, p := range n.v.keys {
			at := join(n.path, p)
			f.patterned = append(f.patterned, patterned{located{p, at}, conj{{n.v.vals[i], at}}})
		}
	case "propertyNames":
		f.names = conj{n}
	}
	return nil
}
