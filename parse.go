package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"quern/models"
	"quern/models/chat"
	"quern/models/template"
	"quern/models/toolcall"
)

// parseFlags are the flags of quern parse.
type parseFlags struct {
	template, format, tools string
	chunk                   int
	lines                   bool
	cut, oneCall, inThought bool
	stops                   []string
}

func parseCommand() *cobra.Command {
	var p parseFlags
	cmd := &cobra.Command{
		Use:   "parse [MODEL.gguf] < raw.txt",
		Short: "Show what becomes of a model's raw output",
		Long: "Show the items of a response that a model's raw output, on the standard input, becomes.\n" +
			"Special tokens are written out in it. The way calls and thoughts are written is that of\n" +
			"a model, of a chat template or of a format's name; of a model the header is read only.\n" +
			"\n" +
			"With --jsonl each line of the input is an object with id, format, tools and raw, also\n" +
			"thinking, parallel, starts_in_reasoning, finish, stop and plain_at, which are the offsets\n" +
			"of characters where a marker begins that the model spelled in ordinary letters. The output\n" +
			"is a line for each with id, reasoning, text, calls, status and last_item_status.",
		Example: `  quern parse --format hermes --tools tools.json < raw.txt`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.check(args); err != nil {
				return usageError{err}
			}
			if p.lines {
				return parseLines(cmd.InOrStdin(), cmd.OutOrStdout(), p.chunk)
			}
			return p.parse(cmd.InOrStdin(), cmd.OutOrStdout(), args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.template, "template", "", "`file` with a chat template, in place of a model")
	f.StringVar(&p.format, "format", "", "`name` of a tool-call format, in place of a model")
	f.StringVar(&p.tools, "tools", "", "`file` with the request's tools as JSON; without tools nothing is a call")
	f.IntVar(&p.chunk, "chunk", 0, "give the output to the parser in pieces of `N` bytes, 0 being whole")
	f.BoolVar(&p.lines, "jsonl", false, "read and write JSON lines")
	f.BoolVar(&p.cut, "cut", false, "a limit ended the output, not the model")
	f.BoolVar(&p.oneCall, "one-call", false, "as with parallel_tool_calls false")
	f.BoolVar(&p.inThought, "in-reasoning", false, "the prompt left the thoughts open")
	f.StringArrayVar(&p.stops, "stop", nil, "a stop `string` of the request; may be repeated")
	cmd.MarkFlagsMutuallyExclusive("jsonl", "template")
	cmd.MarkFlagsMutuallyExclusive("jsonl", "format")
	cmd.MarkFlagsMutuallyExclusive("jsonl", "tools")
	return cmd
}

// check finds what is missing or given twice.
func (p *parseFlags) check(args []string) error {
	sources := len(args)
	for _, s := range []string{p.template, p.format} {
		if s != "" {
			sources++
		}
	}
	switch {
	case p.chunk < 0:
		return fmt.Errorf("--chunk %d: give a number of bytes, or 0 for all at once", p.chunk)
	case p.lines && sources > 0:
		return fmt.Errorf("--jsonl takes the format from each line, not from a model")
	case !p.lines && sources != 1:
		return fmt.Errorf("quern parse takes one of a model, --template and --format, and got %d", sources)
	}
	return nil
}

// choose is the format and why it is the one.
func (p *parseFlags) choose(args []string) (toolcall.Format, string, error) {
	switch {
	case p.format != "":
		f, err := toolcall.ByName(p.format)
		return f, "asked for by name", err
	case p.template != "":
		src, err := os.ReadFile(p.template)
		if err != nil {
			return toolcall.Format{}, "", fmt.Errorf("chat template: %w", err)
		}
		t, err := template.New(string(src), template.Options{})
		if err != nil { // it can be looked at, though not rendered
			f, why := toolcall.ForTemplate(string(src))
			return f, why, nil
		}
		return models.FormatOf(t)
	}
	card, err := models.Read(args[0], models.Options{})
	if err != nil {
		return toolcall.Format{}, "", err
	}
	return card.Format, card.FormatReason, nil
}

func (p *parseFlags) parse(in io.Reader, out io.Writer, args []string) error {
	format, why, err := p.choose(args)
	if err != nil {
		return err
	}
	c := rawCase{Stop: p.stops, Starts: p.inThought}
	if p.oneCall {
		c.Parallel = new(bool)
	}
	if p.cut {
		c.Finish = finishLength
	}
	if p.tools != "" {
		if c.Tools, err = readTools(p.tools); err != nil {
			return fmt.Errorf("tools: %w", err)
		}
	}
	raw, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read the raw output: %w", err)
	}
	c.Raw = string(raw)
	r := c.read(&format, p.chunk)
	return printJSON(out, struct {
		Format    string       `json:"tool_format"`
		Reason    string       `json:"tool_format_reason"`
		Status    string       `json:"status"`
		Output    []parsedItem `json:"output"`
		Malformed []string     `json:"malformed,omitempty"`
	}{format.Name, why, r.status(), r.items, r.malformed})
}

// declaredTool is a function tool as a request declares it.
type declaredTool struct {
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
}

func readTools(path string) ([]declaredTool, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var tools []declaredTool
	if err := json.Unmarshal(data, &tools); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i := range tools {
		if tools[i].Name == "" {
			return nil, fmt.Errorf("%s: [%d].name is missing: give a list of function tools as in a request's tools", path, i)
		}
	}
	return tools, nil
}

func chatTools(tools []declaredTool) []chat.Tool {
	out := make([]chat.Tool, len(tools))
	for i, t := range tools {
		out[i] = chat.Tool{Name: t.Name, Parameters: t.Parameters}
	}
	return out
}
