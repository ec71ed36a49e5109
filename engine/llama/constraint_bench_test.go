package llama

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/models/schema"
	"quern/models/schema/lark"
)

// ticket is a schema like those of many tools: texts, an enum, bounds, a list of
// objects, a value that may be null.
const ticket = `{"type":"object","properties":{"title":{"type":"string","maxLength":80},"priority":{"enum":["low","normal","high"]},` +
	`"hours":{"type":"integer","minimum":1,"maximum":80},"due":{"anyOf":[{"type":"string","format":"date"},{"type":"null"}]},` +
	`"tasks":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"done":{"type":"boolean"}},` +
	`"required":["name","done"],"additionalProperties":false},"minItems":1,"maxItems":6}},` +
	`"required":["title","priority","hours","due","tasks"],"additionalProperties":false}`

// patch is a grammar of the kind that agents send for edits.
const patch = `start: begin hunk+ end
begin: "*** Start" LF
end: "*** Stop" LF?
hunk: "*** File: " /(.+)/ LF line+
line: ("+" | "-" | " ") /(.*)/ LF
%import common.LF`

// lane is one stream of a benchmark: a sequence that is taken back to its prompt
// when it has ended.
type lane struct {
	seq     engine.SeqID
	params  engine.SamplerParams
	sampler engine.Sampler
	next    engine.Token
	pos     int32
	ended   bool
}

func (l *lane) rewind(tb testing.TB, be *Backend, prompt []engine.Token) {
	if l.sampler != nil {
		l.sampler.Close()
	}
	var err error
	l.params.Seed++
	l.sampler, err = be.NewSampler(l.params)
	require.NoError(tb, err)
	last := len(prompt) - 1
	require.NoError(tb, be.SeqRemove(l.seq, last))
	l.next, l.pos, l.ended = prompt[last], int32(last), false
}

// step gives each lane its next token and returns how long that took.
func step(tb testing.TB, be *Backend, lanes []*lane) time.Duration {
	b := be.Batch()
	b.N = 0
	for _, l := range lanes {
		b.Token[b.N], b.Pos[b.N], b.Seq[b.N], b.Want[b.N], b.Sampler[b.N] = l.next, l.pos, l.seq, 0, l.sampler
		b.N++
	}
	from := time.Now()
	require.NoError(tb, be.Step(b))
	took := time.Since(from)
	for i, l := range lanes {
		require.NoError(tb, b.Out[i].Err)
		l.next, l.pos = b.Out[i].Token, l.pos+1
		l.ended = be.IsEOG(l.next)
	}
	return took
}

// BenchmarkConstraint decodes eight streams that a grammar holds and eight that
// none does, a step of these and a step of those in turn, so that both see the
// same machine; an operation is one of each.
func BenchmarkConstraint(b *testing.B) {
	const streams, limit = 8, 160
	be, err := Open(b.Context(), modelPath(b, benchModel()), Options{Cells: 8192, Parallel: 2 * streams, Threads: 2, Batch: 512, UBatch: 512, KVType: "f16"})
	require.NoError(b, err)
	defer be.Close()
	held, err := schema.Compile(json.RawMessage(ticket), schema.Options{Closed: true, Strict: true})
	require.NoError(b, err)
	edit, err := lark.Compile(patch, "input")
	require.NoError(b, err)
	for _, c := range []struct{ name, grammar, ask string }{
		{"schema", held.GBNF(), "Write a ticket about a broken login page as JSON with title, priority, hours, due and tasks (name, done)."},
		{"lark", edit.GBNF(), `Write {"input": "*** Start\n*** File: hello.py\n+..."} with a patch that adds a program of ten lines, as JSON.`},
	} {
		for _, temperature := range []float32{0, 1} {
			b.Run(c.name+map[float32]string{0: "/greedy", 1: "/temperature=1"}[temperature], func(b *testing.B) {
				prompt := chatTokens(b, be, c.ask)
				batch := be.Batch()
				var lanes [2][]*lane
				for i := range 2 * streams {
					l := &lane{seq: engine.SeqID(i), params: engine.SamplerParams{Temperature: temperature, Seed: uint64(1000 * i)}}
					if i < streams {
						l.params.Grammar = c.grammar
					}
					require.NoError(b, be.SeqRemove(l.seq, 0))
					batch.N = 0
					for pos, t := range prompt[:len(prompt)-1] {
						batch.Token[pos], batch.Pos[pos], batch.Seq[pos], batch.Want[pos] = t, int32(pos), l.seq, -1
						batch.N++
					}
					require.NoError(b, be.Step(batch))
					l.rewind(b, be, prompt)
					lanes[i/streams] = append(lanes[i/streams], l)
				}
				var spent [2]time.Duration
				for n := 0; b.Loop(); n++ {
					for k := range 2 { // who goes first changes
						k = (k + n) % 2
						spent[k] += step(b, be, lanes[k])
					}
					for i := range streams { // both at one length
						if lanes[0][i].ended || lanes[1][i].ended || int(lanes[0][i].pos) > len(prompt)+limit {
							lanes[0][i].rewind(b, be, prompt)
							lanes[1][i].rewind(b, be, prompt)
						}
					}
				}
				for _, l := range append(lanes[0], lanes[1]...) {
					l.sampler.Close()
				}
				perStep := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(b.N) }
				b.ReportMetric(perStep(spent[0]), "ms/held")
				b.ReportMetric(perStep(spent[1]), "ms/free")
				b.ReportMetric(100*(float64(spent[0])/float64(spent[1])-1), "%cost")
			})
		}
	}
}
