package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"quern/engine"
	"quern/engine/llama"
)

// openDrafter loads the draft model, if there shall be one: nil without an error
// means none.
func (n *node) openDrafter(ctx context.Context, model *llama.Backend, size llama.Options) (engine.Backend, error) {
	if n.cfg.Draft == "" || n.cfg.Spec == "off" {
		return nil, nil
	}
	size.Cells = model.Params().Ctx
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

// draftBytes is what the weights of the draft model take.
func (n *node) draftBytes() int64 {
	if n.cfg.Draft == "" || n.cfg.Spec == "off" {
		return 0
	}
	info, err := os.Stat(n.cfg.Draft)
	if err != nil {
		return 0 // loading it says so
	}
	return info.Size()
}
