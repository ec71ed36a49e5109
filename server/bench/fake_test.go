package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeServer answers POST /v1/responses with one piece a token. Every word of
// the input is a token; what it has seen of an input before counts as cached.
type fakeServer struct {
	*httptest.Server
	first, gap time.Duration // before the first token, and between others
	perWord    time.Duration // of prefill; streams stand still meanwhile

	mu       sync.Mutex
	prefill  sync.RWMutex // held by the one prompt that is worked on
	requests []fakeRequest
	seen     map[string]bool
	now, max atomic.Int64
	// handle answers in place of the fake if it returns true.
	handle func(n int, w http.ResponseWriter, r *http.Request) bool
}

type fakeRequest struct {
	Model       string    `json:"model"`
	Input       []Message `json:"input"`
	Stream      bool      `json:"stream"`
	MaxTokens   int       `json:"max_output_tokens"`
	Temperature *float64  `json:"temperature"`
	key         string
	at          time.Time
}

func newFake(t *testing.T) (*fakeServer, *Client) {
	s := &fakeServer{seen: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/responses", s.respond)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"fake"},{"id":"other"}]}`)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	c, err := NewClient(s.URL, "fake", "secret")
	require.NoError(t, err)
	return s, c
}

func (s *fakeServer) respond(w http.ResponseWriter, r *http.Request) {
	now := s.now.Add(1)
	defer s.now.Add(-1)
	for {
		old := s.max.Load()
		if now <= old || s.max.CompareAndSwap(old, now) {
			break
		}
	}
	req := fakeRequest{key: r.Header.Get("Authorization"), at: time.Now()}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, req)
	n := len(s.requests)
	s.mu.Unlock()
	if s.handle != nil && s.handle(n, w, r) {
		return
	}
	s.stream(w, r, req)
}

func (s *fakeServer) stream(w http.ResponseWriter, r *http.Request, req fakeRequest) {
	input, cached := s.count(req)
	s.prefill.Lock()
	time.Sleep(time.Duration(input-cached) * s.perWord)
	s.prefill.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	fmt.Fprint(w, "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n")
	time.Sleep(s.first)
	for i := range req.MaxTokens {
		if i > 0 {
			time.Sleep(s.gap)
		}
		s.prefill.RLock()
		fmt.Fprintf(w, "event: x\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"w%d \"}\n\n", i)
		s.prefill.RUnlock()
		if flush() != nil || r.Context().Err() != nil {
			return
		}
	}
	fmt.Fprintf(w, "data: {\"type\":\"response.incomplete\",\"response\":{\"usage\":{\"input_tokens\":%d,\"output_tokens\":%d,\"input_tokens_details\":{\"cached_tokens\":%d}}}}\n\ndata: [DONE]\n\n",
		input, req.MaxTokens, cached)
}

func (s *fakeServer) count(req fakeRequest) (input, cached int) {
	var b strings.Builder
	for _, m := range req.Input {
		b.WriteString(m.Content + " ")
	}
	all := strings.Fields(b.String())
	s.mu.Lock()
	defer s.mu.Unlock()
	prefix := ""
	for i, word := range all {
		prefix += word + " "
		if s.seen[prefix] && cached == i && i < len(all)-1 {
			cached = i + 1
		}
		s.seen[prefix] = true
	}
	return len(all), cached
}

func (s *fakeServer) log() []fakeRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]fakeRequest(nil), s.requests...)
}
