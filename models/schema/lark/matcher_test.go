package lark

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// matcher tells whether a text follows a grammar, straight from the definitions:
// where an expression may end that begins at a position. Rules are tried until
// nothing new is found, so left recursion needs no care. It is slow and simple.
type matcher struct {
	src     *source
	text    string
	known   map[string]map[int]bool // ends by rule, arguments and position
	busy    map[string]bool
	changed bool
	ignored *regexp.Regexp
	exprs   map[string]*regexp.Regexp
}

type env map[string]*bound

// bound is an argument with the parameters that it was written under.
type bound struct {
	e   *expr
	env env
}

func follows(src *source, text string) bool {
	m := &matcher{src: src, text: text, known: map[string]map[int]bool{}, exprs: map[string]*regexp.Regexp{}}
	if len(src.ignored) > 0 {
		m.ignored = m.compile("(?:" + m.pattern(&expr{op: opAlt, kids: src.ignored}) + ")*")
	}
	for m.changed = true; m.changed; {
		m.changed, m.busy = false, map[string]bool{}
		m.ends(&expr{op: opRule, name: "start"}, 0, nil)
	}
	return m.ends(&expr{op: opRule, name: "start"}, 0, nil)[len(text)]
}

func (m *matcher) ends(e *expr, at int, env env) map[int]bool {
	if b := env[e.name]; b != nil && (e.op == opRule || e.op == opTerminal) {
		return m.ends(b.e, at, b.env)
	}
	out := map[int]bool{}
	switch e.op {
	case opRule:
		return m.rule(e, at, env)
	case opTerminal, opLiteral:
		for end := range m.matches(m.compile(m.pattern(e)), at) {
			if m.ignored == nil || end == at {
				out[end] = true
				continue
			}
			maps.Copy(out, m.matches(m.ignored, end))
		}
	case opAlt:
		for _, k := range e.kids {
			maps.Copy(out, m.ends(k, at, env))
		}
	case opSeq:
		out[at] = true
		for _, k := range e.kids {
			out = m.after(out, k, env)
		}
	case opRepeat:
		from := map[int]bool{at: true}
		for n := 0; len(from) > 0 && (e.hi < 0 || n <= e.hi) && n <= e.lo+len(m.text)+1; n++ {
			if n >= e.lo {
				maps.Copy(out, from)
			}
			from = m.after(from, e.kids[0], env)
		}
	}
	return out
}

func (m *matcher) after(from map[int]bool, e *expr, env env) map[int]bool {
	out := map[int]bool{}
	for at := range from {
		maps.Copy(out, m.ends(e, at, env))
	}
	return out
}

func (m *matcher) rule(e *expr, at int, outer env) map[int]bool {
	def := m.src.rules[e.name]
	inner, key := env{}, e.name
	for i, arg := range e.kids {
		if arg.op == opRule || arg.op == opTerminal {
			if b := outer[arg.name]; b != nil {
				inner[def.params[i]] = b
				key += "," + show(b.e)
				continue
			}
		}
		inner[def.params[i]] = &bound{arg, outer}
		key += "," + show(arg)
	}
	key += "@" + string(rune(at))
	if m.known[key] == nil {
		m.known[key] = map[int]bool{}
	}
	if m.busy[key] {
		return m.known[key]
	}
	m.busy[key] = true
	for end := range m.ends(def.body, at, inner) {
		if !m.known[key][end] {
			m.known[key][end], m.changed = true, true
		}
	}
	return m.known[key]
}

func show(e *expr) string {
	var b strings.Builder
	b.WriteString(string(rune('0'+e.op)) + e.name + e.pattern + repetition(e.lo, e.hi) + "(")
	for _, k := range e.kids {
		b.WriteString(show(k) + " ")
	}
	return b.String() + ")"
}

func (m *matcher) matches(re *regexp.Regexp, at int) map[int]bool {
	out := map[int]bool{}
	for end := at; end <= len(m.text); end++ {
		if re.MatchString(m.text[at:end]) {
			out[end] = true
		}
	}
	return out
}

func (m *matcher) compile(pattern string) *regexp.Regexp {
	if m.exprs[pattern] == nil {
		m.exprs[pattern] = regexp.MustCompile(`\A(?:` + pattern + `)\z`)
	}
	return m.exprs[pattern]
}

func (m *matcher) pattern(e *expr) string {
	var kids []string
	for _, k := range e.kids {
		kids = append(kids, m.pattern(k))
	}
	switch e.op {
	case opTerminal:
		return "(?:" + m.pattern(m.src.terminals[e.name].body) + ")"
	case opAlt:
		return "(?:" + strings.Join(kids, "|") + ")"
	case opSeq:
		return strings.Join(kids, "")
	case opRepeat:
		return "(?:" + kids[0] + ")" + repetition(e.lo, e.hi)
	}
	return e.pattern
}

// texts are all texts of up to n letters.
func texts(letters string, n int) []string {
	out, last := []string{""}, []string{""}
	for range n {
		var next []string
		for _, s := range last {
			for _, c := range letters {
				next = append(next, s+string(c))
			}
		}
		out, last = slices.Concat(out, next), next
	}
	return out
}
