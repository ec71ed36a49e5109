package template

import (
	"strings"

	"quern/models/template/dialect"
	"quern/tokenizer"
)

// RaiseError says that the template refused the conversation by
// raise_exception; its message is the template's.
type RaiseError = dialect.RaiseError

// Error is any other fault of a template, with its line.
type Error = dialect.Error

// Prompt is a rendered conversation. Literal segments hold the spelling of a
// special token that a client wrote.
type Prompt struct {
	Segments []tokenizer.Segment
}

// Text is the whole prompt as text.
func (p Prompt) Text() string {
	if len(p.Segments) == 1 {
		return p.Segments[0].Text
	}
	var b strings.Builder
	for _, s := range p.Segments {
		b.WriteString(s.Text)
	}
	return b.String()
}
