package toolcall

import "strings"

// Choose is ForTemplate for a template that can be rendered. Where no family is
// known by the template's marks, they are read off what it writes; and so is, for
// every family, how thoughts end.
func Choose(src string, render Renderer) (Format, string) {
	f, why := ForTemplate(src)
	if match(src) == nil && strings.Contains(src, "tools") {
		if probed, seen, err := Probe(render); err == nil {
			if probed.Reasoning == nil {
				probed.Reasoning = spansIn(src, think)
			}
			return probed, "no known marker in the template; read off what it renders: " + seen
		}
	}
	if len(f.Reasoning) > 0 && f.ThoughtsEnd == "" {
		p := &prober{render: render}
		_ = p.ask() // without calls there are still the thoughts of answers
		if spans, end := p.thoughts(); len(spans) > 0 && spans[0].End == f.Reasoning[0].End {
			f.ThoughtsEnd = end
		}
	}
	return f, why
}
