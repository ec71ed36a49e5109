package models

import (
	"slices"

	"quern/models/template"
	"quern/models/toolcall"
)

// genericFormat is the row that template's own tools text asks for.
const genericFormat = "hermes"

// FormatOf chooses how a model writes calls by its template, and says why. A
// template that offers no tools is given a text of ours, which asks for calls in
// the generic form.
func FormatOf(t *template.Template) (toolcall.Format, string, error) {
	f, why := toolcall.Choose(t.Source(), t.Try)
	generic, err := toolcall.ByName(genericFormat)
	caps := t.Caps()
	switch {
	case err != nil || f.Messages != nil:
		return f, why, err
	case !caps.Tools:
		generic.Reasoning, generic.ThoughtsEnd = f.Reasoning, f.ThoughtsEnd
		if native, _, err := toolcall.Probe(t.Try); err == nil && !generic.Begins(native.Blocks[0].Start) {
			// The model may write what it was trained on all the same.
			generic.Blocks = append(slices.Clip(generic.Blocks), native.Blocks...)
		}
		return generic, "the template offers no tools, so the prompt asks for this form", nil
	case f.Name == genericFormat:
	case !caps.ToolCalls && !f.Begins(generic.Blocks[0].Start):
		// Earlier calls stand in the prompt in the generic form, which a model may
		// take up.
		f.Blocks = append(slices.Clip(f.Blocks), generic.Blocks...)
	}
	return f, why, nil
}
