package server

import (
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/gin-gonic/gin"

	"quern/server/store"
)

// getResponse is GET /v1/responses/{id}: a stored response, or one that is being
// made in the background. With stream=true it is that one's events, past
// starting_after.
func (s *Server) getResponse(c *gin.Context) *requestError {
	id, ex := c.Param("id"), exchangeOf(c)
	streamed, refused := s.wantsStream(c)
	if refused != nil {
		return refused
	}
	if streamed {
		return s.resume(c, id, ex)
	}
	if j := s.jobs.find(ex.owner, id); j != nil {
		writeJSON(c, j.resource())
		return nil
	}
	r, refused := s.fetch(ex.owner, id)
	if refused != nil {
		return refused
	}
	writeJSON(c, r.Response)
	return nil
}

// wantsStream reads stream from the query or, since openai-go writes it there,
// from the body of a GET, without a content type.
func (s *Server) wantsStream(c *gin.Context) (bool, *requestError) {
	if text := c.Query("stream"); text != "" {
		wanted, err := strconv.ParseBool(text)
		if err != nil {
			return false, invalid("stream", codeInvalidType, "stream must be a boolean, got %q", clip(text))
		}
		return wanted, nil
	}
	if c.Request.ContentLength == 0 {
		return false, nil
	}
	if c.GetHeader("Content-Type") == "" {
		c.Request.Header.Set("Content-Type", "application/json")
	}
	body, refused := s.readBody(c)
	if refused != nil {
		return false, refused
	}
	f := &fields{}
	return f.flag(body.Field("stream"), false), f.err
}

// deleteResponse is DELETE /v1/responses/{id}. A response that is being made is
// cancelled first.
func (s *Server) deleteResponse(c *gin.Context) *requestError {
	id, ex := c.Param("id"), exchangeOf(c)
	if j := s.jobs.find(ex.owner, id); j != nil {
		j.giveUp(c.Request.Context())
	}
	if s.cfg.Store == nil {
		return s.noResponse(id)
	}
	switch err := s.cfg.Store.Delete(ex.owner, id); {
	case errors.Is(err, store.ErrNotFound):
		return s.noResponse(id)
	case err != nil:
		s.log.Error("a response could not be deleted", "response_id", id, "error", err)
		return internal("the response could not be deleted")
	}
	body := append(appendString([]byte(`{"id":`), id), `,"object":"response","deleted":true}`...)
	writeJSON(c, body)
	return nil
}

// listInputItems is GET /v1/responses/{id}/input_items: what the request itself
// brought, the latest first unless order=asc.
func (s *Server) listInputItems(c *gin.Context) *requestError {
	limit, refused := countQuery(c, "limit", 20, 1, 100)
	if refused != nil {
		return refused
	}
	order := c.DefaultQuery("order", "desc")
	if order != "asc" && order != "desc" {
		return invalid("order", codeInvalidValue, `order must be "asc" or "desc", got %q`, clip(order))
	}
	r, refused := s.fetch(exchangeOf(c).owner, c.Param("id"))
	if refused != nil {
		return refused
	}
	p, ok := pageOf(r.Input, order == "asc", c.Query("after"), limit)
	if !ok {
		return invalid("after", codeInvalidValue, "after %q is no input item of this response", clip(c.Query("after")))
	}
	writeJSON(c, p.append(nil))
	return nil
}

// fetch returns a stored response of this owner.
func (s *Server) fetch(owner, id string) (store.Record, *requestError) {
	if s.cfg.Store == nil {
		return store.Record{}, s.noResponse(id)
	}
	r, err := s.cfg.Store.Get(owner, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return r, s.noResponse(id)
	case err != nil:
		s.log.Error("a stored response can't be fetched", "response_id", id, "error", err)
		return r, internal("the response can't be fetched")
	}
	return r, nil
}

func (s *Server) noResponse(id string) *requestError {
	if s.cfg.Store == nil {
		return notFound("response_id", "response_not_found", "response %q is not found: this node stores no responses (--store)", clip(id))
	}
	return notFound("response_id", "response_not_found",
		"response %q is not found: it was not stored, is not this key's, has been deleted, or has expired", clip(id))
}

// countQuery reads a number from the query of a URL.
func countQuery(c *gin.Context, name string, absent, low, high int) (int, *requestError) {
	text := c.Query(name)
	if text == "" {
		return absent, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, invalid(name, codeInvalidValue, "%s must be %s, got %q", name, countRange(low, high), clip(text))
	}
	return n, nil
}

func writeJSON(c *gin.Context, body []byte) {
	writeBody(c.Writer, c.Request, http.StatusOK, "application/json", append(slices.Clip(body), '\n'))
}
