package server

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"quern/engine"
	"quern/models/chat"
	"quern/models/toolcall"
	"quern/tokenizer"
)

// job is a task made ready for the engine: a prompt, the parameters of its
// sampler, and how its output is to be read.
type job struct {
	task    *task
	text    string // the prompt as rendered
	tokens  []tokenizer.Token
	params  engine.SamplerParams
	opening string           // of a forced call, the end of the prompt
	format  *toolcall.Format // nil is the model's
	lexer   toolcall.Options
	relaxed []toolcall.Diag // what the grammar does not hold the model to
	stops   []string        // those of the task and of the template
	// thoughts is how many tokens the model may think; negative sets no limit.
	thoughts int
}

// prepare renders, compiles and encodes. It is the part of a request that costs
// CPU outside of the engine, and runs on the goroutine of the request.
func (m *Model) prepare(ctx context.Context, t *task) (*job, *requestError) {
	j, conversation, refused := m.draft(t)
	if refused != nil {
		return nil, refused
	}
	p, refused := m.fit(ctx, t, conversation, j.opener(m))
	if refused != nil {
		return nil, refused
	}
	j.text, j.tokens = p.text, p.tokens
	j.lexer.StartInReasoning = j.opening == "" && m.Format.StartsInReasoning(p.text)
	return j, nil
}

// draft is the part of prepare that needs no prompt.
func (m *Model) draft(t *task) (*job, chat.Conversation, *requestError) {
	thoughts := m.thoughtLimit(t)
	c, refused := t.conversation()
	if refused != nil {
		return nil, c, refused
	}
	c.ThoughtLimit = max(thoughts, 0)
	return &job{
		task: t, params: t.samplerParams(), lexer: m.reading(t, c.Tools), stops: slices.Concat(t.stops, m.Template.Stops()),
		thoughts: thoughts,
	}, c, nil
}

// opener compiles what the answer is held to, once the prompt is rendered.
func (j *job) opener(m *Model) opener {
	return func(text string) (string, *requestError) {
		end := m.unthinking(j.task, text)
		refused := m.constrain(j, text+end)
		return end + j.opening, refused
	}
}

// prompt is a conversation as the model reads it.
type prompt struct {
	text   string
	tokens []tokenizer.Token
	length int // of tokens
}

// opener returns what the assistant's answer begins with for a rendered prompt:
// the end of thoughts that are not wanted, the opening of a forced call, or
// nothing.
type opener func(text string) (string, *requestError)

// render makes the prompt of a conversation.
func (m *Model) render(ctx context.Context, c chat.Conversation, open opener) (prompt, *requestError) {
	rendered, err := m.Template.Render(c, m.Tokenizer.ContainsSpecial, time.Now())
	if err != nil {
		return prompt{}, badConversation(err)
	}
	text := rendered.Text()
	opening, refused := open(text)
	if refused != nil {
		return prompt{}, refused
	}
	if opening != "" {
		rendered.Segments = append(rendered.Segments, tokenizer.Segment{Text: opening})
		text += opening
	}
	tokens, err := m.encode(ctx, rendered.Segments)
	if err != nil {
		return prompt{}, notEncoded(ctx, err)
	}
	return prompt{text: text, tokens: tokens, length: len(tokens)}, nil
}

// notEncoded says why a prompt has no tokens.
func notEncoded(ctx context.Context, err error) *requestError {
	if ctx.Err() != nil {
		return gone(err)
	}
	return internal("the prompt can't be encoded: " + err.Error())
}

// reading says how the lexer has to read the answer, as far as the task decides.
func (m *Model) reading(t *task, tools []chat.Tool) toolcall.Options {
	o := toolcall.Options{
		Tools: tools, Bare: t.choice.mode == choiceAuto, JSON: t.format.Kind != formatText, Lookup: m.Tokenizer.Lookup,
	}
	if o.MaxCalls = t.maxCalls; !t.parallel {
		o.MaxCalls = 1
	}
	return o
}

// samplerParams translates what a request says about sampling.
func (t *task) samplerParams() engine.SamplerParams {
	s := &t.sampling
	p := engine.SamplerParams{
		Temperature: float32(s.Temperature), TopP: float32(s.TopP), MinP: float32(s.MinP), TopK: s.TopK,
		Presence: float32(s.Presence), Frequency: float32(s.Frequency), Repeat: float32(s.Repeat),
		Seed: rand.Uint64(),
	}
	if s.Seed != nil {
		p.Seed = uint64(*s.Seed)
	}
	return p
}

// formatOf is how the answer is written.
func (j *job) formatOf(m *Model) *toolcall.Format {
	if j.format != nil {
		return j.format
	}
	return &m.Format
}

// badSampler is what is wrong with a job whose sampler can't be made: its
// grammar, which is made of what the client sent.
func (j *job) badSampler(err error) *requestError {
	if j.params.Grammar == "" {
		return internal("the sampler can't be made: " + err.Error())
	}
	path := j.task.format.path
	if path == "" {
		path = "tools"
	}
	return invalid(path, codeInvalidValue, "%s can't be enforced: %s", path, err)
}
