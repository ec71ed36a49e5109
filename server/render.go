package server

import (
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
	v, err := jsonvalue.Parse(body, maxDepth)
	if err != nil {
		return Rendering{}, err
	}
	req, refused := decodeCreate(contracts[0], v, m.Defaults, recall{}, nil)
	if refused != nil {
		return Rendering{}, refused
	}
	j, conversation, refused := m.draft(&req.task)
	if refused != nil {
		return Rendering{}, refused
	}
	p, refused := m.render(conversation, j.opener(m))
	if refused != nil {
		return Rendering{}, refused
	}
	return Rendering{Prompt: p.text, Tokens: p.tokens, Grammar: j.params.Grammar}, nil
}
