package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quern/engine/llama"
	"quern/models/gguf"
	"quern/server/bench/suite"
	"quern/server/capacity"
)

// suiteSetup is what quern bench suite was asked for.
type suiteSetup struct {
	threads, reps       int
	seed                uint64
	llamaServer, ollama string
	programs            []string // NAME=PATH of further programs of ours
	only                []string
	dir, out            string
}

func benchSuiteCommand() *cobra.Command {
	var s suiteSetup
	cmd := &cobra.Command{
		Use:   "suite MODEL.gguf",
		Short: "Measure quern and other servers with the same model, and write a table",
		Long: "Measure quern and other servers with the same model, and write a table in Markdown.\n\n" +
			"Each server is started by itself with the same threads, places and KV cells and else with\n" +
			"its defaults, and all get the same work in turn. Long works are repeated a third as often.\n" +
			"Works: " + strings.Join(workNames(), ", ") + ".\n\nNothing else should run meanwhile.",
		Example: "  quern bench suite model.gguf --llama-server ~/llama.cpp/build/bin/llama-server --threads 2\n" +
			"  quern bench suite model.gguf --only streams-1,streams-8 --reps 5",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("quern bench suite takes one model, and got %d arguments", len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runSuite(cmd, args[0], s) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&s.llamaServer, "llama-server", "", "path of llama-server")
	f.StringVar(&s.ollama, "ollama", "", "path of ollama, or the URL of one that runs")
	f.StringArrayVar(&s.programs, "quern", nil, "NAME=PATH of another quern; repeatable")
	f.IntVar(&s.threads, "threads", 0, "threads of each server; 0: the physical cores this process may use")
	f.IntVar(&s.reps, "reps", 3, "repetitions with other prompts")
	f.Uint64Var(&s.seed, "seed", 0, "choose the prompts (default: others each time)")
	f.StringSliceVar(&s.only, "only", nil, "the works to do (default: all)")
	f.StringVar(&s.dir, "dir", "", "keep the logs of the servers, and the models of Ollama, here (default: they go at the end)")
	f.StringVar(&s.out, "out", "", "write the table to this file as well")
	return cmd
}

func workNames() []string {
	var names []string
	for _, w := range suite.Works(suite.Usual) {
		names = append(names, w.Name)
	}
	return names
}

// works are those that were asked for.
func (s *suiteSetup) works() ([]suite.Work, error) {
	for _, name := range s.only {
		if !slices.Contains(workNames(), name) {
			return nil, usageError{fmt.Errorf("no work is called %q, there are %s", name, strings.Join(workNames(), ", "))}
		}
	}
	return slices.DeleteFunc(suite.Works(suite.Usual), func(w suite.Work) bool {
		return len(s.only) > 0 && !slices.Contains(s.only, w.Name)
	}), nil
}

// peers are the servers, and what is to be said of those that are missing.
func (s *suiteSetup) peers(log io.Writer) (peers []suite.Peer, missing []string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	plain := suite.Quern("quern --spec off", self, log, "--spec", "off")
	plain.Guessing = true
	peers = append(peers, suite.Quern("quern", self, log), plain)
	for _, p := range s.programs {
		name, path, ok := strings.Cut(p, "=")
		if !ok {
			return nil, nil, usageError{fmt.Errorf("--quern %q is not NAME=PATH", p)}
		}
		peers = append(peers, suite.Quern(name, path, log))
	}
	if s.llamaServer == "" {
		missing = append(missing, "llama-server was left out: no path of it was given")
	} else {
		peers = append(peers, suite.LlamaServer(s.llamaServer, log))
	}
	switch {
	case s.ollama == "":
		missing = append(missing, "Ollama was left out: no path or URL of it was given")
	case strings.Contains(s.ollama, "://"):
		peers = append(peers, suite.At("Ollama", s.ollama))
	default:
		peers = append(peers, suite.Ollama(s.ollama, s.dir, log))
	}
	return peers, missing, nil
}

func runSuite(cmd *cobra.Command, model string, s suiteSetup) (err error) {
	works, err := s.works()
	if err != nil {
		return err
	}
	if s.reps < 1 {
		return usageError{fmt.Errorf("%d repetitions, at least 1 is needed", s.reps)}
	}
	if s.threads == 0 {
		s.threads = capacity.Cores()
	}
	if !cmd.Flags().Changed("seed") {
		s.seed = rand.Uint64N(1 << 32)
	}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "quern-bench"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	} else if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.dir, "servers.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	peers, missing, err := s.peers(log)
	if err != nil {
		return err
	}
	roof, err := suiteRoof(model, s.threads)
	if err != nil {
		return err
	}
	report, err := suite.Run(cmd.Context(), suite.Options{
		Peers: peers, Works: works, Setup: suite.Setup{Model: model, Threads: s.threads}, Reps: s.reps, Seed: s.seed, Dir: s.dir,
		Logger: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)),
	})
	report.Roof, report.Notes = roof, append(report.Notes, missing...)
	report.Notes = append(report.Notes, fmt.Sprintf("%s, %d threads, %d repetitions, seed %d; the roof: %.1f tok/s of one stream, %.0f tok/s of prefill",
		filepath.Base(model), s.threads, s.reps, s.seed, roof.Decode, roof.Prefill))
	return errors.Join(err, s.write(cmd.OutOrStdout(), report))
}

// suiteRoof is what the machine allows the model.
func suiteRoof(model string, threads int) (suite.Roof, error) {
	f, err := gguf.Open(model)
	if err != nil {
		return suite.Roof{}, err
	}
	roof, err := llama.MeasureRoof(threads)
	if err != nil {
		return suite.Roof{}, err
	}
	var r roofReport
	r.of(roof, f.Work(f.Info()))
	return suite.Roof{Decode: r.DecodeTokens, Prefill: r.PrefillTokens}, nil
}

func (s *suiteSetup) write(stdout io.Writer, report *suite.Report) error {
	if err := report.WriteMarkdown(stdout); err != nil || s.out == "" {
		return err
	}
	f, err := os.Create(s.out)
	if err != nil {
		return err
	}
	return errors.Join(report.WriteMarkdown(f), f.Close())
}
