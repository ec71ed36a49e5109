package dialect

import (
	"errors"
	"fmt"
	"math"
	"regexp"
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

// sortBy sorts in place, stably; text without regard to case unless told so.
var htmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

func escapeHTML(s string) string { return htmlEscapes.Replace(s) }

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

// extreme is the largest item for sign 1, the smallest for -1.
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
