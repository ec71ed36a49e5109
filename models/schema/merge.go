package schema

import "slices"

// maxAlternatives bounds what anyOf and allOf multiply out to.
const maxAlternatives = 512

// flatten resolves references and combinators: the alternatives of n, none of
// which has any. No alternatives means that nothing is allowed.
func (c *compiler) flatten(n node) ([]flat, error) {
	if err := c.spend(n.path, 1); err != nil {
		return nil, err
	}
	switch {
	case n.v.kind == kindBool && n.v.bool:
		return []flat{newFlat(n.path)}, nil
	case n.v.kind == kindBool:
		return nil, nil
	case n.v.kind != kindObject:
		return nil, errorAt(n.path, "must be an object or a boolean")
	}
	if done, ok := c.flats[n.v]; ok {
		return done, nil
	}
	if c.open[n.v] {
		return nil, errorAt(n.path, "refers to itself without anything in between")
	}
	c.open[n.v] = true
	defer delete(c.open, n.v)
	all, err := c.combine(n)
	if err == nil {
		c.flats[n.v] = all
	}
	return all, err
}

func (c *compiler) combine(n node) ([]flat, error) {
	base, err := c.read(n)
	if err != nil {
		return nil, err
	}
	all := []flat{base}
	if ref := n.v.get("$ref"); ref != nil {
		target, err := c.resolve(node{ref, join(n.path, "$ref")})
		if err != nil {
			return nil, err
		}
		if target.v != nil {
			if all, err = c.with(all, []node{target}); err != nil {
				return nil, err
			}
		}
	}
	for _, key := range [...]string{"allOf", "anyOf", "oneOf"} {
		list := n.v.get(key)
		if list == nil {
			continue
		}
		path := join(n.path, key)
		if list.kind != kindArray || len(list.vals) == 0 {
			if err := c.malformed(node{list, path}, "an array with elements"); err != nil {
				return nil, err
			}
			continue
		}
		subs := make([]node, len(list.vals))
		for i, v := range list.vals {
			subs[i] = node{v, index(path, i)}
		}
		if key == "allOf" {
			for _, s := range subs {
				if all, err = c.with(all, []node{s}); err != nil {
					return nil, err
				}
			}
			continue
		}
		// oneOf is read as anyOf: that exactly one branch fits is no matter
		// of grammar, and branches seldom overlap.
		if all, err = c.with(all, subs); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// with intersects every alternative in all with each of the union of subs.
func (c *compiler) with(all []flat, subs []node) ([]flat, error) {
	var out []flat
	for _, s := range subs {
		more, err := c.flatten(s)
		if err != nil {
			return nil, err
		}
		for i := range all {
			for j := range more {
				if f, ok := meet(&all[i], &more[j]); ok {
					out = append(out, f)
				}
				if err := c.spend(s.path, 1+(len(all[i].props)+len(more[j].props))/8); err != nil {
					return nil, err
				}
				if len(out) > maxAlternatives {
					return nil, errorAt(s.path, "anyOf and allOf give more than %d alternatives", maxAlternatives)
				}
			}
		}
	}
	return out, nil
}

// meet intersects two alternatives; false means nothing fits both.
func meet(a, b *flat) (flat, bool) {
	f := *a
	if f.path == "" || !a.typed && b.typed {
		f.path = b.path
	}
	f.types &= b.types
	f.typed = a.typed || b.typed
	if f.types == 0 {
		return f, false
	}
	if b.hasEnum {
		f.enum, f.hasEnum = common(a, b), true
		if len(f.enum) == 0 {
			return f, false
		}
	}
	f.sealed = a.sealed || b.sealed
	f.declares = a.declares || b.declares
	f.required = append(slices.Clip(a.required), b.required...)
	f.extra = extra{a.extra.given || b.extra.given, a.extra.shut || b.extra.shut, both(a.extra.schema, b.extra.schema)}
	f.patterned = append(slices.Clip(a.patterned), b.patterned...)
	f.names = both(a.names, b.names)
	f.minProps, f.maxProps = max(a.minProps, b.minProps), lower(a.maxProps, b.maxProps)
	f.meetItems(a, b)
	f.minLen, f.maxLen = max(a.minLen, b.minLen), lower(a.maxLen, b.maxLen)
	f.patterns = append(slices.Clip(a.patterns), b.patterns...)
	f.formats = append(slices.Clip(a.formats), b.formats...)
	if b.lo != nil && b.lo.tighter(a.lo, false) {
		f.lo = b.lo
	}
	if b.hi != nil && b.hi.tighter(a.hi, true) {
		f.hi = b.hi
	}
	f.multipleOf = append(slices.Clip(a.multipleOf), b.multipleOf...)
	return f, f.meetProps(a, b)
}

func lower(a, b int) int {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// common is the enum of both; where only b has one, that of b.
func common(a, b *flat) []*value {
	if !a.hasEnum {
		return b.enum
	}
	var out []*value
	for _, v := range a.enum {
		if slices.ContainsFunc(b.enum, func(w *value) bool { return equal(v, w) }) {
			out = append(out, v)
		}
	}
	return out
}

func both(a, b conj) conj { return append(slices.Clip(a), b...) }

func (f *flat) meetItems(a, b *flat) {
	f.minItems, f.maxItems = max(a.minItems, b.minItems), lower(a.maxItems, b.maxItems)
	f.itemsShut = a.itemsShut || b.itemsShut
	f.items = both(a.items, b.items)
	if a.prefix == nil && b.prefix == nil {
		return
	}
	// Where one prefix is shorter, its items apply to the rest.
	f.prefix = []conj{}
	for i := range max(len(a.prefix), len(b.prefix)) {
		var at conj
		for _, x := range [...]*flat{a, b} {
			if i < len(x.prefix) {
				at = both(at, x.prefix[i])
			} else {
				at = both(at, x.items)
			}
		}
		f.prefix = append(f.prefix, at)
	}
}

// meetProps joins the properties. One that only one side declares has to fit
// the other side's additionalProperties, and falls away where that is false.
func (f *flat) meetProps(a, b *flat) bool {
	if len(b.props) == 0 && !b.extra.given {
		return true
	}
	f.props = nil
	at := map[string]int{}
	add := func(p property, other *flat, declared bool) bool {
		if !declared && other.extra.shut && len(other.patterned) == 0 {
			return !slices.Contains(f.required, p.key)
		}
		if !declared {
			p.schema = both(p.schema, other.extra.schema)
		}
		at[p.key] = len(f.props)
		f.props = append(f.props, p)
		return true
	}
	inB := map[string]bool{}
	for _, p := range b.props {
		inB[p.key] = true
	}
	for _, p := range a.props {
		if !add(p, b, inB[p.key]) {
			return false
		}
	}
	for _, p := range b.props {
		if i, ok := at[p.key]; ok {
			f.props[i].schema = both(f.props[i].schema, p.schema)
			continue
		}
		if !add(p, a, false) {
			return false
		}
	}
	return true
}
