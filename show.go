package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"quern/models"
	"quern/models/gguf"
)

func showCommand() *cobra.Command {
	var asJSON, metadata, tensors, template bool
	cmd := &cobra.Command{
		Use:   "show MODEL.gguf",
		Short: "Show what the header of a model file says",
		Long: "Show what the header of a model file says: name, size, context, template, special tokens.\n" +
			"The weights are not read.",
		Args: modelArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := gguf.Open(args[0])
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				return showJSON(out, f)
			}
			if template {
				fmt.Fprintln(out, f.Info().ChatTemplate)
				return nil
			}
			showInfo(out, args[0], f.Info())
			if metadata {
				showMetadata(out, f)
			}
			if tensors {
				showTensors(out, f)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print everything as JSON")
	cmd.Flags().BoolVar(&metadata, "metadata", false, "print all metadata as well")
	cmd.Flags().BoolVar(&tensors, "tensors", false, "print the list of tensors as well")
	cmd.Flags().BoolVar(&template, "template", false, "print only the chat template")
	cmd.MarkFlagsMutuallyExclusive("json", "template")
	return cmd
}

// modelArgument wants the path of one model and nothing else.
func modelArgument(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%s takes one argument, the path of a GGUF file, and got %d", cmd.CommandPath(), len(args))}
	}
	return nil
}

func newTable(out io.Writer, header ...any) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = 0 // as written
	if len(header) > 0 {
		t.AppendHeader(header)
	}
	return t
}

func showInfo(out io.Writer, path string, i gguf.Info) {
	t := newTable(out)
	row := func(name, value string) {
		if value != "" && value != "0" {
			t.AppendRow(table.Row{name, printable(value, 100)})
		}
	}
	row("name", i.Name)
	row("kind", i.Kind)
	row("architecture", i.Architecture)
	row("license", i.License)
	row("parameters", count(i.Parameters))
	row("quantization", i.Quantization)
	row("file size", fmt.Sprintf("%.1f MiB", float64(i.FileSize)/(1<<20)))
	row("files", strconv.Itoa(i.SplitCount))
	row("context length", strconv.Itoa(i.ContextLength))
	row("layers", strconv.Itoa(i.Layers))
	row("embedding", strconv.Itoa(i.EmbeddingLength))
	row("heads", heads(i))
	row("sliding window", strconv.Itoa(i.SlidingWindow))
	if i.Experts > 0 {
		row("experts", fmt.Sprintf("%d, %d used", i.Experts, i.ExpertsUsed))
	}
	row("vocabulary", strings.TrimSpace(fmt.Sprintf("%d %s %s", i.VocabSize, i.TokenizerModel, i.TokenizerPre)))
	for _, s := range i.Specials {
		row("token "+s.Name, fmt.Sprintf("%d %s", s.ID, s.Text))
	}
	for _, kv := range i.Sampling {
		row("sampling "+kv.Key, kv.Value.String())
	}
	row("chat template", templateLine(i))
	row("tool format", formatLine(path))
	t.Render()
}

// formatLine says how the model writes calls, as serving it would.
func formatLine(path string) string {
	card, err := models.Read(path, models.Options{})
	if err != nil {
		return "unknown: " + err.Error()
	}
	return card.Format.Name + " (" + card.FormatReason + ")"
}

func heads(i gguf.Info) string {
	if i.Heads == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d, %d for keys and values", i.Heads, i.KeyLength, i.HeadsKV)
}

func templateLine(i gguf.Info) string {
	if i.ChatTemplate == "" {
		return "none"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d bytes (--template prints it)", len(i.ChatTemplate))
	for _, t := range i.ChatTemplates {
		b.WriteString(", also " + t.Name)
	}
	return b.String()
}

func showMetadata(out io.Writer, f *gguf.File) {
	t := newTable(out, "key", "type", "value")
	for _, kv := range f.KV {
		t.AppendRow(table.Row{printable(kv.Key, 80), kv.Value.Type, printable(kv.Value.String(), 80)})
	}
	t.Render()
}

func showTensors(out io.Writer, f *gguf.File) {
	t := newTable(out, "tensor", "type", "shape")
	for _, x := range f.Tensors {
		t.AppendRow(table.Row{printable(x.Name, 80), x.Type, fmt.Sprint(x.Dims)})
	}
	t.Render()
}

// showJSON prints the facts under their names, then all metadata in file order.
func showJSON(out io.Writer, f *gguf.File) error {
	i := f.Info()
	type special struct {
		Name string `json:"name"`
		ID   int64  `json:"id"`
		Text string `json:"text"`
	}
	type entry struct {
		Key   string `json:"key"`
		Type  string `json:"type"`
		Value string `json:"value"`
	}
	type tensor struct {
		Name  string   `json:"name"`
		Type  string   `json:"type"`
		Shape []uint64 `json:"shape"`
	}
	shown := struct {
		Name          string    `json:"name"`
		Architecture  string    `json:"architecture"`
		Parameters    uint64    `json:"parameters"`
		Quantization  string    `json:"quantization"`
		FileSize      int64     `json:"file_size"`
		ContextLength int       `json:"context_length"`
		Layers        int       `json:"layers"`
		Embedding     int       `json:"embedding_length"`
		Heads         int       `json:"heads"`
		HeadsKV       int       `json:"heads_kv"`
		KeyLength     int       `json:"key_length"`
		ValueLength   int       `json:"value_length"`
		VocabSize     int       `json:"vocab_size"`
		Specials      []special `json:"special_tokens"`
		ChatTemplate  string    `json:"chat_template"`
		Metadata      []entry   `json:"metadata"`
		Tensors       []tensor  `json:"tensors"`
	}{
		i.Name, i.Architecture, i.Parameters, i.Quantization, i.FileSize, i.ContextLength, i.Layers, i.EmbeddingLength,
		i.Heads, i.HeadsKV, i.KeyLength, i.ValueLength, i.VocabSize, []special{}, i.ChatTemplate, []entry{}, []tensor{},
	}
	for _, s := range i.Specials {
		shown.Specials = append(shown.Specials, special(s))
	}
	for _, kv := range f.KV {
		shown.Metadata = append(shown.Metadata, entry{kv.Key, kv.Value.Type.String(), kv.Value.String()})
	}
	for _, t := range f.Tensors {
		shown.Tensors = append(shown.Tensors, tensor{t.Name, t.Type.String(), t.Dims})
	}
	return printJSON(out, shown)
}

func printJSON(out io.Writer, value any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// count is a number of weights as people write it.
func count(n uint64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f B", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	}
	return strconv.FormatUint(n, 10)
}

// printable is the first limit characters of a text on one line. A file's text
// reaches a terminal, so what could steer it is replaced.
func printable(s string, limit int) string {
	n := 0
	var b strings.Builder
	for _, r := range s {
		if n++; n > limit {
			b.WriteString("…")
			break
		}
		if !unicode.IsPrint(r) {
			r = '·'
		}
		b.WriteRune(r)
	}
	return b.String()
}
