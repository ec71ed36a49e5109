package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quern/server/bench"
)

// benchSetup is what quern bench was asked for; it goes into the JSON as well.
type benchSetup struct {
	Scenario string        `json:"scenario"`
	Reps     int           `json:"reps"`
	Seed     uint64        `json:"seed"`
	Load     bench.Load    `json:"load"`
	After    time.Duration `json:"stall_after_ns"`

	url, model, key, compare, compareModel, compareKey, json string
}

func benchCommand() *cobra.Command {
	s := benchSetup{}
	cmd := &cobra.Command{
		Use:   "bench --url URL",
		Short: "Put a server of the Responses API under load and measure it",
		Long: "Put a server of the Responses API under load and measure it.\n\n" +
			"The scenario load sends prompts of a data set: --concurrency at a time, or at random times\n" +
			"with --rate as the mean. The scenario stall measures the gaps of one running stream while a\n" +
			"long prompt arrives. The scenario prefix sends one prompt twice: cold, then warm. With --compare a second server gets the same prompts, in turn with the\n" +
			"first, and the ratios of the medians over --reps are shown.\n\n" +
			"The figures have the names of vLLM's serving benchmark. Failed requests are counted and\n" +
			"shown, and make the exit code 1.",
		Example: "  quern bench --url http://127.0.0.1:8080 --concurrency 8 --requests 64\n" +
			"  quern bench --url http://127.0.0.1:8080 --dataset multi-turn --sessions 12 --turns 3 --concurrency 4 --requests 36\n" +
			"  quern bench --url http://127.0.0.1:8080 --rate 2 --duration 1m --json result.json\n" +
			"  quern bench --url http://127.0.0.1:8080 --compare http://127.0.0.1:8081 --reps 5",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("quern bench takes flags only, and got %q", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return runBench(cmd, s) },
	}
	s.bind(cmd)
	cmd.AddCommand(benchRoofCommand(), benchSuiteCommand())
	return cmd
}

func (s *benchSetup) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&s.url, "url", "", "address of the server, with or without /v1")
	f.StringVar(&s.model, "model", "", "model to ask for (default: the first the server names)")
	f.StringVar(&s.key, "key", "", "bearer key")
	f.StringVar(&s.Scenario, "scenario", "load", "load, stall or prefix")
	f.StringVar(&s.Load.Dataset.Kind, "dataset", bench.Unique, strings.Join(bench.DatasetKinds(), ", "))
	f.IntVar(&s.Load.Concurrency, "concurrency", 1, "requests at a time")
	f.Float64Var(&s.Load.Rate, "rate", 0, "requests a second at random times, in place of --concurrency")
	f.IntVar(&s.Load.Requests, "requests", 0, "number of requests (default 16 if there is no --duration)")
	f.DurationVar(&s.Load.Duration, "duration", 0, "start no request later than this")
	f.IntVar(&s.Load.Warmup, "warmup", 0, "requests sent before, not counted")
	f.IntVar(&s.Load.MaxTokens, "max-tokens", 64, "tokens of an answer")
	f.Float64Var(&s.Load.Temperature, "temperature", 0, "temperature")
	f.IntVar(&s.Load.Dataset.PromptWords, "prompt-words", 32, "words of a prompt; of the question behind a shared head; of the prompt in stall and prefix")
	f.IntVar(&s.Load.Dataset.SharedWords, "shared-words", 500, "words of the head in shared-prefix")
	f.IntVar(&s.Load.Dataset.Turns, "turns", 3, "turns of a conversation in multi-turn")
	f.IntVar(&s.Load.Dataset.TurnWords, "turn-words", 40, "words of a later message in multi-turn")
	f.IntVar(&s.Load.Sessions, "sessions", 0, "conversations under way (default: as many as requests at a time)")
	f.DurationVar(&s.After, "stall-after", 1500*time.Millisecond, "how long the stream runs before the prompt arrives in stall")
	f.DurationVar(&s.Load.Timeout, "timeout", 10*time.Minute, "longest time of a request, 0 for none")
	f.Uint64Var(&s.Seed, "seed", 0, "choose the prompts (default: others each time)")
	f.IntVar(&s.Reps, "reps", 1, "repetitions with other prompts; the medians are shown")
	f.StringVar(&s.compare, "compare", "", "address of a second server")
	f.StringVar(&s.compareModel, "compare-model", "", "model of the second server")
	f.StringVar(&s.compareKey, "compare-key", "", "bearer key of the second server (default: that of the first)")
	f.StringVar(&s.json, "json", "", "write the figures as JSON to this file; - is the standard output")
}

func (s *benchSetup) check() error {
	if s.url == "" {
		return errors.New("no server: give its address by --url")
	}
	if s.Reps < 1 {
		return fmt.Errorf("%d repetitions, at least 1 is needed", s.Reps)
	}
	if s.Load.Requests == 0 && s.Load.Duration == 0 {
		s.Load.Requests = 16
	}
	switch s.Scenario {
	case "load":
		return s.Load.Validate()
	case "stall":
		return s.stalled(0).Validate()
	case "prefix":
		return s.repeated(0).Validate()
	}
	return fmt.Errorf("unknown scenario %q, there are load, stall and prefix", s.Scenario)
}

func (s *benchSetup) stalled(rep int) bench.Stalled {
	return bench.Stalled{
		Seed: s.Seed + uint64(rep), PromptWords: s.Load.Dataset.PromptWords, MaxTokens: s.Load.MaxTokens,
		After: s.After, Temperature: s.Load.Temperature, Timeout: s.Load.Timeout,
	}
}

func (s *benchSetup) repeated(rep int) bench.Repeated {
	return bench.Repeated{
		Seed: s.Seed + uint64(rep), PromptWords: s.Load.Dataset.PromptWords, MaxTokens: s.Load.MaxTokens,
		Temperature: s.Load.Temperature, Timeout: s.Load.Timeout,
	}
}

func (s *benchSetup) clients(ctx context.Context) ([]*bench.Client, error) {
	type server struct{ url, model, key string }
	servers := []server{{s.url, s.model, s.key}}
	if s.compare != "" {
		key := s.compareKey
		if key == "" {
			key = s.key
		}
		servers = append(servers, server{s.compare, s.compareModel, key})
	}
	var out []*bench.Client
	for _, one := range servers {
		c, err := bench.NewClient(one.url, one.model, one.key)
		if err != nil {
			return nil, usageError{err}
		}
		if err := c.FindModel(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", c.URL, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// run is one repetition on one server.
func (s *benchSetup) run(ctx context.Context, c *bench.Client, rep int) (*bench.Result, error) {
	if s.Scenario == "stall" {
		return bench.Stall(ctx, c, s.stalled(rep))
	}
	if s.Scenario == "prefix" {
		return bench.Prefix(ctx, c, s.repeated(rep))
	}
	l := s.Load
	l.Dataset.Seed = s.Seed + uint64(rep)
	return bench.Run(ctx, c, l)
}

func runBench(cmd *cobra.Command, s benchSetup) error {
	if err := s.check(); err != nil {
		return usageError{err}
	}
	if !cmd.Flags().Changed("seed") {
		s.Seed = rand.Uint64N(1 << 32)
	}
	s.Load.Dataset.Seed = s.Seed
	ctx := cmd.Context()
	clients, err := s.clients(ctx)
	if err != nil {
		return err
	}
	sides, err := bench.Measure(ctx, clients, s.Reps, s.run)
	if err != nil {
		return err
	}
	report := bench.NewReport(s, sides)
	people := cmd.OutOrStdout()
	if s.json == "-" {
		people = cmd.ErrOrStderr()
	}
	report.WriteTable(people)
	fmt.Fprintf(people, "seed %d, model %s\n", s.Seed, clients[0].Model)
	if err := writeBenchJSON(cmd.OutOrStdout(), s.json, report); err != nil {
		return err
	}
	if n := report.Failures(); n > 0 {
		return fmt.Errorf("%d requests failed", n)
	}
	return nil
}

func writeBenchJSON(stdout io.Writer, path string, report *bench.Report) error {
	switch path {
	case "":
		return nil
	case "-":
		return report.WriteJSON(stdout)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := report.WriteJSON(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
