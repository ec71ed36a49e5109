package server

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"quern/server/jsonvalue"
	"quern/tokenizer"
)

// readPrompt reads the body of a create request and makes its prompt, without
// generating.
func (s *Server) readPrompt(c *gin.Context) (*job, *requestError) {
	m, req, refused := s.readCreate(c)
	if refused != nil {
		return nil, refused
	}
	if refused := s.admit(m, exchangeOf(c), req.model, &req.task); refused != nil {
		return nil, refused
	}
	leave, refused := s.aside(c)
	if refused != nil {
		return nil, refused
	}
	defer leave()
	return m.prepare(c.Request.Context(), &req.task)
}

// inputTokens is POST /v1/responses/input_tokens: how long the prompt would be.
func (s *Server) inputTokens(c *gin.Context) *requestError {
	j, refused := s.readPrompt(c)
	if refused != nil {
		return refused
	}
	body := appendInt([]byte(`{"object":"response.input_tokens","input_tokens":`), len(j.tokens))
	writeBody(c.Writer, c.Request, http.StatusOK, "application/json", append(body, '}', '\n'))
	return nil
}

// renderPrompt is POST /v1/responses/render, which routers ask for the tokens
// of a prompt to find the node that has them cached.
func (s *Server) renderPrompt(c *gin.Context) *requestError {
	j, refused := s.readPrompt(c)
	if refused != nil {
		return refused
	}
	writeRendered(c, j)
	return nil
}

// renderChat is the same for chat completions.
func (s *Server) renderChat(c *gin.Context) *requestError {
	m, req, refused := s.readChat(c)
	if refused != nil {
		return chatParams(refused)
	}
	leave, refused := s.aside(c)
	if refused != nil {
		return refused
	}
	defer leave()
	j, refused := m.prepare(c.Request.Context(), &req.task)
	if refused != nil {
		return chatParams(refused)
	}
	writeRendered(c, j)
	return nil
}

func writeRendered(c *gin.Context, j *job) {
	body := appendTokens([]byte(`{"token_ids":`), j.tokens)
	body = append(body, `,"prompt":`...)
	body = append(appendString(body, j.text), '}', '\n')
	writeBody(c.Writer, c.Request, http.StatusOK, "application/json", body)
}

func appendTokens(dst []byte, tokens []tokenizer.Token) []byte {
	dst = append(dst, '[')
	for i, t := range tokens {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendInt(dst, int(t))
	}
	return append(dst, ']')
}

// tokenize is POST /tokenize in vLLM's shape: a prompt, or messages. content is
// what llama-server calls a prompt.
func (s *Server) tokenize(c *gin.Context) *requestError {
	m, body, refused := s.receive(c)
	if refused != nil {
		return refused
	}
	f := &fields{}
	fieldsOf, refused := f.body(body)
	if refused != nil {
		return refused
	}
	leave, refused := s.aside(c)
	if refused != nil {
		return refused
	}
	defer leave()
	withPieces := f.flag(fieldsOf.Get("return_token_strs"), false)
	var tokens []tokenizer.Token
	if !fieldsOf.Get("messages").Empty() {
		req, refused := decodeChat(s.older, m, body)
		if refused == nil {
			refused = s.cfg.Limits.check(&req.task)
		}
		if refused != nil {
			return chatParams(refused)
		}
		j, refused := m.prepare(c.Request.Context(), &req.task)
		if refused != nil {
			return chatParams(refused)
		}
		tokens = j.tokens
	} else {
		tokens = m.tokenizeText(c.Request.Context(), f, body, fieldsOf)
	}
	if f.err != nil {
		return f.err
	}
	out := appendInt([]byte(`{"count":`), len(tokens))
	out = append(out, `,"max_model_len":`...)
	out = appendInt(out, m.ContextLength)
	out = append(out, `,"tokens":`...)
	out = appendTokens(out, tokens)
	out = append(out, `,"token_strs":`...)
	out = m.appendPieces(out, tokens, withPieces)
	writeBody(c.Writer, c.Request, http.StatusOK, "application/json", append(out, '}', '\n'))
	return nil
}

func (m *Model) tokenizeText(ctx context.Context, f *fields, body jsonvalue.Value, fieldsOf jsonvalue.Members) []tokenizer.Token {
	text, special := fieldsOf.Get("prompt"), true
	if text.Empty() && !fieldsOf.Get("content").Empty() {
		text, special = fieldsOf.Get("content"), false
	}
	if text.Empty() {
		f.missing(body, "prompt")
	}
	content := f.text(text)
	o := tokenizer.TextOptions{
		AddSpecial:   f.flag(fieldsOf.Get("add_special"), f.flag(fieldsOf.Get("add_special_tokens"), special)),
		ParseSpecial: f.flag(fieldsOf.Get("parse_special"), true),
	}
	if len(content) > maxTokenize {
		f.fail(invalid(text.Path(), codeTooLarge, "%s has %d bytes, the limit is %d", text.Path(), len(content), maxTokenize))
	}
	if f.err != nil {
		return nil
	}
	leave, err := m.encoders.enter(ctx, len(content))
	if err != nil {
		f.fail(gone(err))
		return nil
	}
	defer leave()
	tokens, err := m.Tokenizer.EncodeText(content, o)
	if err != nil {
		f.fail(internal("the text can't be encoded: " + err.Error()))
	}
	return tokens
}

func (m *Model) appendPieces(dst []byte, tokens []tokenizer.Token, wanted bool) []byte {
	if !wanted {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i, t := range tokens {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, m.Tokenizer.Piece(t))
	}
	return append(dst, ']')
}

// maxTokenize bounds the text of one request to /tokenize, in bytes: it takes a
// second a megabyte at worst, and can't be stopped.
const maxTokenize = 4 << 20

// maxDetokenize bounds the tokens of one request to /detokenize.
const maxDetokenize = 1 << 20

// detokenize is POST /detokenize: tokens back into text, under the names that
// vLLM (prompt) and llama-server (content) give it.
func (s *Server) detokenize(c *gin.Context) *requestError {
	m, body, refused := s.receive(c)
	if refused != nil {
		return refused
	}
	f := &fields{}
	fieldsOf, refused := f.body(body)
	if refused != nil {
		return refused
	}
	leave, refused := s.aside(c)
	if refused != nil {
		return refused
	}
	defer leave()
	list := fieldsOf.Get("tokens")
	if list.Empty() {
		f.missing(body, "tokens")
	}
	tokens := f.tokens(f.array(list, maxDetokenize), m.Tokenizer.Vocab().Size())
	if f.err != nil {
		return f.err
	}
	text := m.Tokenizer.Detokenize(tokens)
	out := appendString([]byte(`{"prompt":`), text)
	out = append(out, `,"content":`...)
	out = appendString(out, text)
	writeBody(c.Writer, c.Request, http.StatusOK, "application/json", append(out, '}', '\n'))
	return nil
}
