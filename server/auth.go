package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// keyring holds the digests of the keys that may call the API. Digests have one
// length, so that a comparison takes the same time for every key.
type keyring [][sha256.Size]byte

func newKeyring(keys []string) keyring {
	var ring keyring
	for _, k := range keys {
		if k != "" {
			ring = append(ring, sha256.Sum256([]byte(k)))
		}
	}
	return ring
}

// has compares with every key, also after one has matched.
func (r keyring) has(key string) bool {
	digest := sha256.Sum256([]byte(key))
	found := 0
	for i := range r {
		found |= subtle.ConstantTimeCompare(digest[:], r[i][:])
	}
	return found == 1
}

// authenticate lets a request pass that carries a key, and everyone where no
// keys are set. Probes, /version and /metrics are registered without it.
func (s *Server) authenticate(c *gin.Context) {
	if len(s.keys) == 0 {
		return
	}
	key, ok := bearer(c.Request)
	if ok && s.keys.has(key) {
		exchangeOf(c).owner = ownerOf(key)
		return
	}
	message := "the API key is not valid"
	if !ok {
		message = "an API key is needed: send it as Authorization: Bearer KEY"
	}
	s.refuse(c, &requestError{Status: http.StatusUnauthorized, Type: typeAuth, Code: "invalid_api_key", Message: message})
}

func bearer(r *http.Request) (string, bool) {
	scheme, key, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return "", false
	}
	key = strings.TrimSpace(key)
	return key, key != ""
}

// ownerOf names the holder of a key without giving the key away.
func ownerOf(key string) string {
	digest := sha256.Sum256([]byte(key))
	return hex.EncodeToString(digest[:8])
}
