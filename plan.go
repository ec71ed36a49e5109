package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"quern/engine/llama"
	"quern/models"
	"quern/models/gguf"
	"quern/server/capacity"
	"quern/server/config"
)

func planCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plan MODEL.gguf",
		Short: "Show what serving a model would take of memory",
		Long: "Show what serving a model would take of memory, from its header and this machine. It takes\n" +
			"the flags of serve, loads nothing, and ends with code 2 if serve would refuse.",
		Example: "  quern plan model.gguf\n  quern plan model.gguf --ctx-size 131072 --kv-type q8_0 --json",
		Args:    modelArgument,
	}
	cfg := config.Bind(cmd.Flags())
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON, in bytes")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := cmd.Flags().Set("model", args[0]); err != nil {
			return err
		}
		if err := cfg.Load(os.Environ()); err != nil {
			return usageError{err}
		}
		card, err := models.Read(cfg.Model, models.Options{TemplateFile: cfg.ChatTemplate, ToolFormat: cfg.ToolFormat})
		if err != nil {
			return err
		}
		p, err := makePlan(cfg, card, capacity.Memory(), capacity.Swap())
		if err != nil {
			return err
		}
		if asJSON {
			err = printJSON(cmd.OutOrStdout(), planResult(p))
		} else {
			showPlan(cmd.OutOrStdout(), p)
		}
		return errors.Join(err, refusal(cfg, p))
	}
	return cmd
}

// makePlan asks the header of the model, and of its draft model, what they take.
func makePlan(cfg *config.Config, card *models.Card, available, swap int64) (capacity.Plan, error) {
	ask := capacity.Ask{
		Cells: cfg.CtxSize, Parallel: cfg.Parallel, Sequences: llama.Sequences(cfg.Parallel),
		UBatch: cfg.UBatch, AnyUBatch: !cfg.IsSet("ubatch"),
		KVType: cfg.KVType, Flash: cfg.FlashAttn != "off", AnyForm: cfg.MMap, CacheRAM: int64(cfg.CacheRAM),
	}
	if cfg.CacheRAM == config.AutoSize {
		ask.CacheRAM = -1
	}
	m := sizes(card.Info, card.Tensors, cfg.MMap)
	if drafts(cfg) {
		f, err := gguf.Open(cfg.Draft)
		if err != nil {
			return capacity.Plan{}, fmt.Errorf("draft: %w", err)
		}
		d := sizes(f.Info(), f.Tensors, cfg.MMap)
		m.Draft, m.Odd = &d, m.Odd || d.Odd
		m.FileBytes, m.WeightBytes, m.Copied = m.FileBytes+d.FileBytes, m.WeightBytes+d.WeightBytes, m.Copied+d.Copied
	}
	if cfg.Fit == "off" {
		ask.AnyUBatch, ask.AnyForm = false, false // nothing else is changed to make it fit
	}
	return capacity.Fit(m, ask, available, swap)
}

// sizes is a model as capacity knows one.
func sizes(i gguf.Info, tensors []gguf.Tensor, mapped bool) capacity.Model {
	m := capacity.Model{
		HeadsKV: i.HeadsKVAll, HeadDimK: i.KeyLength, HeadDimV: i.ValueLength, TrainContext: i.ContextLength,
		Embedding: i.EmbeddingLength, FeedForward: i.FeedForward, Heads: i.Heads, Vocab: i.VocabSize,
		FileBytes: i.FileSize * int64(max(1, i.SplitCount)), StateBytes: 4 * int64(i.StateValues), Odd: i.OddCache || i.SplitCount > 1,
	}
	var plain int64 // of tensors that lie in memory as they lie in the file
	tied := true
	for _, t := range tensors {
		tied = tied && t.Name != "output.weight"
	}
	for _, t := range tensors {
		bytes, _ := t.Bytes()
		copied := copyOf(t, i.ExpertsUsed)
		if t.Name == embeddingTensor {
			plain += bytes
			if tied {
				m.Copied += llama.CopiedBytes(uint32(t.Type), t.Dims, 0)
			}
			continue
		}
		m.Copied += copied
		if copied == 0 {
			plain += bytes
		}
	}
	if i.SplitCount > 1 { // the other parts' tensors are not known
		plain, m.Copied = m.FileBytes, 0
	}
	if !mapped {
		plain, m.Copied = 0, m.Copied+plain
	}
	m.WeightBytes = plain + m.Copied
	return m
}

const embeddingTensor = "token_embd.weight"

// copyOf is what a tensor takes in a form of its own beside the file; 0 for what
// is read as the file has it: embeddings are looked up, vectors are added.
func copyOf(t gguf.Tensor, experts int) int64 {
	switch {
	case !strings.HasSuffix(t.Name, ".weight") || strings.Contains(t.Name, "_embd") && t.Name != "output.weight":
		return 0
	case len(t.Dims) == 3 && strings.Contains(t.Name, "_exps"):
		return llama.CopiedBytes(uint32(t.Type), t.Dims, experts)
	case len(t.Dims) == 2:
		return llama.CopiedBytes(uint32(t.Type), t.Dims, 0)
	}
	return 0
}

// refusal is the error of a plan that can't work, unless the config wants it tried.
func refusal(cfg *config.Config, p capacity.Plan) error {
	if err := p.Check(); err != nil && cfg.Fit != "off" {
		return usageError{fmt.Errorf("memory: %w; --fit off tries it as it is", err)}
	}
	return nil
}

// planned is what serve goes by: the plan, logged with what is not well about it.
func (n *node) planned() (capacity.Plan, error) {
	p, err := makePlan(n.cfg, n.card, capacity.Memory(), capacity.Swap())
	if err != nil {
		return p, err
	}
	n.logger.Info("memory plan", "cells", p.Cells, "limit", p.Limit, "ubatch", p.UBatch, "mapped_weights", p.Mapped,
		"copied_weights", p.Copied, "kv", p.KV, "state", p.State, "sequences", p.Seqs, "compute", p.Compute, "logits", p.Logits, "prefixes", p.Prefixes,
		"program", p.Program, "available", p.Available, "swap", p.Swap, "rough", p.Rough)
	if err := refusal(n.cfg, p); err != nil {
		return p, err
	}
	for _, w := range p.Warnings() {
		n.logger.Warn(w)
	}
	if err := p.Check(); err != nil {
		n.logger.Warn("this will probably not work: " + err.Error())
	}
	return p, nil
}

// planResult is a plan with the words that go with it.
func planResult(p capacity.Plan) any {
	r := struct {
		capacity.Plan
		Firm     int64    `json:"firm"` // of all that, from the start
		Busy     int64    `json:"busy"` // under load, without prefixes
		Fits     bool     `json:"fits"`
		Problem  string   `json:"problem,omitempty"`
		Warnings []string `json:"warnings"`
	}{p, p.Firm(), p.Busy(), true, "", append([]string{}, p.Warnings()...)}
	if err := p.Check(); err != nil {
		r.Fits, r.Problem = false, err.Error()
	}
	return r
}

func showPlan(out io.Writer, p capacity.Plan) {
	t := newTable(out, "what", "MiB", "")
	row := func(name string, bytes int64, remark string) {
		t.AppendRow(table.Row{name, (bytes + 1<<19) >> 20, remark})
	}
	row("mapped weights", p.Mapped, "pages of the file, dropped and read again when memory is short")
	row("copied weights", p.Copied, "packed for this CPU")
	row("KV cache", p.KV, fmt.Sprintf("%d cells (%s), %s%s", p.Cells, p.Limit, p.KVType, atMost(p)))
	if p.State > 0 {
		row("state", p.State, fmt.Sprintf("of recurrent layers, for each of %d sequences", p.Seqs))
	}
	row("program", p.Program, "and requests in flight")
	row("from the start", p.Firm(), "all but the mapped weights: it can't be dropped")
	row("computing", p.Compute, fmt.Sprintf("%d rows at once; grows with use", p.UBatch))
	row("logits", p.Logits, "a row for each sequence; grows with use")
	row("prefixes", p.Prefixes, "that leave the KV cache; grows with use")
	row("free", p.Available, "on this machine, or in this container")
	if p.Swap > 0 {
		row("swap", p.Swap, "")
	}
	t.Render()
	for _, w := range p.Warnings() {
		fmt.Fprintln(out, w)
	}
}

func atMost(p capacity.Plan) string {
	if p.Rough {
		return ", at most"
	}
	return ""
}
