package toolcall

import (
	"errors"
	"strings"
)

// Choose is ForTemplate for a template that can be rendered. Where no family is
// known by the template's marks, or the row of the one that is does not read the
// calls that the template writes, they are read off these; and so is, for every
// family, how thoughts end.
func Choose(src string, render Renderer) (Format, string) {
	f, why := ForTemplate(src)
	but := "no known marker in the template"
	known := match(src) != nil
	if known {
		but = why + ", though not as that family does"
	}
	if strings.Contains(src, "tools") && (!known || f.misreads(render)) {
		if probed, seen, err := Probe(render); err == nil {
			if probed.Reasoning == nil {
				probed.Reasoning = spansIn(src, think)
			}
			return probed, but + "; read off what it renders: " + seen
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

// misreads says that a template writes calls that the format does not read.
// Samples are no answers of messages, so they say nothing of formats with these.
func (f *Format) misreads(render Renderer) bool {
	err := Reads(render, f)
	return f.Messages == nil && err != nil && !errors.Is(err, errNoCall)
}
