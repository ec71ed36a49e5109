package schema

import (
	"encoding/json"
	"regexp"
	"slices"
)

// Checker says whether values fit a schema, as far as types, enums, required
// and declared properties, items, combinators and patterns go. It is meant to
// tell a call from an answer that only looks like one, so what it does not
// know it lets pass.
type Checker struct{ c *compiler }

// NewChecker prepares a schema; one that cannot be read lets every value pass.
func NewChecker(schema json.RawMessage) *Checker {
	root, err := decode(schema)
	if err != nil {
		root = &value{kind: kindBool, bool: true}
	}
	return &Checker{&compiler{root: root}}
}

// Fits checks a JSON text.
func (k *Checker) Fits(text []byte) bool {
	v, err := decode(text)
	if err != nil {
		return false
	}
	c := *k.c // the work counter and the anchors are per check
	return c.fits(v, c.root, 0)
}

func (c *compiler) fits(v, s *value, depth int) bool {
	if s.kind == kindBool {
		return s.bool
	}
	if depth > 2*maxDepth || c.spend("", 1) != nil {
		return true
	}
	for i, key := range s.keys {
		if !c.fitsKeyword(v, s, key, s.vals[i], depth+1) {
			return false
		}
	}
	return true
}

func (c *compiler) fitsKeyword(v, s *value, key string, x *value, depth int) bool {
	some := func(subs []*value) bool {
		return slices.ContainsFunc(subs, func(sub *value) bool { return c.fits(v, sub, depth) })
	}
	switch key {
	case "$ref":
		n, err := c.resolve(node{x, "$"})
		return err != nil || n.v == nil || c.fits(v, n.v, depth)
	case "type":
		return v.hasType(x) || v.kind == kindNull && s.get("nullable").isTrue()
	case "enum":
		return slices.ContainsFunc(x.vals, func(e *value) bool { return equal(e, v) })
	case "const":
		return equal(x, v)
	case "anyOf", "oneOf":
		return len(x.vals) == 0 || some(x.vals)
	case "allOf":
		return !slices.ContainsFunc(x.vals, func(sub *value) bool { return !c.fits(v, sub, depth) })
	case "pattern":
		re, err := regexp.Compile(fromECMA(x.text))
		return v.kind != kindString || err != nil || re.MatchString(v.text)
	case "required":
		return v.kind != kindObject || !slices.ContainsFunc(x.vals, func(k *value) bool { return v.get(k.text) == nil })
	case "properties":
		for i, k := range x.keys {
			if m := v.get(k); m != nil && !c.fits(m, x.vals[i], depth) {
				return false
			}
		}
	case "items":
		if v.kind == kindArray && x.kind == kindObject && s.get("prefixItems") == nil {
			return !slices.ContainsFunc(v.vals, func(m *value) bool { return !c.fits(m, x, depth) })
		}
	}
	return true
}

// hasType checks a type keyword, a name or a list of names.
func (v *value) hasType(t *value) bool {
	if t.kind == kindArray {
		return len(t.vals) == 0 || slices.ContainsFunc(t.vals, v.hasType)
	}
	switch typeNames[t.text] {
	case typeNull:
		return v.kind == kindNull
	case typeBool:
		return v.kind == kindBool
	case typeInteger:
		d, ok := decimal{}, false
		if v.kind == kindNumber {
			d, ok = parseDecimal(v.text)
		}
		return v.kind == kindNumber && (!ok || d.isInt())
	case typeNumber:
		return v.kind == kindNumber
	case typeString:
		return v.kind == kindString
	case typeArray:
		return v.kind == kindArray
	case typeObject:
		return v.kind == kindObject
	}
	return true
}
