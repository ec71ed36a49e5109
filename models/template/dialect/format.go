package dialect

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ardanlabs/jinja"
)

// fnMul is * with Python's repetition of texts and lists.
func fnMul(a args) (Value, error) {
	x, y := a.pos[0], a.pos[1]
	if x.IsInt() && (y.IsString() || y.IsList()) {
		x, y = y, x
	}
	n, whole := integer(y)
	n = max(n, 0)
	switch {
	case whole && x.IsString():
		if n > maxOutputBytes/int64(max(len(x.AsString()), 1)) {
			return empty, errOutput
		}
		return str(strings.Repeat(x.AsString(), int(n))), nil
	case whole && x.IsList():
		vs := x.AsList().Items
		if n > maxListItems/int64(max(len(vs), 1)) {
			return empty, errList
		}
		var out []Value
		for range n {
			out = append(out, vs...)
		}
		return list(out), nil
	}
	if i, ok := integer(x); ok && whole {
		n, _ = integer(y)
		return jinja.NewInt(i * n), nil
	}
	f, okX := number(x)
	g, okY := number(y)
	if !okX || !okY {
		return empty, fmt.Errorf("%s * %s is not defined", kindName(x), kindName(y))
	}
	return jinja.NewFloat(f * g), nil
}

// fnMod is % : a remainder with the divisor's sign, or printf formatting.
func fnMod(a args) (Value, error) {
	x, y := a.pos[0], a.pos[1]
	if x.IsString() {
		vs := []Value{y}
		if y.IsList() {
			vs = y.AsList().Items
		}
		s, err := a.r.printf(x.AsString(), vs)
		return str(s), err
	}
	i, okI := integer(x)
	j, okJ := integer(y)
	if okI && okJ && j != 0 {
		return jinja.NewInt(((i % j) + j) % j), nil
	}
	f, okF := number(x)
	g, okG := number(y)
	if !okF || !okG || g == 0 {
		return empty, fmt.Errorf("%s %% %s is not defined", a.r.str(x), a.r.str(y))
	}
	return jinja.NewFloat(f - g*math.Floor(f/g)), nil
}

func fnFloorDiv(a args) (Value, error) {
	f, okF := number(a.pos[0])
	g, okG := number(a.pos[1])
	if !okF || !okG || g == 0 {
		return empty, fmt.Errorf("%s // %s is not defined", a.r.str(a.pos[0]), a.r.str(a.pos[1]))
	}
	q := math.Floor(f / g)
	if a.pos[0].IsFloat() || a.pos[1].IsFloat() {
		return jinja.NewFloat(q), nil
	}
	return jinja.NewInt(int64(q)), nil
}

func fnPow(a args) (Value, error) {
	f, okF := number(a.pos[0])
	g, okG := number(a.pos[1])
	if !okF || !okG {
		return empty, fmt.Errorf("%s ** %s is not defined", kindName(a.pos[0]), kindName(a.pos[1]))
	}
	p := math.Pow(f, g)
	if !a.pos[0].IsFloat() && !a.pos[1].IsFloat() && g >= 0 && math.Abs(p) < 1<<53 {
		return jinja.NewInt(int64(p)), nil
	}
	return jinja.NewFloat(p), nil
}

// printf knows %s %r %d %i %f %x with width and precision.
func (r *run) printf(format string, vs []Value) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		n := i + 1
		for n < len(format) && strings.IndexByte("-+ 0123456789.#", format[n]) >= 0 {
			n++
		}
		if n == len(format) {
			return "", fmt.Errorf("format %q ends inside a directive", format)
		}
		if format[n] == '%' {
			b.WriteByte('%')
			i = n
			continue
		}
		if len(vs) == 0 {
			return "", fmt.Errorf("format %q lacks values", format)
		}
		s, err := r.directive(format[i+1:n], format[n], vs[0])
		if err != nil {
			return "", err
		}
		b.WriteString(s)
		vs = vs[1:]
		i = n
	}
	return b.String(), nil
}

// directive formats one value by flags and width and a verb of printf.
func (r *run) directive(flags string, verb byte, v Value) (string, error) {
	if width, _, _ := strings.Cut(strings.TrimLeft(flags, "-+ 0#"), "."); len(width) > 4 {
		return "", fmt.Errorf("a width of %s is too large", width)
	}
	switch verb {
	case 's':
		return fmt.Sprintf("%"+flags+"s", r.str(v)), nil
	case 'r':
		var b strings.Builder
		r.repr(&b, v)
		return fmt.Sprintf("%"+flags+"s", b.String()), nil
	case 'd', 'i', 'x', 'X':
		f, ok := number(v)
		if !ok {
			break
		}
		if verb == 'i' {
			verb = 'd'
		}
		return fmt.Sprintf("%"+flags+string(verb), int64(f)), nil
	case 'f', 'e', 'g':
		f, ok := number(v)
		if !ok {
			break
		}
		return fmt.Sprintf("%"+flags+string(verb), f), nil
	}
	return "", fmt.Errorf("can't format %s as %%%s%c", kindName(v), flags, verb)
}

// mFormat is str.format with {}, {0}, {name}, and a type after a colon.
func mFormat(a args) (Value, error) {
	var b strings.Builder
	s, next := a.self(), 1
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '{' && c != '}' {
			b.WriteByte(c)
			continue
		}
		if i+1 < len(s) && s[i+1] == c {
			b.WriteByte(c)
			i++
			continue
		}
		n := strings.IndexByte(s[i:], '}')
		if c == '}' || n < 0 {
			return empty, fmt.Errorf("format: single %q", c)
		}
		field, spec, _ := strings.Cut(s[i+1:i+n], ":")
		v, ok := a.field(field, &next)
		if !ok {
			return empty, fmt.Errorf("format: no value for {%s}", field)
		}
		text := a.r.str(v)
		if spec != "" {
			var err error
			if text, err = a.r.directive(spec[:len(spec)-1], spec[len(spec)-1], v); err != nil {
				return empty, err
			}
		}
		b.WriteString(text)
		i += n
	}
	return str(b.String()), nil
}

// field finds the value of a replacement field; next counts the automatic
// ones.
func (a args) field(name string, next *int) (Value, bool) {
	if name == "" {
		*next++
		return a.get(*next-1, "")
	}
	name, path, dotted := strings.Cut(name, ".")
	v, ok := a.kw[name]
	if n, err := strconv.Atoi(name); err == nil && n >= 0 {
		v, ok = a.get(n+1, "")
	}
	if ok && dotted {
		v = attribute(v, path)
	}
	return v, ok
}
