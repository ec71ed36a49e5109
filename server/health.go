package server

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// How long a client is told to wait.
const (
	retryLoading  = 5 * time.Second
	retryDraining = 10 * time.Second
	retryQueue    = time.Second
)

func errDraining() *requestError {
	return unavailable(codeDraining, "the node is shutting down and takes no new requests", retryDraining)
}

// health is 200 exactly when a request would be accepted.
func (s *Server) health(c *gin.Context) *requestError {
	m, refused := s.ready()
	if refused != nil {
		return refused
	}
	if !m.Engine.Stats().Healthy {
		return unavailable("engine_failing", "the engine fails step after step", retryDraining)
	}
	c.Data(http.StatusOK, "application/json", []byte(`{"status":"ok"}`+"\n"))
	return nil
}

// live is 200 as long as the process serves HTTP.
func (s *Server) live(c *gin.Context) {
	c.Data(http.StatusOK, "application/json", []byte(`{"status":"live"}`+"\n"))
}

func (s *Server) version(c *gin.Context) {
	body := append(appendString([]byte(`{"version":`), s.cfg.Version), '}', '\n')
	c.Data(http.StatusOK, "application/json", body)
}

// flushCache drops the idle prefixes of the cache.
func (s *Server) flushCache(c *gin.Context) *requestError {
	m, refused := s.ready()
	if refused != nil {
		return refused
	}
	m.Engine.FlushCache()
	c.Data(http.StatusOK, "application/json", []byte(`{"status":"flushed"}`+"\n"))
	return nil
}
