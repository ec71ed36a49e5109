package dialect

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ardanlabs/jinja"
)

// filters are Jinja2's, plus the two names that some servers give to a JSON
// reader.
var filters map[string]function

func init() {
	filters = map[string]function{
		"tojson": fToJSON, "fromjson": fFromJSON, "from_json": fFromJSON,
		"abs": fAbs, "attr": fAttr, "batch": fBatch, "capitalize": onText(capitalize), "center": fCenter,
		"count": fLength, "length": fLength, "default": fDefault, "d": fDefault, "dictsort": fDictSort,
		"escape": onText(escapeHTML), "e": onText(escapeHTML), "forceescape": onText(escapeHTML),
		"first": fFirst, "last": fLast, "float": fFloat, "format": fFormat, "indent": fIndent, "int": fInt,
		"items": fItems, "join": fJoin, "list": fList, "lower": onText(strings.ToLower), "upper": onText(strings.ToUpper),
		"map": fMap, "max": extreme(1), "min": extreme(-1), "replace": fReplace, "reverse": fReverse, "round": fRound,
		"safe": fSame, "string": fString, "select": selecting(false, true), "reject": selecting(false, false),
		"selectattr": selecting(true, true), "rejectattr": selecting(true, false), "sort": fSort, "sum": fSum,
		"title": onText(titleFilter), "trim": fTrim, "unique": fUnique, "wordcount": fWordCount,
	}
}

func onText(f func(string) string) function {
	return func(a args) (Value, error) { return str(f(a.text(0, "", ""))), nil }
}

func fSame(a args) (Value, error) { return a.pos[0], nil }

func fString(a args) (Value, error) { return str(a.text(0, "", "None")), nil }

func fFromJSON(a args) (Value, error) {
	if a.r.env.Spelling == nil {
		a.r.env.Spelling = &Spelling{}
	}
	v, err := FromJSON(a.text(0, "", ""), a.r.env.Spelling, nil)
	if err != nil {
		return v, fmt.Errorf("fromjson: %w", err)
	}
	return v, nil
}

func fAbs(a args) (Value, error) {
	v := a.pos[0]
	if v.IsFloat() {
		return jinja.NewFloat(math.Abs(v.AsFloat())), nil
	}
	n, _ := integer(v)
	return jinja.NewInt(max(n, -n)), nil
}

func fAttr(a args) (Value, error) {
	v, _ := a.get(1, "name")
	if d := a.pos[0]; d.IsDict() {
		found, _ := d.AsDict().Get(a.r.str(v))
		return found, nil
	}
	return jinja.Undefined(), nil
}

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

func fCenter(a args) (Value, error) {
	return mCenter(args{r: a.r, pos: []Value{str(a.text(0, "", "")), jinja.NewInt(a.int(1, "width", 80))}})
}

func fLength(a args) (Value, error) {
	n, err := length(a.pos[0])
	return jinja.NewInt(int64(n)), err
}

func length(v Value) (int, error) {
	switch {
	case v.IsString():
		return utf8.RuneCountInString(v.AsString()), nil
	case v.IsList():
		return v.AsList().Len(), nil
	case v.IsDict():
		return v.AsDict().Len(), nil
	case v.IsUndefined(), v.IsNone():
		return 0, nil
	}
	return 0, fmt.Errorf("%s has no length", kindName(v))
}

func fDefault(a args) (Value, error) {
	v := a.pos[0]
	if !v.IsUndefined() && (!a.bool(2, "boolean") || v.IsTruthy()) {
		return v, nil
	}
	if d, ok := a.get(1, "default_value"); ok {
		return d, nil
	}
	return empty, nil
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

// sortBy sorts in place, stably; text without regard to case unless told so.
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

var htmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

func escapeHTML(s string) string { return htmlEscapes.Replace(s) }

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

func fFloat(a args) (Value, error) {
	if f, ok := number(a.pos[0]); ok {
		return jinja.NewFloat(f), nil
	}
	if f, err := strconv.ParseFloat(strings.TrimSpace(a.text(0, "", "")), 64); err == nil {
		return jinja.NewFloat(f), nil
	}
	if d, ok := a.get(1, "default"); ok {
		return d, nil
	}
	return jinja.NewFloat(0), nil
}

func fInt(a args) (Value, error) {
	v := a.pos[0]
	if v.IsFloat() {
		return jinja.NewInt(int64(v.AsFloat())), nil
	}
	if n, ok := integer(v); ok {
		return jinja.NewInt(n), nil
	}
	s := strings.TrimSpace(a.r.str(v))
	if n, err := strconv.ParseInt(s, int(a.int(2, "base", 10)), 64); err == nil {
		return jinja.NewInt(n), nil
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return jinja.NewInt(int64(f)), nil
	}
	return jinja.NewInt(a.int(1, "default", 0)), nil
}

func fFormat(a args) (Value, error) {
	s, err := a.r.printf(a.text(0, "", ""), a.pos[1:])
	return str(s), err
}

func fIndent(a args) (Value, error) {
	pad := strings.Repeat(" ", int(min(max(a.int(1, "width", 4), 0), 1000)))
	if v, ok := a.get(1, "width"); ok && v.IsString() {
		pad = v.AsString()
	}
	blank := a.bool(3, "blank")
	lines := strings.Split(a.text(0, "", ""), "\n")
	for i := range lines {
		if i > 0 && (blank || lines[i] != "") || i == 0 && a.bool(2, "first") {
			lines[i] = pad + lines[i]
		}
	}
	return str(strings.Join(lines, "\n")), nil
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

// extreme is the largest item for sign 1, the smallest for -1.
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

func fReplace(a args) (Value, error) {
	if len(a.pos) < 3 {
		return empty, errors.New("replace takes the old and the new text")
	}
	return a.replaced(a.text(0, "", ""))
}

func (a args) replaced(s string) (Value, error) {
	from, to, n := a.text(1, "old", ""), a.text(2, "new", ""), int(a.int(3, "count", -1))
	if len(to) > len(from) && (strings.Count(s, from)*(len(to)-len(from)) > maxOutputBytes) {
		return empty, errOutput
	}
	return str(strings.Replace(s, from, to, n)), nil
}

func fReverse(a args) (Value, error) {
	vs := slices.Clone(items(a.pos[0]))
	slices.Reverse(vs)
	if !a.pos[0].IsString() {
		return list(vs), nil
	}
	return fJoin(args{r: a.r, pos: []Value{list(vs)}})
}

func fRound(a args) (Value, error) {
	f, _ := number(a.pos[0])
	scale := math.Pow(10, float64(a.int(1, "precision", 0)))
	round := math.RoundToEven
	switch a.text(2, "method", "common") {
	case "ceil":
		round = math.Ceil
	case "floor":
		round = math.Floor
	}
	return jinja.NewFloat(round(f*scale) / scale), nil
}

// selecting makes select, reject, selectattr and rejectattr.
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

func fTrim(a args) (Value, error) {
	s := a.text(0, "", "")
	if v, ok := a.get(1, "chars"); ok && !v.IsNone() {
		return str(strings.Trim(s, a.r.str(v))), nil
	}
	return str(strings.TrimFunc(s, isSpace)), nil
}

func fWordCount(a args) (Value, error) {
	return jinja.NewInt(int64(len(strings.Fields(a.text(0, "", ""))))), nil
}

func capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return ""
	}
	return string(unicode.ToUpper(r)) + strings.ToLower(s[n:])
}

var wordStart = regexp.MustCompile(`[^-\s({\[<]+`)

func titleFilter(s string) string { return wordStart.ReplaceAllStringFunc(s, capitalize) }
