package server

import (
	"errors"
	"strings"

	"quern/models/schema"
	"quern/models/toolcall"
)

// schemaCacheBytes bounds the compiled schemas that a model keeps: clients send
// the same tools with every turn.
const schemaCacheBytes = 32 << 20

// maxGrammarCalls bounds the calls that a grammar has room for: it spells its
// repetitions out.
const maxGrammarCalls = 16

// constrain compiles what the answer is held to, if anything: a call where one
// is required, the form of the text, the parameters of strict tools. It needs
// the prompt, whose tail says whether the model thinks first.
func (m *Model) constrain(j *job, prompt string) *requestError {
	t := j.task
	o := toolcall.GrammarOptions{
		Require: t.choice.mode == choiceRequired, MaxCalls: min(j.lexer.MaxCalls, maxGrammarCalls),
		Thinking: m.thinking(t, prompt), Framed: m.Format.Framed(prompt), Schemas: m.schemas, Recursion: m.SchemaLevels,
	}
	if t.format.Kind != formatText {
		o.Answer = &toolcall.Answer{Schema: t.format.Schema, Strict: t.format.Strict != nil && *t.format.Strict}
	}
	g, relaxed, err := m.Format.Grammar(j.lexer.Tools, o)
	if err != nil {
		return j.badSchema(err)
	}
	j.params.Grammar, j.opening, j.relaxed = g.GBNF, g.Opening, relaxed
	j.lexer.Constrained, j.lexer.Opening = g.GBNF != "", g.Opening
	j.lexer.Forced = j.lexer.Constrained && o.Require && len(j.lexer.Tools) > 0 && len(m.Format.Blocks) > 0
	return nil
}

// thinking says what the prompt leaves to the model: inside its thoughts, free
// to open them, or past them.
func (m *Model) thinking(t *task, prompt string) toolcall.Thinking {
	off := t.thinking != nil && !*t.thinking
	switch {
	case m.Format.StartsInReasoning(prompt):
		return toolcall.InThoughts
	case len(m.Format.Reasoning) == 0, off, m.thoughtsClosed(prompt):
		return toolcall.NoThoughts
	default:
		return toolcall.MayThink
	}
}

// thoughtsClosed says that the prompt ends with thoughts that are over, as
// templates write them to keep a model from thinking.
func (m *Model) thoughtsClosed(prompt string) bool {
	tail := strings.TrimRight(prompt, " \t\r\n")
	for _, span := range m.Format.Reasoning {
		if span.End != "" && strings.HasSuffix(tail, span.End) {
			return true
		}
	}
	return false
}

// relaxedHeader lists what of the request's schemas the answer is not held to.
const relaxedHeader = "X-Quern-Relaxed"

// tellRelaxed says in the answer's header and in the log where the grammar holds
// less than a schema says.
func (s *Server) tellRelaxed(j *job, ex *exchange) {
	if len(j.relaxed) == 0 {
		return
	}
	list := make([]string, len(j.relaxed))
	for i, d := range j.relaxed {
		path, _ := j.schemaPath(d.Tool)
		list[i] = path + strings.TrimPrefix(d.Path, "$") + ": " + d.Msg
	}
	ex.header.Set(relaxedHeader, headerText(strings.Join(list[:min(len(list), maxIgnored)], "; ")))
	s.log.Debug("schemas are enforced in part", "request_id", ex.requestID, "at", list)
}

// schemaPath is where in the request a schema stands, and what to call it: that
// of a tool that the model is offered, or with -1 that of the answer.
func (j *job) schemaPath(tool int) (path, what string) {
	if tool < 0 {
		return j.task.format.path, "the schema"
	}
	t := j.task.choice.offered(j.task.tools)[tool]
	if t.custom {
		return t.path + ".format", "the format of tool " + t.name
	}
	return t.path + ".parameters", "the parameters of tool " + t.name
}

// badSchema names the place in the request whose schema can't be enforced.
func (j *job) badSchema(err error) *requestError {
	var bad *toolcall.SchemaError
	if !errors.As(err, &bad) {
		return internal("the grammar can't be made: " + err.Error())
	}
	path, what := j.schemaPath(bad.Tool)
	if at, ok := errors.AsType[*schema.Error](err); ok {
		return invalid(path+strings.TrimPrefix(at.Path, "$"), "invalid_json_schema",
			"%s: %s can't be enforced: %s", path+strings.TrimPrefix(at.Path, "$"), what, at.Msg)
	}
	return invalid(path, "invalid_json_schema", "%s: %s can't be enforced: %s", path, what, err)
}
