package toolcall

import (
	"errors"
	"slices"
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
	p := &prober{render: render}
	thinks := len(f.Reasoning) > 0 && f.ThoughtsEnd == ""
	if thinks || len(f.Blocks) > 1 {
		_ = p.ask() // without calls there are still the thoughts of answers
	}
	f.asWritten(string(p.one))
	if thinks {
		if spans, end := p.thoughts(); len(spans) > 0 && spans[0].End == f.Reasoning[0].End {
			f.ThoughtsEnd = end
		}
	}
	return f, why
}

// asWritten puts that block first that a call of the template's is written with:
// grammars force the first.
func (f *Format) asWritten(call string) {
	written, at := 0, len(call)
	for i := range f.Blocks {
		mark := f.Blocks[i].first()
		j := strings.Index(call, mark)
		if mark != "" && j >= 0 && (j < at || j == at && len(mark) > len(f.Blocks[written].first())) {
			written, at = i, j
		}
	}
	if written > 0 {
		others := slices.Delete(slices.Clone(f.Blocks), written, written+1)
		f.Blocks = slices.Insert(others, 0, f.Blocks[written])
	}
}

// misreads says that a template writes calls that the format does not read.
// Samples are no answers of messages, so they say nothing of formats with these.
func (f *Format) misreads(render Renderer) bool {
	err := Reads(render, f)
	return f.Messages == nil && err != nil && !errors.Is(err, errNoCall)
}
