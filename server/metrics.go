package server

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"quern/engine"
	"quern/server/keys"
	"quern/server/store"
)

// pageLife is how long a rendered page of metrics is given out again. Routers
// scrape up to 20 times a second.
const pageLife = 50 * time.Millisecond

// metrics counts what only the server sees; the rest comes from the engine's
// statistics. Names are vLLM's, which routers read by default.
type metrics struct {
	ttft, interToken, endToEnd, queue, prefill, decode *histogram
	finished                                           [len(finishReasons)]atomic.Uint64

	mu       sync.Mutex
	page     []byte
	rendered time.Time
}

// finishReasons are the values of finished_reason.
var finishReasons = [...]string{"stop", "length", "abort", "error"}

func newMetrics() *metrics {
	short := []float64{.001, .0025, .005, .0075, .01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5}
	long := []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640}
	return &metrics{
		ttft: newHistogram(long...), interToken: newHistogram(short...), endToEnd: newHistogram(long...),
		queue: newHistogram(long...), prefill: newHistogram(long...), decode: newHistogram(long...),
	}
}

// ended counts a generation that is over.
func (m *metrics) ended(ex *exchange, r engine.Result, now time.Time) {
	for i, name := range finishReasons {
		if name == ex.reason {
			m.finished[i].Add(1)
		}
	}
	m.endToEnd.observe(now.Sub(ex.started))
	m.queue.observe(r.Queue)
	if !ex.firstToken.IsZero() {
		m.prefill.observe(r.Prefill)
		m.decode.observe(ex.lastToken.Sub(ex.firstToken))
	}
}

func (s *Server) metricsPage(c *gin.Context) {
	var holders []*keys.Holder
	if s.cfg.MetricsByKey {
		holders = s.keys.Named()
	}
	c.Data(http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", s.metrics.render(s.model.Load(), holders, s.cfg.Store))
}

// render returns the page; it is not changed afterwards.
func (m *metrics) render(model *Model, holders []*keys.Holder, responses *store.Store) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); m.page == nil || now.Sub(m.rendered) > pageLife {
		m.page, m.rendered = m.build(model, holders, responses, now), now
	}
	return m.page
}

// build spells out every family, also those that are zero: routers log an error
// for each one that is missing.
func (m *metrics) build(model *Model, holders []*keys.Holder, responses *store.Store, now time.Time) []byte {
	var stats engine.Stats
	name, block := "", 1
	if model != nil {
		stats, name, block = model.Engine.Stats(), model.ID, max(1, model.Info.KVBlockTokens)
	}
	p := &page{label: `model_name=` + strconv.Quote(name)}
	used := 0.0
	if stats.CellsTotal > 0 {
		used = float64(stats.CellsUsed-stats.CellsIdle) / float64(stats.CellsTotal)
	}
	p.gauge("vllm:num_requests_running", "Requests that generate.", float64(stats.Running))
	p.gauge("vllm:num_requests_waiting", "Requests in the queue.", float64(stats.Waiting))
	p.gauge("vllm:kv_cache_usage_perc", "Share of the KV cells that running requests hold, 0 to 1.", used)
	p.gauge("vllm:gpu_cache_usage_perc", "The same, under its older name.", used)
	p.head("vllm:cache_config_info", "gauge", "Granule of the prefix cache and the number of granules.")
	p.line("vllm:cache_config_info", `,block_size="`+strconv.Itoa(block)+`",num_gpu_blocks="`+strconv.Itoa(stats.CellsTotal/block)+`"`, 1)
	p.head("vllm:lora_requests_info", "gauge", "Adapters in use: none.")
	p.line("vllm:lora_requests_info", `,max_lora="0",running_lora_adapters="",waiting_lora_adapters=""`, float64(now.Unix()))

	p.counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.", stats.PrefixQueries)
	p.counter("vllm:prefix_cache_hits_total", "Prompt tokens found there.", stats.PrefixHits)
	p.counter("vllm:gpu_prefix_cache_queries_total", "The same as prefix_cache_queries_total.", stats.PrefixQueries)
	p.counter("vllm:gpu_prefix_cache_hits_total", "The same as prefix_cache_hits_total.", stats.PrefixHits)
	p.tiers(&stats)
	p.counter("vllm:prompt_tokens_total", "Prompt tokens of requests that started.", stats.PromptTokens)
	p.counter("vllm:generation_tokens_total", "Tokens sampled.", stats.GeneratedTokens)
	p.counter("vllm:num_preemptions_total", "Requests put back into the queue for want of cells.", stats.Preemptions)
	p.counter("vllm:spec_decode_num_draft_tokens_total", "Tokens guessed ahead.", stats.DraftedTokens)
	p.counter("vllm:spec_decode_num_accepted_tokens_total", "Guessed tokens that were right.", stats.AcceptedTokens)
	p.head("vllm:request_success_total", "counter", "Generations by how they ended.")
	for i, reason := range finishReasons {
		p.line("vllm:request_success_total", `,finished_reason="`+reason+`"`, float64(m.finished[i].Load()))
	}
	p.counter("quern:requests_refused_total", "Requests refused because the queue was full or the node drained.", stats.Refused)

	p.histogram("vllm:time_to_first_token_seconds", "From the arrival of a request to its first token.", m.ttft)
	p.histogram("vllm:inter_token_latency_seconds", "Between the tokens of one request.", m.interToken)
	p.histogram("vllm:time_per_output_token_seconds", "The same, under its older name.", m.interToken)
	p.histogram("vllm:e2e_request_latency_seconds", "From the arrival of a request to its end.", m.endToEnd)
	p.histogram("vllm:request_queue_time_seconds", "Waiting for a place.", m.queue)
	p.histogram("vllm:request_prefill_time_seconds", "From the start to the first token.", m.prefill)
	p.histogram("vllm:request_decode_time_seconds", "From the first token to the last.", m.decode)
	p.usageByKey(holders)
	p.stored(responses)
	return p.out
}

// stored tells what the store of responses holds and has done; nothing without one.
func (p *page) stored(responses *store.Store) {
	if responses == nil {
		return
	}
	c := responses.Counts()
	p.gauge("quern:store_responses", "Responses in the store.", float64(c.Records))
	p.gauge("quern:store_bytes", "Their bytes, compressed.", float64(c.Bytes))
	p.gauge("quern:store_max_bytes", "How many bytes they may be; 0 is no limit.", float64(c.MaxBytes))
	p.head("quern:store_lookups_total", "counter", "Responses looked up, those of a conversation one by one.")
	p.line("quern:store_lookups_total", `,result="hit"`, float64(c.Hits))
	p.line("quern:store_lookups_total", `,result="miss"`, float64(c.Misses))
	p.counter("quern:store_writes_total", "Responses written to the store.", c.Written)
	p.head("quern:store_evictions_total", "counter", "Responses that have left the store, by why.")
	p.line("quern:store_evictions_total", `,reason="expired"`, float64(c.Expired))
	p.line("quern:store_evictions_total", `,reason="displaced"`, float64(c.Displaced))
	p.line("quern:store_evictions_total", `,reason="deleted"`, float64(c.Deleted))
	p.counter("quern:store_failures_total", "Responses that could not be written or read.", c.Failed)
}

// page is a page of metrics in the Prometheus text format.
type page struct {
	out   []byte
	label string // that every series has
}

func (p *page) head(name, kind, help string) {
	p.out = append(p.out, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+kind+"\n"...)
}

func (p *page) line(name, labels string, value float64) {
	p.out = append(p.out, name+"{"+p.label+labels+"} "...)
	p.out = append(strconv.AppendFloat(p.out, value, 'f', -1, 64), '\n')
}

func (p *page) gauge(name, help string, value float64) {
	p.head(name, "gauge", help)
	p.line(name, "", value)
}

func (p *page) counter(name, help string, value uint64) {
	p.head(name, "counter", help)
	p.line(name, "", float64(value))
}

func (p *page) histogram(name, help string, h *histogram) {
	p.head(name, "histogram", help)
	p.out = h.append(p.out, name, p.label)
}
