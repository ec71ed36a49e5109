package template

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ardanlabs/jinja"

	"quern/models/chat"
	"quern/models/template/dialect"
)

// switchTable lists the variables by which templates turn thinking on and off.
var switchTable = []struct {
	name    string
	on, off dialect.Value // undefined: left unset
}{
	{"enable_thinking", jinja.NewBool(true), jinja.NewBool(false)},
	{"thinking", jinja.NewBool(true), jinja.NewBool(false)},
	{"thinking_mode", jinja.NewString("enabled"), jinja.NewString("disabled")},
	{"thinking_option", jinja.NewString("on"), jinja.NewString("off")},
	{budgetVar, jinja.Undefined(), jinja.NewInt(0)},
}

// budgetVar is by which Seed-OSS tells the model how long it may think.
const budgetVar = "thinking_budget"

// effortVariables are the variables for the reasoning effort.
var effortVariables = []string{"reasoning_effort", "thinking_effort"}

// levels that templates know, weakest first. The middle three are common
// property; the others count only where a template names them.
var levels = []string{"none", "no_think", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"}

var commonLevels = []string{"low", "medium", "high"}

// setThinking sets the switches and efforts that the conversation asks for.
func (v *variant) setThinking(vars map[string]dialect.Value, c *chat.Conversation) {
	if c.ThoughtLimit > 0 && slices.Contains(v.traits.switches, budgetVar) {
		vars[budgetVar] = jinja.NewInt(int64(c.ThoughtLimit))
	}
	if c.Thinking == nil && c.Effort == "" {
		if v.traits.onByDefault != "" {
			vars[v.traits.onByDefault] = jinja.NewBool(true)
		}
		return
	}
	on := c.Effort != "none"
	if c.Thinking != nil {
		on = *c.Thinking
	}
	for _, s := range switchTable {
		value := s.off
		if on {
			value = s.on
		}
		if slices.Contains(v.traits.switches, s.name) && !value.IsUndefined() {
			vars[s.name] = value
		}
	}
	level := c.Effort
	if !on {
		level = "none"
	}
	if level == "" {
		return
	}
	for _, e := range v.traits.efforts {
		vars[e.variable] = jinja.NewString(e.nearest(level))
	}
}

// nearest is the level that the template knows and that is closest to the one
// asked for, the weaker of two. An unknown word is passed on.
func (e effort) nearest(level string) string {
	want := slices.Index(levels, level)
	if want < 0 || len(e.levels) == 0 {
		return level
	}
	best, distance := level, len(levels)
	for _, l := range e.levels {
		d := slices.Index(levels, l) - want
		if d = max(d, -d); d < distance {
			best, distance = l, d
		}
	}
	return best
}

// closesUnasked tells a template that ends the thoughts it has opened unless a
// switch is true, and does not say what holds where nobody sets it: its author
// counts on a caller who does, and the model is one that thinks.
func (v *variant) closesUnasked(name, on, off string) bool {
	saysSo := regexp.MustCompile(regexp.QuoteMeta(name) + `\s*(is\b|\|\s*default)`).MatchString(v.source)
	return len(off) > len(on) && strings.HasPrefix(off, on) && !saysSo
}

// findSwitches tries which variables change the prompt.
func (v *variant) findSwitches() {
	with := func(name string, value dialect.Value) (string, bool) {
		text, err := v.tryWith([]turn{{role: user, content: wordUser}}, name, value)
		return text, err == nil
	}
	for _, s := range switchTable {
		if !v.prog.Reads(s.name) {
			continue
		}
		on, okOn := with(s.name, s.on)
		off, okOff := with(s.name, s.off)
		if okOn && okOff && on != off {
			v.traits.switches = append(v.traits.switches, s.name)
		}
		if unset, ok := with("", jinja.Undefined()); ok && unset == off && v.closesUnasked(s.name, on, off) {
			v.traits.onByDefault = s.name
		}
	}
	for _, name := range effortVariables {
		if !v.prog.Reads(name) {
			continue
		}
		e := effort{variable: name}
		for _, l := range levels {
			if !v.mentions(l) && !slices.Contains(commonLevels, l) {
				continue
			}
			if _, ok := with(name, jinja.NewString(l)); ok {
				e.levels = append(e.levels, l)
			}
		}
		if len(e.levels) > 0 {
			v.traits.efforts = append(v.traits.efforts, e)
		}
	}
	v.caps.Thinking = len(v.traits.switches)+len(v.traits.efforts) > 0
}
