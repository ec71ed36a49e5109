package suite

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// actAs makes the test binary a server of that kind.
const actAs = "SUITE_TEST_ACT_AS"

func TestMain(m *testing.M) {
	if kind := os.Getenv(actAs); kind != "" {
		os.Exit(act(kind, os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// act is a server in a process of its own: it takes the arguments and variables
// that the real one would get.
func act(kind string, args []string) int {
	fmt.Println(kind, strings.Join(args, " "))
	addr := ""
	switch {
	case kind == "none":
		return 3
	case kind == "ollama" && args[0] == "create":
		file, err := os.ReadFile(args[3])
		fmt.Println(string(file), err)
		return 0
	case kind == "ollama":
		addr = os.Getenv("OLLAMA_HOST")
		fmt.Println("parallel", os.Getenv("OLLAMA_NUM_PARALLEL"), "context", os.Getenv("OLLAMA_CONTEXT_LENGTH"))
	case kind == "quern":
		addr = after(args, "--addr")
	case kind == "llama-server":
		addr = after(args, "--host") + ":" + after(args, "--port")
	}
	s := http.Server{Addr: addr, Handler: &fake{}, ReadHeaderTimeout: time.Minute}
	fmt.Println(s.ListenAndServe())
	return 1
}

func after(args []string, flag string) string {
	for i, a := range args[:len(args)-1] {
		if a == flag {
			return args[i+1]
		}
	}
	return ""
}

// fake answers with as many pieces as are asked for; every word is a token.
type fake struct {
	gap    time.Duration
	steps  bool         // it has /debug/steps
	broken atomic.Int64 // as many answers are errors
	asked  atomic.Int64
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/health", "/api/version":
	case "/v1/models":
		fmt.Fprint(w, `{"data":[{"id":"fake"}]}`)
	case "/debug/steps":
		if !f.steps {
			http.NotFound(w, r)
			return
		}
		n := float64(f.asked.Load())
		fmt.Fprintf(w, `{"steps":%g,"seconds":{"decode":%g,"sample":%g,"schedule":%g}}`, 10*n, 60*n, 10*n, 10*n)
	default:
		f.respond(w, r)
	}
}

func (f *fake) respond(w http.ResponseWriter, r *http.Request) {
	f.asked.Add(1)
	var req struct {
		Input []struct{ Content string }
		Max   int `json:"max_output_tokens"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || f.broken.Add(-1) >= 0 {
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	}
	words := 0
	for _, m := range req.Input {
		words += len(strings.Fields(m.Content))
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for range req.Max {
		time.Sleep(f.gap)
		fmt.Fprint(w, "data: {\"type\":\"response.output_text.delta\",\"delta\":\"w \"}\n\n")
		_ = http.NewResponseController(w).Flush()
	}
	fmt.Fprintf(w, "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":%d,\"output_tokens\":%d,\"input_tokens_details\":{\"cached_tokens\":%d}}}}\n\n",
		words, req.Max, words/2)
}
