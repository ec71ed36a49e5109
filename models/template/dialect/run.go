package dialect

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"
)

// Value is a value of the template language. Dicts keep the order of their
// keys.
type Value = jinja.Value

// Env is what a rendering gets besides its variables.
type Env struct {
	Now time.Time // of strftime_now
	// Spelling is where the numbers among the variables came from; nil where
	// there are none.
	Spelling *Spelling
	// InJSON is applied to each string that tojson has written, quotes and
	// escapes included; nil leaves it.
	InJSON func(string) string
}

// run is one rendering.
type run struct {
	env   Env
	texts []Value
	line  int
	steps int
	depth int
	out   int
}

// args are the arguments of a filter, test, method or function. The first of
// pos is what a filter, test or method applies to.
type args struct {
	r   *run
	pos []Value
	kw  map[string]Value
}

type function func(a args) (Value, error)

// core are the functions that the compiler itself calls, globals those that a
// template may call.
var core, globals map[string]function

func init() {
	core = map[string]function{
		"at": fnAt, "text": fnText, "out": fnOut, "iter": fnIter, "check": fnCheck,
		"enter": fnEnter, "leave": fnLeave, "mul": fnMul, "mod": fnMod, "floordiv": fnFloorDiv, "pow": fnPow,
	}
	globals = map[string]function{
		"range": fnRange, "raise_exception": fnRaise, "strftime_now": fnStrftimeNow,
	}
}

// Render runs the template. What the template raises is a *RaiseError, any
// other fault an *Error with the line.
func (p *Program) Render(vars map[string]Value, env Env) (text string, err error) {
	r := &run{env: env, texts: p.texts}
	all := make(map[string]Value, len(vars)+len(p.used)+len(globals))
	for name, fn := range globals {
		if p.names[name] {
			all[name] = r.callable(name, fn)
		}
	}
	maps.Copy(all, vars)
	for _, name := range p.used {
		all[prefix+name] = r.callable(name, lookup(name))
	}
	defer func() {
		if v := recover(); v != nil {
			text, err = "", &Error{r.line, fmt.Errorf("can't be run: %v", v)}
		}
	}()
	text, err = p.tmpl.RenderValues(all)
	var raised *RaiseError
	switch {
	case err == nil:
		return text, nil
	case errors.As(err, &raised):
		return "", raised
	}
	return "", &Error{r.line, errors.New(strings.ReplaceAll(err.Error(), prefix, ""))}
}

func lookup(used string) function {
	kind, name, ok := strings.Cut(used, "_")
	if ok {
		switch kind {
		case "f":
			return filters[name]
		case "t":
			return tests[name]
		case "m":
			return methods[name]
		}
	}
	return core[used]
}

func (r *run) callable(name string, fn function) Value {
	return jinja.NewCallable(name, func(pos []Value, kw map[string]Value) (Value, error) {
		return fn(args{r, pos, kw})
	})
}

var empty = jinja.NewString("")

// fnAt marks the line and counts the step; it is falsy, so that the compiler
// can put it before any expression.
func fnAt(a args) (Value, error) {
	a.r.line = int(a.pos[0].AsInt())
	return empty, a.r.work(1)
}

// work counts steps.
func (r *run) work(n int) error {
	if r.steps += n; r.steps > maxSteps {
		return errSteps
	}
	return nil
}

func fnText(a args) (Value, error) {
	v := a.r.texts[a.pos[0].AsInt()]
	if err := a.r.work(1); err != nil {
		return empty, err
	}
	return v, a.r.count(v.AsString())
}

func (r *run) count(s string) error {
	if r.out += len(s); r.out > maxOutputBytes {
		return errOutput
	}
	return nil
}

func fnOut(a args) (Value, error) {
	v := a.pos[0]
	if !v.IsString() {
		v = jinja.NewString(a.r.str(v))
	}
	return v, a.r.count(v.AsString())
}

// fnIter checks what a loop goes over. None counts as empty, as in most
// reimplementations of Jinja2.
func fnIter(a args) (Value, error) {
	v := a.pos[0]
	if v.IsNumber() || v.IsBool() || v.IsCallable() {
		return v, fmt.Errorf("%s is not iterable", kindName(v))
	}
	n, err := length(v)
	if err != nil {
		return v, err
	}
	return v, a.r.work(n)
}

func fnCheck(a args) (Value, error) {
	v := a.pos[0]
	if v.IsString() && len(v.AsString()) > maxOutputBytes {
		return v, errOutput
	}
	if v.IsList() && v.AsList().Len() > maxListItems {
		return v, errList
	}
	return v, nil
}

func fnEnter(a args) (Value, error) {
	if a.r.depth++; a.r.depth > maxDepth {
		return empty, errDepth
	}
	return empty, nil
}

func fnLeave(a args) (Value, error) {
	a.r.depth--
	return empty, nil
}

func fnRaise(a args) (Value, error) {
	return empty, &RaiseError{a.text(0, "message", "the template raised an error without a message")}
}

func fnStrftimeNow(a args) (Value, error) {
	return jinja.NewString(strftime(a.r.env.Now, a.text(0, "format", "%Y-%m-%d"))), nil
}

func fnRange(a args) (Value, error) {
	start, stop, step := int64(0), a.int(0, "stop", 0), a.int(2, "step", 1)
	if len(a.pos) > 1 {
		start, stop = stop, a.int(1, "stop", 0)
	}
	if step == 0 {
		return empty, errors.New("range with step 0")
	}
	var items []Value
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(items) == maxListItems {
			return empty, errList
		}
		items = append(items, jinja.NewInt(i))
	}
	return jinja.NewList(items), a.r.work(len(items))
}

// get finds an argument by place or name.
func (a args) get(i int, name string) (Value, bool) {
	if i < len(a.pos) {
		return a.pos[i], true
	}
	v, ok := a.kw[name]
	return v, ok
}

func (a args) text(i int, name, absent string) string {
	if v, ok := a.get(i, name); ok && !v.IsNone() {
		return a.r.str(v)
	}
	return absent
}

func (a args) int(i int, name string, absent int64) int64 {
	v, ok := a.get(i, name)
	switch {
	case !ok || v.IsNone():
		return absent
	case v.IsFloat():
		return int64(v.AsFloat())
	}
	n, _ := integer(v)
	return n
}

func (a args) bool(i int, name string) bool {
	v, _ := a.get(i, name)
	return v.IsTruthy()
}
