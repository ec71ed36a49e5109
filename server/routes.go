package server

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// probes are the routes that are asked several times a second.
var probes = map[string]bool{
	"/health": true, "/healthz/live": true, "/readyz": true, "/metrics": true, "/version": true, "/v1/loads": true,
}

// routes lays out all that the server answers. Probes, /version and /metrics
// are open, as routers and Prometheus expect; everything else wants a key where
// keys are set.
func (s *Server) routes() http.Handler {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.HandleMethodNotAllowed = true
	r.Use(s.observe)
	r.NoRoute(s.noRoute)
	r.NoMethod(s.noMethod)

	r.GET("/health", s.handle(s.health))
	r.HEAD("/health", s.handle(s.health))
	r.GET("/healthz/live", s.live)
	r.GET("/readyz", s.handle(s.health))
	r.GET("/version", s.version)
	r.GET("/metrics", s.metricsPage)

	api := r.Group("/", s.authenticate)
	api.GET("/v1/models", s.listModels)
	api.GET("/v1/models/*id", s.handle(s.getModel))
	api.GET("/v1/loads", s.loads)
	api.GET("/debug/steps", s.handle(s.showProfile))
	api.POST("/flush_cache", s.handle(s.flushCache))
	api.POST("/tokenize", s.handle(s.tokenize))
	api.POST("/detokenize", s.handle(s.detokenize))
	api.POST("/v1/responses/input_tokens", s.handle(s.inputTokens))
	api.POST("/v1/responses/render", s.handle(s.renderPrompt))
	api.POST("/v1/chat/completions/render", s.handle(s.renderChat))

	api.POST("/v1/responses", s.handle(s.createResponse))
	api.POST("/v1/responses/compact", s.handle(s.compact))
	api.GET("/v1/responses/:id", s.handle(s.getResponse))
	api.GET("/v1/responses/:id/input_items", s.handle(s.listInputItems))
	api.DELETE("/v1/responses/:id", s.handle(s.deleteResponse))
	api.POST("/v1/responses/:id/cancel", s.handle(s.cancelResponse))
	api.GET("/v1/responses", s.handle(s.openSocket))
	api.POST("/v1/chat/completions", s.handle(s.createChat))
	api.POST("/v1/completions", s.handle(s.createText))
	return r
}

// noRoute says where to look, since a forgotten /v1 is the usual mistake.
func (s *Server) noRoute(c *gin.Context) {
	path := c.Request.URL.Path
	e := notFound("", "unknown_url", "there is no %s %s on this server", c.Request.Method, clip(path))
	if !strings.HasPrefix(path, "/v1") {
		for _, known := range []string{"/responses", "/chat/completions", "/completions", "/models"} {
			if path == known || strings.HasPrefix(path, known+"/") {
				e.Message += "; it is at /v1" + clip(path)
			}
		}
	}
	s.refuse(c, e)
}

func (s *Server) noMethod(c *gin.Context) {
	s.refuse(c, methodNotAllowed(c.Request, ""))
}

func methodNotAllowed(r *http.Request, hint string) *requestError {
	return &requestError{
		Status: http.StatusMethodNotAllowed, Type: typeInvalid, Code: "method_not_allowed",
		Message: r.Method + " is not allowed on " + clip(r.URL.Path) + hint,
	}
}

// ready returns the model, or refuses the request with the reason why there is
// none to be had.
func (s *Server) ready() (*Model, *requestError) {
	if s.gate.isClosed() {
		return nil, errDraining()
	}
	m := s.model.Load()
	if m == nil {
		return nil, unavailable(codeLoading, "the model is still loading", retryLoading)
	}
	return m, nil
}
