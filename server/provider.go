package server

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"quern/server/jsonvalue"
)

// Fact is something that a node says of itself: a name and its values, as in
// region: eu or labels: [fast, private].
type Fact struct {
	Name   string
	Values []string
}

// requirement is one entry of a request's provider object. Entries of nested
// objects have dotted names.
type requirement struct {
	name  string
	wants []string // any of them; numbers and booleans as JSON spells them
}

// The requirements that name nodes instead of their facts.
const (
	wantOrder     = "order"
	wantOnly      = "only"
	wantIgnore    = "ignore"
	wantFallbacks = "allow_fallbacks"
)

// requirements reads provider.
func (f *fields) requirements(v jsonvalue.Value) []requirement {
	var out []requirement
	for _, entry := range f.object(v) {
		name := strings.TrimPrefix(entry.Path(), "provider.")
		r := requirement{name: name}
		switch {
		case entry.Empty():
			continue
		case name == wantOrder, name == wantOnly, name == wantIgnore:
			r.wants = f.nodes(entry)
			if len(r.wants) == 0 && name != wantOnly {
				continue // says nothing of any node
			}
		case name == wantFallbacks:
			r.wants = []string{strconv.FormatBool(f.flag(entry, true))}
		case isBound(name):
			r.wants = []string{f.bound(entry)}
		case entry.Kind() == jsonvalue.Object:
			out = append(out, f.requirements(entry)...)
			continue
		case entry.Kind() == jsonvalue.Array:
			for _, e := range f.array(entry, maxObjectFields) {
				r.wants = append(r.wants, f.scalar(e))
			}
		default:
			r.wants = []string{f.scalar(entry)}
		}
		if len(r.wants) == 0 {
			f.fail(invalid(entry.Path(), codeInvalidValue, "%s is empty, so that no node could meet it: name a value, or leave it out", entry.Path()))
		}
		out = append(out, r)
	}
	return out
}

// nodes reads a list of names of nodes.
func (f *fields) nodes(v jsonvalue.Value) (names []string) {
	for _, node := range f.array(v, maxObjectFields) {
		if node.Kind() != jsonvalue.String {
			f.wrongType(node, "the name of a node")
		}
		names = append(names, f.text(node))
	}
	return names
}

// isBound says that a requirement is a bound of a number.
func isBound(name string) bool {
	return strings.HasPrefix(name, "min_") || strings.HasPrefix(name, "max_")
}

// bound reads a number as text.
func (f *fields) bound(v jsonvalue.Value) string {
	if _, ok := v.Float(); !ok {
		f.wrongType(v, "a number")
	}
	return string(v.Raw())
}

// scalar reads a plain value as text.
func (f *fields) scalar(v jsonvalue.Value) string {
	switch v.Kind() {
	case jsonvalue.String:
		if text, _ := v.Text(); text == "" {
			f.fail(invalid(v.Path(), codeInvalidValue, "%s must not be empty", v.Path()))
		}
		return f.text(v)
	case jsonvalue.Number, jsonvalue.Bool:
		return string(v.Raw())
	default:
		f.wrongType(v, "a string, a number or a boolean")
		return ""
	}
}

// meets refuses a request whose requirements this node does not meet. Another
// worker may: hence a 503.
func (s *Server) meets(m *Model, wanted []requirement) *requestError {
	if len(wanted) == 0 {
		return nil
	}
	facts := append(slices.Clone(s.cfg.Node), m.facts()...) // the config's come first
	for _, r := range wanted {
		if why := r.unmet(facts, wanted); why != "" {
			return &requestError{
				Status: http.StatusServiceUnavailable, Type: typeUnavailable, Code: "no_worker", Param: "provider." + r.name,
				Message: "no worker meets the provider requirements: " + why,
			}
		}
	}
	return nil
}

// facts is what a model says of its node.
func (m *Model) facts() []Fact {
	i := m.Info
	return []Fact{
		{"model", append([]string{m.ID}, m.Aliases...)},
		{"architecture", []string{i.Architecture}},
		{"quantization", []string{i.Quantization}},
		{"device", []string{i.Device}},
		{"kv_type", []string{i.KVType}},
		{"context_length", []string{strconv.Itoa(m.ContextLength)}},
		{"max_concurrency", []string{strconv.Itoa(i.Parallel)}},
		{"parameters", []string{strconv.FormatInt(i.Parameters, 10)}},
	}
}

// unmet says why the requirement does not hold, or nothing.
func (r requirement) unmet(facts []Fact, all []requirement) string {
	has := valuesOf(facts, r.name)
	node := valuesOf(facts, "name")
	switch {
	case r.name == wantFallbacks:
		return ""
	case r.name == wantOrder && !slices.ContainsFunc(all, requirement.forbidsFallbacks):
		return ""
	case r.name == wantOrder || r.name == wantOnly:
		has = node
	case r.name == wantIgnore:
		if anyEqual(r.wants, node) {
			return fmt.Sprintf("provider.ignore names this node, which is %s", orList(node))
		}
		return ""
	case has == nil:
		return r.outOfBounds(facts)
	}
	if anyEqual(r.wants, has) {
		return ""
	}
	return fmt.Sprintf("provider.%s wants %s, and this node has %s", r.name, orList(r.wants), orList(has))
}

func (r requirement) forbidsFallbacks() bool { return r.name == wantFallbacks && r.wants[0] == "false" }

// outOfBounds judges min_* and max_* against the fact that the rest names, or
// that max_ and the rest name: min_concurrency is about max_concurrency.
func (r requirement) outOfBounds(facts []Fact) string {
	bound, rest, _ := strings.Cut(r.name, "_")
	if bound != "min" && bound != "max" || len(r.wants) != 1 {
		return fmt.Sprintf("provider.%s is not known to this node", r.name)
	}
	has := valuesOf(facts, rest)
	if has == nil {
		has = valuesOf(facts, "max_"+rest)
	}
	if len(has) != 1 {
		return fmt.Sprintf("provider.%s is not known to this node", r.name)
	}
	have, err1 := strconv.ParseFloat(has[0], 64)
	want, err2 := strconv.ParseFloat(r.wants[0], 64)
	if err1 == nil && err2 == nil && (bound == "min" && have >= want || bound == "max" && have <= want) {
		return ""
	}
	return fmt.Sprintf("provider.%s wants %s, and this node has %s", r.name, orList(r.wants), has[0])
}

func valuesOf(facts []Fact, name string) []string {
	for _, f := range facts {
		if f.Name == name {
			return f.Values
		}
	}
	return nil
}

func anyEqual(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool {
		return slices.ContainsFunc(b, func(y string) bool { return sameValue(x, y) })
	})
}

// sameValue compares without regard to case, and numbers by their value.
func sameValue(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && x == y
}

// orList spells values for a message; names of clients are clipped.
func orList(values []string) string {
	if len(values) == 0 {
		return "none"
	}
	shown := make([]string, len(values))
	for i, v := range values {
		shown[i] = strconv.Quote(clip(v))
	}
	return clipList(shown)
}

// clipList bounds what a message repeats of a list.
func clipList(words []string) string {
	const most = 8
	if len(words) > most {
		return fmt.Sprintf("%s or one of %d more", strings.Join(words[:most], ", "), len(words)-most)
	}
	return strings.Join(words, " or ")
}
