package llama

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/cgo"
	"quern/engine"
	"quern/models/testmodel"
)

const code = `package shop

import (
	"errors"
	"fmt"
	"sort"
)

type Item struct {
	Name  string
	Price int
	Count int
}

type Cart struct {
	items map[string]Item
	total int
}

func NewCart() *Cart {
	return &Cart{items: make(map[string]Item)}
}

func (c *Cart) Add(name string, price, count int) error {
	if name == "" {
		return errors.New("item has no name")
	}
	if price < 0 || count <= 0 {
		return fmt.Errorf("item %s: bad price %d or count %d", name, price, count)
	}
	item := c.items[name]
	item.Name, item.Price = name, price
	item.Count += count
	c.items[name] = item
	c.total += price * count
	return nil
}

func (c *Cart) Remove(name string) error {
	item, ok := c.items[name]
	if !ok {
		return fmt.Errorf("item %s is not in the cart", name)
	}
	c.total -= item.Price * item.Count
	delete(c.items, name)
	return nil
}

func (c *Cart) Names() []string {
	names := make([]string, 0, len(c.items))
	for name := range c.items {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
`

const records = `[
  {"id": 1041, "name": "Ada Byron", "email": "ada@example.org", "roles": ["admin", "author"], "active": true},
  {"id": 1042, "name": "Blaise Pascal", "email": "blaise@example.org", "roles": ["author"], "active": false},
  {"id": 1043, "name": "Emmy Noether", "email": "emmy@example.org", "roles": ["editor", "author"], "active": true},
  {"id": 1044, "name": "Carl Gauss", "email": "carl@example.org", "roles": ["reader"], "active": true},
  {"id": 1045, "name": "Sofya Kovalevskaya", "email": "sofya@example.org", "roles": ["editor"], "active": true},
  {"id": 1046, "name": "Leonhard Euler", "email": "leonhard@example.org", "roles": ["admin", "reader"], "active": false}
]`

// draftTasks are prompts whose answers repeat the prompt, and some whose don't.
var draftTasks = []struct {
	name, prompt string
	repeats      bool
}{
	{"code", "Rename the method Remove to Delete in this Go file, and give back the whole file, with nothing else changed.\n\n```go\n" + code + "```", true},
	{"json", "Set \"active\" to false for id 1044 and return the whole JSON array, otherwise unchanged.\n\n```json\n" + records + "\n```", true},
	{"story", "Write a long story about a lighthouse keeper who finds a letter in a bottle.", false},
	{"translation", "Translate to German: The sea was calm that morning, and the old man rowed out beyond the rocks to look for his nets. He found them torn, and sat for a long time with the wet rope in his hands.", false},
	{"essay", "Explain in detail how the tides come about, and why their height differs from place to place.", false},
}

func chatTokens(t testing.TB, b *Backend, text string) []engine.Token {
	p, err := b.Vocab().Tokenize("<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"+text+"<|im_end|>\n<|im_start|>assistant\n", true)
	require.NoError(t, err)
	return p
}

// decode runs one request and returns its tokens and the time they took, from
// the first to the last.
func decode(t testing.TB, e *engine.Engine, prompt []engine.Token, p engine.SamplerParams, n int) ([]engine.Output, engine.Result) {
	sampler, err := e.NewSampler(p)
	require.NoError(t, err)
	s, err := e.Submit(t.Context(), engine.Request{Prompt: prompt, MaxTokens: n, Sampler: sampler, Logprobs: 1})
	require.NoError(t, err)
	var all []engine.Output
	for {
		out, err := s.Recv(context.Background())
		all = append(all, out...)
		if errors.Is(err, io.EOF) {
			return all, s.Result()
		}
		require.NoError(t, err)
	}
}

// Drafts change neither a token nor a probability: where kernels give a row the
// same result beside any others, and elsewhere up to near ties.
func TestDraftsChangeNothing(t *testing.T) {
	o := Options{Cells: 2048, Parallel: 4, Threads: 2, Batch: 512, UBatch: 512, KVType: "f16"}
	be, plain := open(t, smol, o, engine.Config{})
	_, drafting := open(t, smol, o, engine.Config{MaxDraft: 15})
	const list = "Repeat this list twice: red apple, green pear, yellow banana, red cherry, blue plum, green grape."
	drafted := 0
	for name, p := range map[string]engine.SamplerParams{
		"greedy":    {},
		"seeded":    {Temperature: 1, Seed: 11},
		"cut":       {Temperature: 0.7, Seed: 12, TopK: 40, TopP: 0.9},
		"penalties": {Temperature: 0.5, Seed: 13, Frequency: 0.1, Repeat: 1.05},
		"grammar":   {Grammar: `root ::= "[" item ("," item){8} "]"` + "\n" + `item ::= "{\"id\": " [0-9] ", \"name\": \"" [a-z]{3,5} "\"}"`},
	} {
		t.Run(name, func(t *testing.T) {
			prompt := chatTokens(t, be, list)
			want, alone := decode(t, plain, prompt, p, 120)
			got, res := decode(t, drafting, prompt, p, 120)
			t.Logf("%d tokens, %d drafted, %d right", res.OutputTokens, res.DraftedTokens, res.AcceptedTokens)
			require.Zero(t, alone.DraftedTokens)
			if slices.Contains(cgo.CPUFeatures(), "avx512vnni") {
				require.Equal(t, want, got)
			} else if p.Temperature == 0 {
				sameTokens(t, be.IsEOG, name, answer{out: want, result: alone}, answer{out: got, result: res})
			}
			drafted += res.DraftedTokens
		})
	}
	require.Positive(t, drafted)
}

// A draft model that is the model itself is right, and changes nothing either. It
// isn't worth its time, so it is tried only now and then.
func TestDraftModel(t *testing.T) {
	o := Options{Cells: 2048, Parallel: 2, Threads: 2, Batch: 512, UBatch: 512, KVType: "f16"}
	be, plain := open(t, smol, o, engine.Config{})
	drafter, err := Open(t.Context(), modelPath(t, smol), o)
	require.NoError(t, err)
	require.NoError(t, be.CheckDraft(drafter))
	_, drafting := open(t, smol, o, engine.Config{MaxDraft: 6, Drafter: drafter})
	prompt := chatTokens(t, be, "Tell me about the sea.")
	want, alone := decode(t, plain, prompt, engine.SamplerParams{}, 100)
	got, res := decode(t, drafting, prompt, engine.SamplerParams{}, 100)
	t.Logf("%d tokens, %d drafted, %d right", res.OutputTokens, res.DraftedTokens, res.AcceptedTokens)
	require.Positive(t, res.AcceptedTokens)
	if slices.Contains(cgo.CPUFeatures(), "avx512vnni") {
		require.Equal(t, want, got)
	} else {
		sameTokens(t, be.IsEOG, "drafted", answer{out: want, result: alone}, answer{out: got, result: res})
	}
}

func TestCheckDraft(t *testing.T) {
	o := Options{Cells: 512, Parallel: 1, Threads: 1, Batch: 64, UBatch: 64, KVType: "f16"}
	path := filepath.Join(t.TempDir(), "scripted.gguf")
	require.NoError(t, testmodel.Write(path))
	scripted, err := Open(t.Context(), path, o)
	require.NoError(t, err)
	defer func() { require.NoError(t, scripted.Close()) }()
	real, err := Open(t.Context(), modelPath(t, smol), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, real.Close()) }()
	require.NoError(t, scripted.CheckDraft(scripted))
	require.ErrorContains(t, real.CheckDraft(scripted), "another vocabulary")
}

// BenchmarkDrafts decodes the tasks with and without drafts, in turn, and says
// how much less time and how much less of the CPU the first take. An operation is
// an answer of each, with a seed of its own.
func BenchmarkDrafts(b *testing.B) {
	o := Options{Cells: 4096, Parallel: 4, Threads: 2, Batch: 2048, UBatch: 512, KVType: "f16"}
	be, plain := open(b, benchModel(), o, engine.Config{})
	_, drafting := open(b, benchModel(), o, engine.Config{MaxDraft: 15})
	for _, task := range draftTasks {
		for _, temperature := range []float32{0, 0.8} {
			b.Run(fmt.Sprintf("%s/temperature=%v", task.name, temperature), func(b *testing.B) {
				prompt := chatTokens(b, be, task.prompt)
				var took, cpu [2]time.Duration
				tokens, drafted, right := 0, 0, 0
				for seed := uint64(1); b.Loop(); seed++ {
					params := engine.SamplerParams{Temperature: temperature, TopP: 0.95, Seed: seed}
					decode(b, plain, prompt, engine.SamplerParams{}, 1)
					decode(b, drafting, prompt, engine.SamplerParams{}, 1)
					for i, e := range []*engine.Engine{plain, drafting} {
						before := cpuTime(b)
						_, r := decode(b, e, prompt, params, 300)
						cpu[i] += cpuTime(b) - before
						took[i] += r.Decode
						tokens, drafted, right = tokens+r.OutputTokens, drafted+r.DraftedTokens, right+r.AcceptedTokens
					}
				}
				b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "x")
				b.ReportMetric(cpu[0].Seconds()/cpu[1].Seconds(), "x-cpu")
				b.ReportMetric(float64(tokens)/2/float64(b.N), "tokens/op")
				b.ReportMetric(float64(drafted)/float64(b.N), "drafted/op")
				b.ReportMetric(float64(right)/float64(b.N), "right/op")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkDraftsTogether decodes all of the tasks at once, with and without
// drafts, in turn. An operation is an answer to each, both ways.
func BenchmarkDraftsTogether(b *testing.B) {
	o := Options{Cells: 8192, Parallel: 8, Threads: 2, Batch: 2048, UBatch: 512, KVType: "f16"}
	be, plain := open(b, benchModel(), o, engine.Config{})
	_, drafting := open(b, benchModel(), o, engine.Config{MaxDraft: 15})
	var took, cpu [2]time.Duration
	for seed := uint64(1); b.Loop(); seed++ {
		for i, e := range []*engine.Engine{plain, drafting} {
			for _, task := range draftTasks { // leave the prompts out
				decode(b, e, chatTokens(b, be, task.prompt), engine.SamplerParams{}, 1)
			}
			start, before := time.Now(), cpuTime(b)
			var all sync.WaitGroup
			for _, task := range draftTasks {
				all.Go(func() {
					decode(b, e, chatTokens(b, be, task.prompt), engine.SamplerParams{Temperature: 0.8, TopP: 0.95, Seed: seed}, 200)
				})
			}
			all.Wait()
			took[i] += time.Since(start)
			cpu[i] += cpuTime(b) - before
		}
	}
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "x")
	b.ReportMetric(cpu[0].Seconds()/cpu[1].Seconds(), "x-cpu")
	b.ReportMetric(0, "ns/op")
}

// cpuTime is what this process has computed so far, on all cores.
func cpuTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
