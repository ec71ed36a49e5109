package dialect

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ardanlabs/jinja"
)

// methods are those of Python's str, list and dict. A dict's own key that
// holds a function goes before a method of that name.
var methods = map[string]function{}

// method tables by the type that a method belongs to.
var textMethods, listMethods, dictMethods map[string]function

func init() {
	textMethods = map[string]function{
		"strip": stripping(strings.TrimFunc), "lstrip": stripping(strings.TrimLeftFunc), "rstrip": stripping(strings.TrimRightFunc),
		"split": mSplit, "rsplit": mRSplit, "splitlines": mSplitLines, "partition": mPartition, "rpartition": mPartition,
		"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),
		"removeprefix": onSelf(strings.TrimPrefix), "removesuffix": onSelf(strings.TrimSuffix),
		"replace": func(a args) (Value, error) { return a.replaced(a.self()) },
		"upper":   onText(strings.ToUpper), "lower": onText(strings.ToLower), "casefold": onText(strings.ToLower),
		"capitalize": onText(capitalize), "title": onText(pythonTitle),
		"find": finding(strings.Index), "rfind": finding(strings.LastIndex),
		"index": mIndex, "count": mCount, "join": mJoin, "format": mFormat,
		"isdigit": all(unicode.IsDigit), "isnumeric": all(unicode.IsNumber), "isalpha": all(unicode.IsLetter), "isspace": all(isSpace),
		"isalnum": all(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
		"islower": boolOf(cased(strings.ToLower)), "isupper": boolOf(cased(strings.ToUpper)),
		"zfill": mZFill, "ljust": mLJust, "rjust": mRJust, "center": mCenter,
	}
	listMethods = map[string]function{
		"append": mAppend, "extend": mExtend, "insert": mInsert, "pop": mPopItem, "index": mIndexOf, "count": mCountOf, "copy": fList,
	}
	dictMethods = map[string]function{
		"get": mGet, "items": mItems, "keys": fList, "values": mValues, "pop": mPopKey, "update": mUpdate,
		"setdefault": mSetDefault, "copy": mCopy,
	}
	for _, table := range []map[string]function{textMethods, listMethods, dictMethods} {
		for name := range table {
			methods[name] = func(a args) (Value, error) { return a.method(name) }
		}
	}
}

func (a args) method(name string) (Value, error) {
	v := a.pos[0]
	var f function
	switch {
	case v.IsString():
		f = textMethods[name]
	case v.IsList():
		f = listMethods[name]
	case v.IsDict():
		if own, ok := v.AsDict().Get(name); ok && own.IsCallable() {
			return own.AsCallable().Fn(a.pos[1:], a.kw)
		}
		f = dictMethods[name]
	}
	if f == nil {
		return empty, fmt.Errorf("%s has no method %q", kindName(v), name)
	}
	return f(a)
}

func (a args) self() string { return a.pos[0].AsString() }

func onSelf(f func(s, arg string) string) function {
	return func(a args) (Value, error) { return str(f(a.self(), a.text(1, "", ""))), nil }
}

func stripping(trim func(string, func(rune) bool) string) function {
	return func(a args) (Value, error) {
		cut := isSpace
		if v, ok := a.get(1, "chars"); ok && !v.IsNone() {
			set := a.r.str(v)
			cut = func(r rune) bool { return strings.ContainsRune(set, r) }
		}
		return str(trim(a.self(), cut)), nil
	}
}

func texts(parts []string) Value {
	vs := make([]Value, len(parts))
	for i, p := range parts {
		vs[i] = str(p)
	}
	return list(vs)
}

func mSplit(a args) (Value, error) {
	n := int(a.int(2, "maxsplit", -1))
	sep := a.text(1, "sep", "")
	if v, ok := a.get(1, "sep"); ok && !v.IsNone() {
		if sep == "" {
			return empty, fmt.Errorf("split at an empty separator")
		}
		if n >= 0 {
			n++
		}
		return texts(strings.SplitN(a.self(), sep, n)), nil
	}
	if n < 0 {
		return texts(strings.FieldsFunc(a.self(), isSpace)), nil
	}
	var parts []string
	rest := strings.TrimLeftFunc(a.self(), isSpace)
	for rest != "" {
		i := strings.IndexFunc(rest, isSpace)
		if i < 0 || len(parts) == n {
			break
		}
		parts = append(parts, rest[:i])
		rest = strings.TrimLeftFunc(rest[i:], isSpace)
	}
	if rest != "" {
		parts = append(parts, rest)
	}
	return texts(parts), nil
}

func mRSplit(a args) (Value, error) {
	n, sep := int(a.int(2, "maxsplit", -1)), a.text(1, "sep", "")
	if n < 0 || sep == "" {
		return mSplit(args{r: a.r, pos: a.pos[:min(len(a.pos), 2)], kw: a.kw})
	}
	var parts []string
	rest := a.self()
	for range n {
		i := strings.LastIndex(rest, sep)
		if i < 0 {
			break
		}
		parts = append(parts, rest[i+len(sep):])
		rest = rest[:i]
	}
	parts = append(parts, rest)
	slices.Reverse(parts)
	return texts(parts), nil
}

func mSplitLines(a args) (Value, error) {
	parts := strings.SplitAfter(strings.ReplaceAll(a.self(), "\r\n", "\n"), "\n")
	if last := len(parts) - 1; parts[last] == "" {
		parts = parts[:last]
	}
	if !a.bool(1, "keepends") {
		for i := range parts {
			parts[i] = strings.TrimSuffix(parts[i], "\n")
		}
	}
	return texts(parts), nil
}

func mPartition(a args) (Value, error) {
	sep := a.text(1, "sep", "")
	before, after, ok := strings.Cut(a.self(), sep)
	if !ok {
		sep = ""
	}
	return texts([]string{before, sep, after}), nil
}

// affix takes one text or a tuple of them.
func affix(has func(s, x string) bool) function {
	return func(a args) (Value, error) {
		v, _ := a.get(1, "prefix")
		if !v.IsList() {
			v = list([]Value{v})
		}
		for _, x := range v.AsList().Items {
			if x.IsString() && has(a.self(), x.AsString()) {
				return jinja.NewBool(true), nil
			}
		}
		return jinja.NewBool(false), nil
	}
}

func finding(find func(s, x string) int) function {
	return func(a args) (Value, error) {
		i := find(a.self(), a.text(1, "", ""))
		if i > 0 {
			i = utf8.RuneCountInString(a.self()[:i])
		}
		return jinja.NewInt(int64(i)), nil
	}
}

func mIndex(a args) (Value, error) {
	v, err := textMethods["find"](a)
	if err == nil && v.AsInt() < 0 {
		err = fmt.Errorf("substring not found")
	}
	return v, err
}

func mCount(a args) (Value, error) {
	return jinja.NewInt(int64(strings.Count(a.self(), a.text(1, "", "")))), nil
}

func mJoin(a args) (Value, error) {
	if len(a.pos) < 2 {
		return empty, fmt.Errorf("join takes a list")
	}
	return fJoin(args{r: a.r, pos: []Value{a.pos[1], a.pos[0]}})
}

func all(f func(rune) bool) function {
	return func(a args) (Value, error) {
		s := a.self()
		return jinja.NewBool(s != "" && strings.IndexFunc(s, func(r rune) bool { return !f(r) }) < 0), nil
	}
}

// pythonTitle capitalises each run of letters.
func pythonTitle(s string) string {
	inWord := false
	return strings.Map(func(r rune) rune {
		was := inWord
		if inWord = unicode.IsLetter(r); !inWord {
			return r
		}
		if was {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

// padding is what a text lacks to a width, with the character asked for.
func (a args) padding() (int, string) {
	width := min(a.int(1, "width", 0), 1<<16)
	return max(int(width)-utf8.RuneCountInString(a.self()), 0), a.text(2, "fillchar", " ")
}

func mLJust(a args) (Value, error) {
	n, fill := a.padding()
	return str(a.self() + strings.Repeat(fill, n)), nil
}

func mRJust(a args) (Value, error) {
	n, fill := a.padding()
	return str(strings.Repeat(fill, n) + a.self()), nil
}

func mCenter(a args) (Value, error) {
	n, fill := a.padding()
	return str(strings.Repeat(fill, n/2) + a.self() + strings.Repeat(fill, n-n/2)), nil
}

func mZFill(a args) (Value, error) {
	n, _ := a.padding()
	sign, digits := "", a.self()
	if strings.HasPrefix(digits, "-") || strings.HasPrefix(digits, "+") {
		sign, digits = digits[:1], digits[1:]
	}
	return str(sign + strings.Repeat("0", n) + digits), nil
}
