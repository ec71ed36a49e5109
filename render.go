package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"quern/cgo"
	"quern/models"
	"quern/server"
	"quern/tokenizer"
)

func renderCommand() *cobra.Command {
	var asJSON, lines bool
	var o models.Options
	var templateFile, dir string
	cmd := &cobra.Command{
		Use:   "render [MODEL.gguf] < request.json",
		Short: "Show the prompt that a model's template makes of a request",
		Long: "Show the prompt that a model's template makes of a request, which is a body of\n" +
			"POST /v1/responses on the standard input: its text, its tokens, and the grammar\n" +
			"that the answer is held to, if any. Only the vocabulary is loaded.\n" +
			"\n" +
			"With --template no model is needed, and the text alone is shown. With --jsonl each line\n" +
			"of the input is an object with id, template (a file in the folder of --templates) and\n" +
			"request, and each line of the output one with id and prompt, or id, status and error.",
		Example: `  echo '{"input":"Hello"}' | quern render model.gguf`,
		Args: func(cmd *cobra.Command, args []string) error {
			if lines || templateFile != "" {
				if len(args) > 0 {
					return usageError{fmt.Errorf("quern render takes a model, --template or --jsonl, and got %q beside one of the flags", args[0])}
				}
				return nil
			}
			return modelArgument(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case lines:
				return renderLines(cmd.InOrStdin(), cmd.OutOrStdout(), dir)
			case templateFile != "":
				return renderTemplate(cmd.InOrStdin(), cmd.OutOrStdout(), templateFile)
			}
			card, err := models.Read(args[0], o)
			if err != nil {
				return err
			}
			body, err := io.ReadAll(cmd.InOrStdin())
			if err != nil {
				return fmt.Errorf("read the request: %w", err)
			}
			t, err := loadTokenizer(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			m := &server.Model{ID: card.ID, Template: card.Template, Format: card.Format, Tokenizer: t}
			r, err := m.Render(body)
			if err != nil {
				return fmt.Errorf("the request: %w", err)
			}
			if asJSON {
				return renderJSON(cmd.OutOrStdout(), r)
			}
			renderText(cmd.OutOrStdout(), t, r)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	cmd.Flags().StringVar(&o.TemplateFile, "chat-template", "", "`file` with a chat template, in place of the model's own")
	cmd.Flags().StringVar(&o.ToolFormat, "tool-format", "", "`name` of the tool-call format, in place of the one that the template shows")
	cmd.Flags().StringVar(&templateFile, "template", "", "`file` with a chat template, in place of a model")
	cmd.Flags().BoolVar(&lines, "jsonl", false, "read and write JSON lines")
	cmd.Flags().StringVar(&dir, "templates", ".", "`folder` of the templates that lines name")
	cmd.MarkFlagsMutuallyExclusive("jsonl", "template")
	return cmd
}

// loadTokenizer reads a vocabulary and leaves the weights where they are. It
// stays loaded until the program ends.
func loadTokenizer(ctx context.Context, path string) (*tokenizer.Tokenizer, error) {
	m, err := cgo.LoadModel(ctx, path, cgo.LoadOptions{VocabOnly: true})
	if err != nil {
		return nil, err
	}
	return tokenizer.New(m.Vocab()), nil
}

func renderJSON(out io.Writer, r server.Rendering) error {
	return printJSON(out, struct {
		Prompt   string            `json:"prompt"`
		TokenIDs []tokenizer.Token `json:"token_ids"`
		Grammar  string            `json:"grammar,omitempty"`
	}{r.Prompt, r.Tokens, r.Grammar})
}

// renderText prints the prompt as it is, then the tokens, some to a line.
func renderText(out io.Writer, t *tokenizer.Tokenizer, r server.Rendering) {
	fmt.Fprintln(out, r.Prompt)
	fmt.Fprintf(out, "\n-- %d tokens\n", len(r.Tokens))
	var line strings.Builder
	for _, id := range r.Tokens {
		item := fmt.Sprintf("%d %s", id, strconv.Quote(string(t.Piece(id))))
		if line.Len() > 0 && line.Len()+len(item) > 90 {
			fmt.Fprintln(out, line.String())
			line.Reset()
		}
		if line.Len() > 0 {
			line.WriteString("  ")
		}
		line.WriteString(item)
	}
	fmt.Fprintln(out, line.String())
	if r.Grammar != "" {
		fmt.Fprintf(out, "\n-- grammar\n%s\n", r.Grammar)
	}
}
