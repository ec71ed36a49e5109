package llama

import (
	"encoding/json"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/models/schema/lark"
)

// moves is a small language with what its place in a JSON string makes hard:
// line breaks, quotes and backslashes.
const moves = `start: "path \"C:\\" NAME "\"" LF move~2..5
move.2: ("up" | "down" | "é") " " "1".."9" LF -> step
NAME: /[a-z]{1,8}/
%import common.LF`

var movesText = regexp.MustCompile(`\Apath "C:\\[a-z]{1,8}"\n(?:(?:up|down|é) [1-9]\n){2,5}\z`)

// A real model that draws at temperature 1 writes nothing but texts of a
// grammar, as far as it comes.
func TestRealModelFollowsLark(t *testing.T) {
	b, e := open(t, smol, Options{Cells: 4096, Parallel: 8, Threads: 2, Batch: 512, UBatch: 512, KVType: "f16"}, engine.Config{})
	c, err := lark.Compile(moves, "input")
	require.NoError(t, err)
	prompt := chatTokens(t, b, "Write some moves, a line for each.")
	const limit = 160
	ended := 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for seed := range uint64(24) {
		all.Go(func() {
			out, _ := decode(t, e, prompt, engine.SamplerParams{Temperature: 1, Seed: seed, Grammar: c.GBNF()}, limit)
			text := ""
			for _, o := range out {
				text += string(b.Vocab().Piece(o.Token))
			}
			mu.Lock()
			defer mu.Unlock()
			if len(out) == limit {
				return
			}
			ended++
			var call struct{ Input string }
			if err := json.Unmarshal([]byte(text), &call); err != nil || !movesText.MatchString(call.Input) {
				t.Errorf("seed %d: %v: %s", seed, err, text)
			}
		})
	}
	all.Wait()
	require.Greater(t, ended, 12, "answers that came to their end")
}
