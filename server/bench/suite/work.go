package suite

import (
	"context"
	"fmt"
	"time"

	"quern/server/bench"
)

// Work is one kind of load.
type Work struct {
	Name  string // one word, to choose it by
	Title string
	Slots int
	Cells int
	// Guessed is for works where guessing tokens ahead should show: they run with
	// it and without.
	Guessed bool
	// Heavy works are repeated a third as often.
	Heavy bool
	// Restart: the server keeps prefixes in a directory, and After runs once it
	// has been stopped and started.
	Restart bool

	Run     func(ctx context.Context, c *bench.Client, seed uint64) (*bench.Result, error)
	After   func(ctx context.Context, c *bench.Client, seed uint64, r *bench.Result) error
	Figures []Figure
}

// Figure is a row of the table.
type Figure struct {
	Title string
	Unit  string
	Value func(r *bench.Result) float64
	Roof  Bound // the roof that this figure has, in tokens a second
}

// Bound is what a figure is bounded by.
type Bound int

// The bounds.
const (
	None Bound = iota
	Memory
	Products
)

// Sizes are the lengths of all works, in words and tokens.
type Sizes struct {
	Answer      int // tokens of a stream
	Head, Long  int // words of the prompts of about 1,000 and 4,000 tokens
	Echo        int // words of what is to be given back
	EchoAnswer  int // tokens that it may take
	Sessions    int
	Turns       int
	ChatHead    int           // words of the first message
	ChatAnswer  int           // tokens
	StallAnswer int           // tokens of the stream that the long prompt meets
	StallAfter  time.Duration // from its first token on
}

// Usual are the sizes that figures are published for.
var Usual = Sizes{
	Answer: 64, Head: 770, Long: 3100, Echo: 150, EchoAnswer: 512, Sessions: 20, Turns: 3, ChatHead: 1000, ChatAnswer: 32,
	StallAnswer: 2000, StallAfter: 1500 * time.Millisecond,
}

const timeout = 10 * time.Minute

// Works are all works, those with the same places and cells together.
func Works(z Sizes) []Work {
	var all []Work
	for _, n := range []int{1, 2, 4, 8, 16} {
		all = append(all, streams(z, n))
	}
	return append(all,
		echo(z, bench.CodeEdit, "code to give back with a name changed"),
		echo(z, bench.JSONEcho, "JSON to give back with a value changed"),
		sharedHead(z),
		prefix("cold-1k", "a prompt of 1,000 tokens", z.Head, false),
		prefix("cold-4k", "a prompt of 4,000 tokens", z.Long, true),
		stall(z),
		restored(z),
		chat(z),
	)
}

// Places and cells: small answers of many, long prompts, few conversations.
const (
	manySlots, manyCells = 16, 16 << 10
	longSlots, longCells = 8, 40 << 10
	chatSlots, chatCells = 4, 8 << 10
)

func load(z bench.Load) func(context.Context, *bench.Client, uint64) (*bench.Result, error) {
	return func(ctx context.Context, c *bench.Client, seed uint64) (*bench.Result, error) {
		l := z
		l.Dataset.Seed, l.Timeout = seed, timeout
		return bench.Run(ctx, c, l)
	}
}

func streams(z Sizes, n int) Work {
	w := Work{
		Name: fmt.Sprintf("streams-%d", n), Title: fmt.Sprintf("%d streams of prose", n), Slots: manySlots, Cells: manyCells,
		Run: load(bench.Load{
			Dataset: bench.Dataset{Kind: bench.Unique, PromptWords: 32}, Concurrency: n, Requests: max(n, 2), MaxTokens: z.Answer,
		}),
		Figures: []Figure{{Title: "tokens, all together", Unit: "tok/s", Value: named("output_throughput")}},
	}
	if n == 1 {
		w.Title, w.Guessed = "1 stream of prose", true
		w.Figures = []Figure{{Title: "tokens", Unit: "tok/s", Value: decodeSpeed, Roof: Memory}}
	}
	return w
}

func echo(z Sizes, kind, title string) Work {
	return Work{
		Name: kind, Title: title, Slots: manySlots, Cells: manyCells, Guessed: true,
		Run: load(bench.Load{
			Dataset: bench.Dataset{Kind: kind, PromptWords: z.Echo}, Concurrency: 1, Requests: 1, MaxTokens: z.EchoAnswer,
		}),
		Figures: []Figure{{Title: "tokens, 1 stream", Unit: "tok/s", Value: decodeSpeed}},
	}
}

func sharedHead(z Sizes) Work {
	return Work{
		Name: "shared-head", Title: "8 requests at once, one head of 1,000 tokens", Slots: longSlots, Cells: longCells,
		Run: load(bench.Load{
			Dataset:     bench.Dataset{Kind: bench.SharedPrefix, PromptWords: 12, SharedWords: z.Head},
			Concurrency: 8, Requests: 8, MaxTokens: z.Answer / 2,
		}),
		Figures: []Figure{
			{Title: "time of all", Unit: "s", Value: named("duration")},
			{Title: "cached share", Unit: "%", Value: percent("cached_token_ratio")},
		},
	}
}

func repeated(words int, seed uint64) bench.Repeated {
	return bench.Repeated{Seed: seed, PromptWords: words, MaxTokens: 4, Timeout: timeout}
}

func prefix(name, title string, words int, heavy bool) Work {
	return Work{
		Name: name, Title: title, Slots: longSlots, Cells: longCells, Heavy: heavy,
		Run: func(ctx context.Context, c *bench.Client, seed uint64) (*bench.Result, error) {
			return bench.Prefix(ctx, c, repeated(words, seed))
		},
		Figures: []Figure{
			{Title: "cold: prefill", Unit: "tok/s", Value: named("cold_prefill_throughput"), Roof: Products},
			{Title: "cold: first token after", Unit: "s", Value: seconds("cold_ttft_ms")},
			{Title: "warm: first token after", Unit: "s", Value: seconds("warm_ttft_ms")},
			{Title: "warm: cached share", Unit: "%", Value: percent("warm_cached_token_ratio")},
		},
	}
}

func restored(z Sizes) Work {
	return Work{
		Name: "restored", Title: "the prompt of 4,000 tokens after a restart", Slots: longSlots, Cells: longCells, Heavy: true, Restart: true,
		Run: func(ctx context.Context, c *bench.Client, seed uint64) (*bench.Result, error) {
			return bench.Prefix(ctx, c, repeated(z.Long, seed))
		},
		After: func(ctx context.Context, c *bench.Client, seed uint64, r *bench.Result) error {
			return bench.PrefixAgain(ctx, c, repeated(z.Long, seed), r)
		},
		Figures: []Figure{
			{Title: "first token after", Unit: "s", Value: seconds("restored_ttft_ms")},
			{Title: "share of the cold time", Unit: "%", Value: percent("restored_share_of_cold")},
			{Title: "cached share", Unit: "%", Value: percent("restored_cached_token_ratio")},
		},
	}
}

func stall(z Sizes) Work {
	return Work{
		Name: "stall", Title: "4,000 tokens arrive beside a running stream", Slots: longSlots, Cells: longCells, Heavy: true,
		Run: func(ctx context.Context, c *bench.Client, seed uint64) (*bench.Result, error) {
			return bench.Stall(ctx, c, bench.Stalled{
				Seed: seed, PromptWords: z.Long, MaxTokens: z.StallAnswer, After: z.StallAfter, Timeout: timeout,
			})
		},
		Figures: []Figure{
			{Title: "longest gap of the stream", Unit: "s", Value: seconds("stalled_max_itl_ms")},
			{Title: "its usual gap", Unit: "s", Value: seconds("idle_median_itl_ms")},
			{Title: "time of the prompt", Unit: "s", Value: seconds("prompt_ms")},
			{Title: "that prompt alone", Unit: "s", Value: seconds("prompt_alone_ms")},
		},
	}
}

func chat(z Sizes) Work {
	return Work{
		Name: "chat", Title: fmt.Sprintf("%d chats in turn, cells for 4", z.Sessions), Slots: chatSlots, Cells: chatCells, Heavy: true,
		Run: load(bench.Load{
			Dataset:     bench.Dataset{Kind: bench.MultiTurn, PromptWords: z.ChatHead, TurnWords: 12, Turns: z.Turns},
			Concurrency: 4, Sessions: z.Sessions, Requests: z.Sessions * z.Turns, MaxTokens: z.ChatAnswer,
		}),
		Figures: []Figure{
			{Title: "time of all turns", Unit: "s", Value: named("duration")},
			{Title: "later turns: cached share", Unit: "%", Value: percent("later_turns_cached_token_ratio")},
			{Title: "later turns: first token after", Unit: "s", Value: seconds("later_turns_median_ttft_ms")},
		},
	}
}

// decodeSpeed leaves the prompt out.
func decodeSpeed(r *bench.Result) float64 {
	tpot, _ := r.Value("median_tpot_ms")
	if tpot == 0 {
		return 0
	}
	return 1000 / tpot
}

func named(name string) func(*bench.Result) float64 { return scaled(name, 1) }

func percent(name string) func(*bench.Result) float64 { return scaled(name, 100) }

func seconds(name string) func(*bench.Result) float64 { return scaled(name, 0.001) }

func scaled(name string, factor float64) func(*bench.Result) float64 {
	return func(r *bench.Result) float64 {
		v, _ := r.Value(name)
		return v * factor
	}
}
