// Command quern is an LLM inference node: it loads a GGUF model and serves it
// under the OpenAI Responses API.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes: a command that was asked wrongly is told apart from one that failed.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks to end; after it a second one ends at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:           "quern",
		Short:         "Serve a GGUF model under the OpenAI Responses API",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(serveCommand(), planCommand(), keysCommand(), showCommand(), renderCommand(), parseCommand(), benchCommand(), versionCommand())
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)

	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "quern: %s\n", strings.TrimSpace(err.Error()))
	// Cobra has no type for the error of an unknown command.
	if _, ok := errors.AsType[usageError](err); ok || strings.HasPrefix(err.Error(), "unknown command") {
		fmt.Fprintf(stderr, "See %s --help.\n", cmd.CommandPath())
		return exitUsage
	}
	return exitFailed
}

// usageError is the fault of who typed the command.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }
