package server

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/engine/enginetest"
	"quern/engine/tier"
	"quern/server/servertest"
	"quern/server/soaktest"
)

// Answers of the scripted model: of one prompt and seed always the same one.
var soakAnswers = []string{
	"It is.", "", "one two three one two three one two three one two three one two three four",
	"Wörter, ein 🙂 und noch mehr davon.", "<think>let me see</think>So it is.",
	"<tool_call>\n{\"name\": \"look_up\", \"arguments\": {\"word\": \"lamp\"}}\n</tool_call>",
	"I look it up.\n<tool_call>\n{\"name\": \"look_up\", \"arguments\": {\"word\": \"a\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"look_up\", \"arguments\": {\"word\": \"b\"}}\n</tool_call>",
	strings.Repeat("the lamp, the bridge, ", 12), "```json\n[{\"a\": 1}, {\"a\": 1}, {\"a\": 1}, {\"a\": 1}]\n```",
}

// soakNext answers by what the KV cache holds of the prompt, so that a wrong
// prefix gives a wrong answer.
func soakNext(script *servertest.Script) func([]engine.Token, *enginetest.Sampler) engine.Token {
	answers := make([][]engine.Token, len(soakAnswers))
	for i, text := range soakAnswers {
		answers[i], _ = servertest.NewByteVocab().Tokenize(text, true)
	}
	return func(history []engine.Token, s *enginetest.Sampler) engine.Token {
		sum := uint64(14695981039346656037)
		for _, t := range history[:len(s.Prompt)] {
			sum = (sum ^ uint64(t)) * 1099511628211
		}
		sum ^= sum >> 32
		if s.Params.Temperature > 0 {
			sum += s.Params.Seed * 7
		}
		answer := answers[sum%uint64(len(answers))]
		if i := len(history) - len(s.Prompt); i < len(answer) {
			return answer[i]
		}
		return script.Fake.EOG
	}
}

// soakNode is a node whose script keeps nothing of what it was asked.
func soakNode(t *testing.T, c engine.Config, step time.Duration) *node {
	return newNode(t, "", nodeOptions{engine: c, prepare: func(n *node) {
		n.Fake.Next, n.Fake.FailSampler = soakNext(n.Script), nil
		n.Fake.Cost = func(b *engine.Batch) time.Duration {
			if step == 0 {
				return 0
			}
			return step + time.Duration(b.N)*step/40
		}
	}})
}

// soakTime is SOAK, or what a usual test run can spare.
func soakTime(t *testing.T) time.Duration {
	d, err := time.ParseDuration(os.Getenv("SOAK"))
	if err != nil {
		require.Empty(t, os.Getenv("SOAK"), "SOAK=10m or the like")
		d = 3 * time.Second
	}
	return d
}

// The soak would notice.
func TestSoakFindsWrongAnswers(t *testing.T) {
	busy, alone := soakNode(t, engine.Config{}, 0), soakNode(t, engine.Config{MaxRunning: 1, MaxIdle: -1}, 0)
	right := soakNext(alone.Script)
	var asked atomic.Int64
	alone.Fake.Next = func(history []engine.Token, s *enginetest.Sampler) engine.Token {
		if asked.Add(1) > 500 {
			return 'x'
		}
		return right(history, s)
	}
	_, err := soaktest.Run(t.Context(), soaktest.Options{
		URL: busy.http.URL, Alone: alone.http.URL, Duration: time.Minute, Workers: 2, HeadWords: 20, MaxTokens: 50,
	})
	require.ErrorContains(t, err, "differs")
}

// Under random load, with everything on, each answer is that of a node of its
// own, and memory stays where it was.
func TestSoak(t *testing.T) {
	disk, err := tier.Open(tier.Options{Dir: t.TempDir(), Cap: 256 << 10, Identity: []string{"soak"}})
	require.NoError(t, err)
	busy := soakNode(t, engine.Config{
		MaxQueue: 256, MaxDraft: 12, BlockTokens: 16, CacheRAM: 128 << 10, Store: disk,
	}, 200*time.Microsecond)
	alone := soakNode(t, engine.Config{MaxRunning: 1, MaxIdle: -1}, 0)
	result, err := soaktest.Run(t.Context(), soaktest.Options{
		URL: busy.http.URL, Alone: alone.http.URL, Duration: soakTime(t), Workers: 12, Seed: uint64(time.Now().UnixNano()),
		HeadWords: 90, MaxTokens: 150, Seeded: true,
	})
	require.NoError(t, err)
	s := busy.model.Engine.Stats()
	t.Logf("%d answers compared, %d broken off, %d tokens, %d prompt tokens cached, %d drafted tokens accepted; blocks in memory %d, on disk %d\n%s",
		result.Answered, result.Cancelled, result.Output, result.Cached, s.AcceptedTokens, s.RAM.Blocks, s.Disk.Blocks, result.Memory)
	require.Equal(t, result.Answered, result.Explained["same"])
	require.Positive(t, result.Cached)
	require.Positive(t, s.AcceptedTokens)
	require.Less(t, result.Memory.HeapGrowth(), int64(100<<20))
}
