package dialect

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ardanlabs/jinja"
)

func fBatch(a args) (Value, error) {
	n := int(a.int(1, "linecount", 0))
	if n <= 0 {
		return empty, errors.New("batch of no items")
	}
	var rows []Value
	for row := range slices.Chunk(items(a.pos[0]), n) {
		row = slices.Clone(row)
		if fill, ok := a.get(2, "fill_with"); ok && n <= maxListItems {
			for len(row) < n {
				row = append(row, fill)
			}
		}
		rows = append(rows, list(row))
	}
	return list(rows), nil
}

func fDictSort(a args) (Value, error) {
	if !a.pos[0].IsDict() {
		return list(nil), nil
	}
	d := a.pos[0].AsDict()
	by := 0
	if a.text(2, "by", "key") == "value" {
		by = 1
	}
	pairs := make([]Value, len(d.Keys))
	for i, k := range d.Keys {
		pairs[i] = list([]Value{str(k), d.Data[k]})
	}
	sortBy(pairs, a.bool(1, "case_sensitive"), a.bool(3, "reverse"), func(v Value) Value { return v.AsList().Get(by) })
	return list(pairs), nil
}

func sortBy(vs []Value, cased, reverse bool, key func(Value) Value) {
	fold := func(v Value) Value {
		if v = key(v); v.IsString() && !cased {
			return str(strings.ToLower(v.AsString()))
		}
		return v
	}
	slices.SortStableFunc(vs, func(x, y Value) int {
		if reverse {
			x, y = y, x
		}
		return compare(fold(x), fold(y))
	})
}

func fSort(a args) (Value, error) {
	vs := slices.Clone(items(a.pos[0]))
	path := a.text(3, "attribute", "")
	sortBy(vs, a.bool(2, "case_sensitive"), a.bool(1, "reverse"), func(v Value) Value {
		if path == "" {
			return v
		}
		return attribute(v, path)
	})
	return list(vs), nil
}

func fUnique(a args) (Value, error) {
	var kept, keys []Value
	path := a.text(2, "attribute", "")
	for _, v := range items(a.pos[0]) {
		key := v
		if path != "" {
			key = attribute(v, path)
		}
		if key.IsString() && !a.bool(1, "case_sensitive") {
			key = str(strings.ToLower(key.AsString()))
		}
		if !contains(list(keys), key) {
			keys, kept = append(keys, key), append(kept, v)
		}
	}
	return list(kept), nil
}

func fFirst(a args) (Value, error) { return end(a.pos[0], false), nil }
func fLast(a args) (Value, error)  { return end(a.pos[0], true), nil }

func end(v Value, last bool) Value {
	vs := items(v)
	switch {
	case len(vs) == 0:
		return jinja.Undefined()
	case last:
		return vs[len(vs)-1]
	}
	return vs[0]
}

func fItems(a args) (Value, error) {
	switch v := a.pos[0]; {
	case v.IsUndefined():
		return list(nil), nil
	case v.IsDict():
		return mItems(a)
	}
	return empty, errors.New("items: can only get item pairs from a mapping")
}

func fJoin(a args) (Value, error) {
	path := a.text(2, "attribute", "")
	var parts []string
	for _, v := range items(a.pos[0]) {
		if path != "" {
			v = attribute(v, path)
		}
		parts = append(parts, a.r.str(v))
	}
	return str(strings.Join(parts, a.text(1, "d", ""))), nil
}

func fList(a args) (Value, error) { return list(slices.Clone(items(a.pos[0]))), nil }

func fMap(a args) (Value, error) {
	vs := slices.Clone(items(a.pos[0]))
	if path, ok := a.kw["attribute"]; ok {
		absent, hasDefault := a.kw["default"]
		for i, v := range vs {
			if vs[i] = attribute(v, a.r.str(path)); vs[i].IsUndefined() && hasDefault {
				vs[i] = absent
			}
		}
		return list(vs), nil
	}
	name := a.text(1, "", "")
	f := filters[name]
	if f == nil {
		return empty, fmt.Errorf("map: unknown filter %q", name)
	}
	for i, v := range vs {
		r, err := f(args{a.r, append([]Value{v}, a.pos[2:]...), a.kw})
		if err != nil {
			return empty, err
		}
		vs[i] = r
	}
	return list(vs), nil
}

func extreme(sign int) function {
	return func(a args) (Value, error) {
		path := a.text(2, "attribute", "")
		key := func(v Value) Value {
			if path != "" {
				v = attribute(v, path)
			}
			if v.IsString() && !a.bool(1, "case_sensitive") {
				return str(strings.ToLower(v.AsString()))
			}
			return v
		}
		vs := items(a.pos[0])
		if len(vs) == 0 {
			return jinja.Undefined(), nil
		}
		best := vs[0]
		for _, v := range vs[1:] {
			if compare(key(v), key(best))*sign > 0 {
				best = v
			}
		}
		return best, nil
	}
}

func fReverse(a args) (Value, error) {
	vs := slices.Clone(items(a.pos[0]))
	slices.Reverse(vs)
	if !a.pos[0].IsString() {
		return list(vs), nil
	}
	return fJoin(args{r: a.r, pos: []Value{list(vs)}})
}

func selecting(attr, want bool) function {
	return func(a args) (Value, error) {
		at, path := 1, ""
		if attr {
			if len(a.pos) < 2 {
				return empty, errors.New("an attribute is missing")
			}
			at, path = 2, a.r.str(a.pos[1])
		}
		test := func(a args) (bool, error) { return a.pos[0].IsTruthy(), nil }
		var rest []Value
		if len(a.pos) > at {
			name := a.r.str(a.pos[at])
			if test = tested(name); test == nil {
				return empty, fmt.Errorf("unknown test %q", name)
			}
			rest = a.pos[at+1:]
		}
		var kept []Value
		for _, v := range items(a.pos[0]) {
			key := v
			if attr {
				key = attribute(v, path)
			}
			ok, err := test(args{r: a.r, pos: append([]Value{key}, rest...)})
			if err != nil {
				return empty, err
			}
			if ok == want {
				kept = append(kept, v)
			}
		}
		return list(kept), nil
	}
}

func fSum(a args) (Value, error) {
	path := a.text(1, "attribute", "")
	start, _ := a.get(2, "start")
	sum, _ := number(start)
	whole := !start.IsFloat()
	for _, v := range items(a.pos[0]) {
		if path != "" {
			v = attribute(v, path)
		}
		f, _ := number(v)
		sum += f
		whole = whole && !v.IsFloat()
	}
	if whole {
		return jinja.NewInt(int64(sum)), nil
	}
	return jinja.NewFloat(sum), nil
}
