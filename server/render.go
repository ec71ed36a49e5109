package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"quern/models/template"
	"quern/server/jsonvalue"
	"quern/tokenizer"
)

// Rendering is what a model reads of a request, and what its answer is held to.
type Rendering struct {
	Prompt  string
	Tokens  []tokenizer.Token
	Grammar string // "" holds it to nothing
}

// Render makes the prompt of a body of POST /v1/responses as serving does. It
// asks nothing of the engine, so m needs none, and nothing is cut to fit.
func (m *Model) Render(body []byte) (Rendering, error) {
	req, err := m.readBody(body)
	if err != nil {
		return Rendering{}, err
	}
	j, conversation, refused := m.draft(&req.task)
	if refused != nil {
		return Rendering{}, refused
	}
	p, refused := m.render(context.Background(), conversation, j.opener(m))
	if refused != nil {
		return Rendering{}, refused
	}
	return Rendering{Prompt: p.text, Tokens: p.tokens, Grammar: j.params.Grammar}, nil
}

// RenderText makes the text of the prompt alone, for which m needs no more than
// a template. The opening of a forced call is not in it.
func (m *Model) RenderText(body []byte) (string, error) {
	req, err := m.readBody(body)
	if err != nil {
		return "", err
	}
	thoughts := m.thoughtLimit(&req.task)
	c, refused := req.conversation()
	if refused != nil {
		return "", refused
	}
	c.ThoughtLimit = max(thoughts, 0)
	rendered, err := m.Template.Render(c, func(string) bool { return false }, time.Now())
	if err != nil {
		return "", badConversation(err)
	}
	text := rendered.Text()
	return text + m.unthinking(&req.task, text), nil
}

func (m *Model) readBody(body []byte) (*createRequest, error) {
	v, err := jsonvalue.Parse(body, maxDepth)
	if err != nil {
		return nil, err
	}
	req, refused := decodeCreate(contracts[0], m, v, recall{}, nil)
	if refused != nil {
		return nil, refused
	}
	return req, nil
}

// badConversation says why a template doesn't take a conversation.
func badConversation(err error) *requestError {
	if raised, ok := errors.AsType[*template.RaiseError](err); ok {
		return invalid("input", codeInvalidValue, "the chat template of the model refuses this conversation: %s", raised.Message)
	}
	return invalid("input", codeInvalidValue, "the conversation can't be rendered by the chat template of the model: %s", err)
}

// StatusOf is the HTTP status that serving answers an error of Render with.
func StatusOf(err error) int {
	if refused, ok := errors.AsType[*requestError](err); ok {
		return refused.Status
	}
	return http.StatusBadRequest
}
