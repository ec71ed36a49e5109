package toolcall

import (
	"fmt"
	"strings"
)

// messages writes the grammar of an answer that consists of messages: thoughts,
// where there may be any, then what is demanded.
func (g *grammarWriter) messages(canCall bool) (string, error) {
	var body string
	var err error
	switch {
	case g.o.Require && canCall:
		body, err = g.callMessages(false)
		if g.o.Thinking == NoThoughts {
			g.opening = g.f.Messages.Call.Start
		}
	case g.o.Answer != nil:
		body, err = g.answerMessage(canCall)
	default:
		body, err = g.anyMessages()
	}
	if err != nil || g.o.Thinking == NoThoughts || len(g.f.Reasoning) == 0 {
		return strings.TrimPrefix(body, literal(g.opening)+" "), err
	}
	span := g.f.Reasoning[0]
	g.add("answer", body)
	g.add("thought-end", sequence(literal(g.f.Messages.Next), "answer"))
	g.rules.AddRules(freeText("thought", false, pattern{span.End, "thought-end"})...)
	if g.o.Thinking == InThoughts {
		return "thought", nil
	}
	return literal(span.Start) + " thought | answer", nil
}

// between is what ends a message and begins the next.
func (m *Messages) between() string {
	if len(m.Ends) == 0 {
		return m.Next
	}
	return m.Ends[0] + m.Next
}

// callMessages is one message to a tool, or several.
func (g *grammarWriter) callMessages(onlyStrict bool) (string, error) {
	call, err := g.callMessage(onlyStrict)
	if err != nil {
		return "", err
	}
	if g.f.Messages.OneCall {
		return call, nil
	}
	return sequence(call, g.furtherCalls(literal(g.f.Messages.between()), call)), nil
}

// callMessage is a message to any tool. Its header comes first, in one piece, so
// that it can stand in the prompt.
func (g *grammarWriter) callMessage(onlyStrict bool) (string, error) {
	header := g.f.Messages.Call
	alts := make([]string, len(g.tools))
	for i := range g.tools {
		args, err := g.arguments(i, onlyStrict && !isHeld(&g.tools[i]))
		if err != nil {
			return "", err
		}
		alts[i] = g.add(fmt.Sprintf("tool-%d", i), sequence(literal(g.tools[i].Name+header.End), g.payload(g.tools[i].Name, args)))
	}
	return sequence(literal(header.Start), g.add("call", "( "+strings.Join(alts, " | ")+" )")), nil
}

// payload is the text of a message to a tool.
func (g *grammarWriter) payload(name, args string) string {
	b := g.b
	if b.Style == ArgsAfterName {
		return args
	}
	before, after := b.around()
	return sequence(literal(before), b.callLead(), b.callOf(name, args), literal(after))
}

// answerMessage is JSON for the user, or calls where there are tools.
func (g *grammarWriter) answerMessage(canCall bool) (string, error) {
	root, err := g.answerSchema()
	if err != nil {
		return "", err
	}
	said := sequence(literal(g.f.Messages.Say), root)
	if !canCall {
		return said, nil
	}
	calls, err := g.callMessages(true)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("( %s | %s )", said, calls), nil
}

// anyMessages are texts and calls in any order, the calls being right.
func (g *grammarWriter) anyMessages() (string, error) {
	m := g.f.Messages
	call, err := g.callMessage(true)
	if err != nil {
		return "", err
	}
	if !m.OneCall && g.o.MaxCalls != 1 {
		call = sequence(call, "( "+literal(m.between())+" message )?")
	}
	said := make([]string, 0, 3)
	for _, s := range append([]string{m.Say}, m.Preambles...) {
		said = append(said, literal(s)+" text")
	}
	g.add("message", strings.Join(append(said, call), " | "))
	end := m.between()
	if len(m.Ends) > 0 {
		end = m.Ends[0]
	}
	g.add("next", sequence(literal(strings.TrimPrefix(m.between(), end)), "message"))
	g.rules.AddRules(freeText("text", true, pattern{end, "next"})...)
	return "message", nil
}
