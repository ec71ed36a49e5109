package server

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// authenticate lets a request pass that carries a key, and everyone where no
// keys are set. Probes, /version and /metrics are registered without it.
func (s *Server) authenticate(c *gin.Context) {
	ex := exchangeOf(c)
	if s.keys.Public() {
		s.tellLimits(ex)
		return
	}
	key, ok := bearer(c.Request)
	if holder := s.keys.Find(key); ok && holder != nil {
		ex.key, ex.owner = holder, holder.Owner()
		s.tellLimits(ex)
		return
	}
	message := "the API key is not valid"
	if !ok {
		message = "an API key is needed: send it as Authorization: Bearer KEY"
	}
	s.refuse(c, errBadKey(message))
}

func errBadKey(message string) *requestError {
	return &requestError{Status: http.StatusUnauthorized, Type: typeAuth, Code: "invalid_api_key", Message: message}
}

func bearer(r *http.Request) (string, bool) {
	scheme, key, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return "", false
	}
	key = strings.TrimSpace(key)
	return key, key != ""
}
