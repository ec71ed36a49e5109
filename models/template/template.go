package template

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"quern/models/chat"
	"quern/models/template/dialect"
)

// Options is what a template needs to know of its model.
type Options struct {
	Name       string // the model's
	BOS, EOS   string // texts of these tokens, empty where there are none
	Parameters uint64
	// ToolUse is a second template for conversations with tools; some models
	// ship one under that name.
	ToolUse string
	// ChatML says that the vocabulary has <|im_start|>: a model without any
	// template is then asked in ChatML, else in plain labelled text.
	ChatML bool
}

// Template renders conversations for one model.
type Template struct {
	main  *variant
	tools *variant // nil where main does it all
}

// variant is one compiled template and what is known of it.
type variant struct {
	prog   *dialect.Program
	source string
	o      Options
	caps   Caps
	traits traits
	tuning tuning
}

// New compiles a template and finds out what it can do. An empty source means
// that the model has none.
func New(src string, o Options) (*Template, error) {
	if src == "" {
		src = fallback(o.ChatML)
	}
	main, err := newVariant(src, o)
	if err != nil {
		return nil, err
	}
	t := &Template{main: main}
	if o.ToolUse != "" && o.ToolUse != src {
		if t.tools, err = newVariant(o.ToolUse, o); err != nil {
			return nil, fmt.Errorf("tool_use: %w", err)
		}
	}
	return t, nil
}

func newVariant(src string, o Options) (*variant, error) {
	prog, err := dialect.Compile(src)
	if err != nil {
		return nil, err
	}
	v := &variant{prog: prog, source: src, o: o}
	if err := v.probe(); err != nil {
		return nil, fmt.Errorf("the template can't render a user message: %w", err)
	}
	v.tuning = tuningFor(Fingerprint(src), o)
	return v, nil
}

// Fingerprint identifies a template by its source, white space around it left
// out.
func Fingerprint(src string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(src)))
	return hex.EncodeToString(sum[:8])
}

// Caps is what the template can do; with tools, where the model has a second
// template for them.
func (t *Template) Caps() Caps {
	if t.tools != nil {
		return t.tools.caps
	}
	return t.main.caps
}

// Stops are texts that end an answer where the vocabulary has no mark for it: a
// model without any template goes on with the user's next turn by itself.
func (t *Template) Stops() []string {
	if t.main.source == labelledTemplate {
		return []string{"\nUser:"}
	}
	return nil
}

// Source is the template's text: the one for conversations with tools, where
// there are two.
func (t *Template) Source() string {
	if t.tools != nil {
		return t.tools.source
	}
	return t.main.source
}

// Render makes the prompt of a conversation. special tells whether a text
// spells a special token of the vocabulary; nil means that none does. now is
// what a template that asks for the date gets.
//
// It gives a *RaiseError if the template refuses the conversation, an *Error
// if it fails otherwise.
func (t *Template) Render(c chat.Conversation, special func(string) bool, now time.Time) (Prompt, error) {
	v := t.main
	if t.tools != nil && len(c.Tools) > 0 {
		v = t.tools
	}
	r := newRendering(v, &c, special, now)
	p, err := r.prompt(v.caps)
	if err == nil && !r.lost {
		return p, nil
	}
	if err != nil && !refused(err) {
		return p, err
	}
	plain := newRendering(v, &c, special, now)
	q, plainErr := plain.prompt(plainest)
	if plainErr == nil && (err != nil || !plain.lost) {
		return q, nil
	}
	return p, err
}

// Try renders messages as they are, without arranging them for the template and
// without guarding what a client wrote: for finding out what a template does. With
// open it begins an answer behind them.
func (t *Template) Try(messages []chat.Message, tools []chat.Tool, open bool) (string, error) {
	v := t.main
	if t.tools != nil && len(tools) > 0 {
		v = t.tools
	}
	r := newRendering(v, &chat.Conversation{Messages: messages, Tools: tools}, nil, probeTime)
	return r.run(r.turns(), true, open)
}

// refused tells whether another arrangement of the conversation may help.
func refused(err error) bool {
	var raised *RaiseError
	var fault *Error
	return errors.As(err, &raised) || errors.As(err, &fault)
}
