package main

import (
	"context"
	"errors"
	"fmt"

	"quern/engine"
	"quern/engine/llama"
	"quern/server/config"
)

// openDrafter loads the draft model, if there shall be one: nil without an error
// means none.
func (n *node) openDrafter(ctx context.Context, model *llama.Backend, size llama.Options) (engine.Backend, error) {
	if !drafts(n.cfg) {
		return nil, nil
	}
	p := model.Params()
	size.Cells, size.Threads, size.ThreadsBatch, size.UBatch, size.Tune = p.Ctx, p.Threads, p.ThreadsBatch, p.UBatch, nil
	n.logger.Info("loading the draft model", "model", n.cfg.Draft)
	d, err := llama.Open(ctx, n.cfg.Draft, size)
	if err != nil {
		return nil, fmt.Errorf("draft: %w", err)
	}
	if err := model.CheckDraft(d); err != nil {
		return nil, errors.Join(fmt.Errorf("draft %s: %w", n.cfg.Draft, err), d.Close())
	}
	return d, nil
}

// drafts tells whether a second model guesses.
func drafts(cfg *config.Config) bool { return cfg.Draft != "" && cfg.Spec != "off" }
