package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/server/soaktest"
)

// nearTie is how much likelier, in nats, a token may be than the one that came
// in its place: batches of other sizes round matrix products differently.
const nearTie = 0.4

// soakModel is the model of the tests, or a skip.
func soakModel(t *testing.T) string {
	dir := os.Getenv("QUERN_MODELS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		require.NoError(t, err)
		dir = filepath.Join(cache, "quern")
	}
	path := filepath.Join(dir, "SmolLM2-135M-Instruct.Q4_1.gguf")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not there: make test-model fetches it", path)
	}
	return path
}

// The soak of package server on a real model, whole nodes and their defaults but
// for small caches. Answers are greedy; where one differs from what a node of
// its own says, the first token that differs must be a near tie.
func TestSoakOfAModel(t *testing.T) {
	d, err := time.ParseDuration(os.Getenv("SOAK"))
	if err != nil {
		t.Skip("it takes a while: SOAK=10m, or make soak")
	}
	model := soakModel(t)
	busy, _ := servedModel(t, model, "--ctx-size", "4096", "--parallel", "8",
		"--cache-ram", "16MiB", "--cache-dir", t.TempDir(), "--cache-disk", "64MiB")
	alone, _ := servedModel(t, model, "--ctx-size", "2048", "--parallel", "1", "--spec", "off", "--cache-ram", "0", "--max-queue", "64")
	result, err := soaktest.Run(t.Context(), soaktest.Options{
		URL: "http://" + busy, Alone: "http://" + alone, Duration: d, Workers: 8, Seed: uint64(time.Now().UnixNano()),
		HeadWords: 400, MaxTokens: 60, NoTools: true,
		Judge: func(body []byte, got, _ *soaktest.Answer) string { return judge(t, "http://"+alone, body, got.Text) },
	})
	require.NoError(t, err)
	t.Logf("%d answers compared: %v; %d broken off, %d tokens, %d prompt tokens cached\n%s",
		result.Answered, result.Explained, result.Cancelled, result.Output, result.Cached, result.Memory)
	require.Positive(t, result.Cached)
	require.Less(t, result.Memory.HeapGrowth(), int64(100<<20))
	require.Less(t, result.Memory.RSSGrowth(), int64(200<<20))
}

// judge asks once more, with logprobs, and looks at the first token that is not
// in the text.
func judge(t *testing.T, url string, body []byte, text string) string {
	asked := `{"include":["message.output_text.logprobs"],"top_logprobs":10,` + string(body[1:])
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/responses", strings.NewReader(asked))
	if err != nil {
		return ""
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	var r struct {
		Output []struct {
			Content []struct {
				Text     string
				Logprobs []chosen
			}
		}
	}
	if json.NewDecoder(res.Body).Decode(&r) != nil || len(r.Output) != 1 || len(r.Output[0].Content) != 1 {
		return ""
	}
	return judgeTokens(r.Output[0].Content[0].Logprobs, []byte(text))
}

type likely struct {
	Bytes   []int
	Logprob float64
}

type chosen struct {
	likely
	Top []likely `json:"top_logprobs"`
}

// judgeTokens goes along the tokens as far as they are the text. Where it goes
// on otherwise, or ends, another likely token must fit.
func judgeTokens(tokens []chosen, text []byte) string {
	for _, token := range tokens {
		if rest, ok := bytes.CutPrefix(text, raw(token.Bytes)); ok {
			text = rest
			continue
		}
		gap := math.Inf(1)
		for _, other := range token.Top {
			piece := raw(other.Bytes)
			if len(text) == 0 || len(piece) > 0 && bytes.HasPrefix(text, piece) && !slices.Equal(other.Bytes, token.Bytes) {
				gap = min(gap, math.Abs(token.Logprob-other.Logprob))
			}
		}
		if gap > nearTie {
			return ""
		}
		return fmt.Sprintf("near tie below %.1f nats", math.Ceil(gap*10)/10)
	}
	// The text is longer: what ended it has no logprob of its own.
	return "another end"
}

func raw(ints []int) []byte {
	out := make([]byte, len(ints))
	for i, n := range ints {
		out[i] = byte(n)
	}
	return out
}
