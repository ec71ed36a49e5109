package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

// listModels is GET /v1/models: OpenAI's list in data, and the same models in
// the form that Codex looks for in models.
func (s *Server) listModels(c *gin.Context) {
	body := []byte(`{"object":"list","data":[`)
	codex := []byte(`],"models":[`)
	if m := s.model.Load(); m != nil && m.allowedTo(exchangeOf(c).key) {
		body = m.appendEntry(body, m.ID)
		codex = m.appendCodex(codex)
		for _, alias := range m.Aliases {
			body = m.appendEntry(append(body, ','), alias)
		}
	}
	body = append(append(body, codex...), "]}\n"...)
	writeBody(c.Writer, c.Request, http.StatusOK, "application/json", body)
}

// getModel is GET /v1/models/{id}; ids may hold slashes.
func (s *Server) getModel(c *gin.Context) *requestError {
	id := strings.TrimPrefix(c.Param("id"), "/")
	m := s.model.Load()
	if id == "" {
		s.listModels(c)
		return nil
	}
	if s.find(m, id) == nil || !m.allowedTo(exchangeOf(c).key) {
		return s.unknownModel(id)
	}
	writeBody(c.Writer, c.Request, http.StatusOK, "application/json", append(m.appendEntry(nil, id), '\n'))
	return nil
}

func (s *Server) unknownModel(id string) *requestError {
	e := notFound("model", codeModelNotFound, "the model %q does not exist on this node", clip(id))
	if m := s.model.Load(); m != nil {
		e.Message += ", which has " + m.ID
	}
	return e
}

// appendEntry writes one model in OpenAI's form with what routers and clients
// read beyond it.
func (m *Model) appendEntry(dst []byte, id string) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendString(dst, id)
	dst = append(dst, `,"object":"model","created":`...)
	dst = appendInt(dst, m.Created.Unix())
	dst = append(dst, `,"owned_by":"quern","root":`...)
	dst = appendString(dst, m.ID)
	dst = append(dst, `,"parent":null,"max_model_len":`...)
	dst = appendInt(dst, m.ContextLength)
	dst = append(dst, `,"context_length":`...)
	dst = appendInt(dst, m.ContextLength)
	dst = m.appendCapabilities(append(dst, ','))
	dst = append(dst, `,"tool_format":{"name":`...)
	dst = appendString(dst, m.Format.Name)
	dst = append(dst, `,"reason":`...)
	dst = append(appendString(dst, m.FormatReason), '}')
	return append(m.appendFacts(dst), '}')
}

func (m *Model) appendCapabilities(dst []byte) []byte {
	dst = append(dst, `"modalities":{"input":["text"],"output":["text"]},"capabilities":{"responses":true,"chat_completions":true,"completions":true,"streaming":true,"tools":true,"parallel_tool_calls":true,"structured_outputs":true,"logprobs":true,"vision":false,"reasoning":`...)
	return append(appendBool(dst, m.Template.Caps().Thinking || len(m.Format.Reasoning) > 0), '}')
}

func (m *Model) appendFacts(dst []byte) []byte {
	f := m.Info
	dst = append(dst, `,"meta":{"architecture":`...)
	dst = appendString(dst, f.Architecture)
	dst = append(dst, `,"quantization":`...)
	dst = appendString(dst, f.Quantization)
	dst = append(dst, `,"n_params":`...)
	dst = appendInt(dst, f.Parameters)
	dst = append(dst, `,"size":`...)
	dst = appendInt(dst, f.SizeBytes)
	dst = append(dst, `,"n_ctx":`...)
	dst = appendInt(dst, m.ContextLength)
	dst = append(dst, `,"n_ctx_train":`...)
	dst = appendInt(dst, f.ContextTrain)
	dst = append(dst, `,"kv_type":`...)
	dst = appendString(dst, f.KVType)
	dst = append(dst, `,"parallel":`...)
	return append(appendInt(dst, f.Parallel), '}')
}

// appendCodex writes a model as Codex describes its own: neutral values, so that
// Codex keeps its instructions and only learns the window.
func (m *Model) appendCodex(dst []byte) []byte {
	dst = append(dst, `{"slug":`...)
	dst = appendString(dst, m.ID)
	dst = append(dst, `,"display_name":`...)
	dst = appendString(dst, m.ID)
	dst = append(dst, `,"description":null,"context_window":`...)
	dst = appendInt(dst, m.ContextLength)
	return append(dst, `,"default_reasoning_level":null,"supported_reasoning_levels":[],"shell_type":"default","visibility":"list",`+
		`"minimal_client_version":[0,1,0],"supported_in_api":true,"priority":0,"upgrade":null,"base_instructions":null,`+
		`"supports_reasoning_summaries":false,"support_verbosity":false,"default_verbosity":null,"apply_patch_tool_type":null,`+
		`"truncation_policy":{"mode":"bytes","limit":10000},"supports_parallel_tool_calls":true,"reasoning_summary_format":"none",`+
		`"experimental_supported_tools":[]}`...)
}

// loads is GET /v1/loads, the load of the node as routers of the SGLang family
// read it.
func (s *Server) loads(c *gin.Context) {
	body := append([]byte(`{"timestamp":`), appendString(nil, time.Now().UTC().Format(time.RFC3339Nano))...)
	body = append(body, `,"dp_rank_count":1,"loads":[{"dp_rank":0`...)
	running, waiting, used, total, slots := 0, 0, 0, 0, 0
	hitRate := 0.0
	if m := s.model.Load(); m != nil {
		st := m.Engine.Stats()
		running, waiting, used, total, slots = st.Running, st.Waiting, st.CellsUsed-st.CellsIdle, st.CellsTotal, m.Info.Parallel
		if st.PrefixQueries > 0 {
			hitRate = float64(st.PrefixHits) / float64(st.PrefixQueries)
		}
	}
	for _, f := range []struct {
		name  string
		value float64
	}{
		{"num_running_reqs", float64(running)},
		{"num_waiting_reqs", float64(waiting)},
		{"num_waiting_uncached_tokens", 0},
		{"num_total_reqs", float64(running + waiting)},
		{"num_used_tokens", float64(used)},
		{"max_total_num_tokens", float64(total)},
		{"token_usage", share(used, total)},
		{"gen_throughput", 0},
		{"cache_hit_rate", hitRate},
		{"utilization", share(running, slots)},
		{"max_running_requests", float64(slots)},
	} {
		body = append(body, `,"`+f.name+`":`...)
		body = appendFloat(body, f.value)
	}
	writeBody(c.Writer, c.Request, http.StatusOK, "application/json", append(body, "}]}\n"...))
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
