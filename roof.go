package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"quern/cgo"
	"quern/engine/llama"
	"quern/models/gguf"
	"quern/server/capacity"
)

// roofReport is what a machine can do at most, and what that means for a model.
type roofReport struct {
	Threads       int     `json:"threads"`
	ReadBytes     float64 `json:"read_bytes_per_s"`
	FloatProducts float64 `json:"float_products_per_s"`
	Int8Products  float64 `json:"int8_products_per_s,omitempty"`

	DecodeTokens  float64 `json:"decode_tokens_per_s,omitempty"`  // one stream
	PrefillTokens float64 `json:"prefill_tokens_per_s,omitempty"` // a short prompt: without attention
}

func benchRoofCommand() *cobra.Command {
	var threads int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "roof [MODEL.gguf]",
		Short: "Measure how fast this machine can be at most, and a model on it",
		Long: "Measure how fast this machine can be at most: bytes read from memory, and products.\n" +
			"Decoding one stream reads all weights for each token, and prefill multiplies all of them\n" +
			"for each token, so these are roofs for a model's speed. With a model they are given in\n" +
			"tokens a second. Nothing else should run meanwhile.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if threads == 0 {
				threads = capacity.Cores()
			}
			roof, err := llama.MeasureRoof(threads)
			if err != nil {
				return err
			}
			report := roofReport{Threads: threads, ReadBytes: roof.ReadBytes, FloatProducts: roof.FloatProducts, Int8Products: roof.Int8Products}
			if len(args) == 1 {
				f, err := gguf.Open(args[0])
				if err != nil {
					return err
				}
				report.of(roof, f.Work(f.Info()))
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(report)
			}
			report.write(cmd.OutOrStdout())
			return nil
		},
	}
	cmd.Flags().IntVar(&threads, "threads", 0, "threads; 0: the physical cores this process may use")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// of works out what the machine allows a model. Prefill is held against the
// faster of the two kinds of products.
func (r *roofReport) of(roof cgo.Roof, w gguf.Work) {
	if w.DecodeBytes > 0 {
		r.DecodeTokens = roof.ReadBytes / float64(w.DecodeBytes)
	}
	if w.Products > 0 {
		r.PrefillTokens = max(roof.FloatProducts, roof.Int8Products) / float64(w.Products)
	}
}

func (r *roofReport) write(out io.Writer) {
	fmt.Fprintf(out, "on %d threads\n  memory   %.1f GB/s read\n  f32      %.0f G products/s\n", r.Threads, r.ReadBytes/1e9, r.FloatProducts/1e9)
	if r.Int8Products > 0 {
		fmt.Fprintf(out, "  int8     %.0f G products/s\n", r.Int8Products/1e9)
	}
	if r.DecodeTokens > 0 {
		fmt.Fprintf(out, "at most\n  decode   %.1f tok/s, one stream\n  prefill  %.0f tok/s, without attention\n", r.DecodeTokens, r.PrefillTokens)
	}
}
