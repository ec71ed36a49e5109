package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"quern/server/config"
)

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve [MODEL.gguf]",
		Short: "Load a model and serve it over HTTP",
		Long: "Load a model and serve it over HTTP.\n\n" +
			"Every flag is also an environment variable (--ctx-size is QUERN_CTX_SIZE) and a key of\n" +
			"the YAML file that --config names (ctx-size: 16384). A flag stands above the variable,\n" +
			"the variable above the file. Lists are separated by commas in a variable.",
		Example: "  quern serve model.gguf\n" +
			"  quern serve model.gguf --addr :8080 --api-key-file keys --ctx-size 32768 --kv-type q8_0",
	}
	cfg := config.Bind(cmd.Flags())
	cmd.Flags().SortFlags = false
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usageError{fmt.Errorf("quern serve serves one model, and got %d arguments", len(args))}
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			if cmd.Flags().Changed("model") {
				return usageError{errors.New("the model is given twice, as argument and as --model")}
			}
			if err := cmd.Flags().Set("model", args[0]); err != nil {
				return err
			}
		}
		if err := cfg.Load(os.Environ()); err != nil {
			return usageError{err}
		}
		if cfg.Model == "" {
			return usageError{errors.New("no model: give the path of a GGUF file, as in quern serve model.gguf (make run fetches one)")}
		}
		logger := newLogger(cmd.ErrOrStderr(), cfg)
		logger.Info("config", "config", cfg)
		for _, w := range cfg.Warnings() {
			logger.Warn(w)
		}
		return serve(cmd.Context(), cfg, logger, cmd.OutOrStdout())
	}
	return cmd
}

// newLogger is the one logger of a node, in the form that the config names.
func newLogger(out io.Writer, cfg *config.Config) *slog.Logger {
	o := &slog.HandlerOptions{Level: cfg.LogLevel}
	if cfg.LogFormat == "json" {
		o.ReplaceAttr = inMilliseconds
		return slog.New(slog.NewJSONHandler(out, o))
	}
	return slog.New(slog.NewTextHandler(out, o))
}

// inMilliseconds gives durations a unit in JSON, where slog writes a bare count
// of nanoseconds: "ttft" becomes "ttft_ms".
func inMilliseconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	return slog.Float64(a.Key+"_ms", float64(a.Value.Duration().Microseconds())/1000)
}
