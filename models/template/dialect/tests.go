package dialect

import (
	"errors"
	"strings"

	"github.com/ardanlabs/jinja"
)

// tests are Jinja2's, as functions that give a bool.
var tests map[string]function

func init() {
	tests = map[string]function{}
	for name, test := range testTable {
		tests[name] = boolOf(test)
	}
}

func boolOf(test func(args) (bool, error)) function {
	return func(a args) (Value, error) {
		ok, err := test(a)
		return jinja.NewBool(ok), err
	}
}

// tested finds a test by its name or by the operator that it stands for.
func tested(name string) func(args) (bool, error) {
	if full, ok := operatorTests[name]; ok {
		name = full
	}
	return testTable[name]
}

var operatorTests = map[string]string{"==": "eq", "!=": "ne", ">": "gt", ">=": "ge", "<": "lt", "<=": "le"}

var testTable = map[string]func(args) (bool, error){
	"defined":   is(func(v Value) bool { return !v.IsUndefined() }),
	"undefined": is(Value.IsUndefined),
	"none":      is(Value.IsNone),
	"boolean":   is(Value.IsBool),
	"true":      is(func(v Value) bool { return v.IsBool() && v.AsBool() }),
	"false":     is(func(v Value) bool { return v.IsBool() && !v.AsBool() }),
	"integer":   is(Value.IsInt),
	"float":     is(Value.IsFloat),
	"number":    is(func(v Value) bool { return v.IsNumber() || v.IsBool() }),
	"string":    is(Value.IsString),
	"mapping":   is(Value.IsDict),
	"sequence":  is(func(v Value) bool { return v.IsString() || v.IsList() || v.IsDict() || v.IsUndefined() }),
	"iterable":  is(func(v Value) bool { return v.IsString() || v.IsList() || v.IsDict() || v.IsUndefined() }),
	"callable":  is(Value.IsCallable),
	"escaped":   is(func(Value) bool { return false }),
	"odd":       is(func(v Value) bool { n, ok := integer(v); return ok && n%2 != 0 }),
	"even":      is(func(v Value) bool { n, ok := integer(v); return ok && n%2 == 0 }),
	"lower":     cased(strings.ToLower),
	"upper":     cased(strings.ToUpper),

	"eq": with(equal), "equalto": with(equal), "sameas": with(func(a, b Value) bool {
		return kindName(a) == kindName(b) && equal(a, b)
	}),
	"ne":          with(func(a, b Value) bool { return !equal(a, b) }),
	"gt":          with(func(a, b Value) bool { return compare(a, b) > 0 }),
	"greaterthan": with(func(a, b Value) bool { return compare(a, b) > 0 }),
	"ge":          with(func(a, b Value) bool { return compare(a, b) >= 0 }),
	"lt":          with(func(a, b Value) bool { return compare(a, b) < 0 }),
	"lessthan":    with(func(a, b Value) bool { return compare(a, b) < 0 }),
	"le":          with(func(a, b Value) bool { return compare(a, b) <= 0 }),
	"in":          with(func(a, b Value) bool { return contains(b, a) }),
	"divisibleby": with(func(a, b Value) bool {
		x, _ := integer(a)
		y, _ := integer(b)
		return y != 0 && x%y == 0
	}),
}

func is(f func(Value) bool) func(args) (bool, error) {
	return func(a args) (bool, error) { return f(a.pos[0]), nil }
}

func with(f func(a, b Value) bool) func(args) (bool, error) {
	return func(a args) (bool, error) {
		if len(a.pos) < 2 {
			return false, errors.New("a test lacks its argument")
		}
		return f(a.pos[0], a.pos[1]), nil
	}
}

// cased tells whether a text has letters and all are of that case.
func cased(fold func(string) string) func(args) (bool, error) {
	return func(a args) (bool, error) {
		s := a.text(0, "", "")
		return s == fold(s) && strings.ToUpper(s) != strings.ToLower(s), nil
	}
}
