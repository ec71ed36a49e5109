package main

import (
	"fmt"
	"io"
	"net"
	"time"

	"quern/engine"
	"quern/engine/llama"
	"quern/server/capacity"
)

// size turns the configuration and the plan into the sizes of a context.
func (n *node) size(p capacity.Plan) llama.Options {
	cfg := n.cfg
	o := llama.Options{
		Cells: p.Cells, Parallel: cfg.Parallel, Threads: cfg.Threads, Batch: cfg.Batch, UBatch: p.UBatch,
		KVType: cfg.KVType, FlashAttn: cfg.FlashAttn, NoMMap: !cfg.MMap, NoRepack: p.Unpacked, Sequences: p.Seqs,
	}
	if o.Threads == 0 {
		o.Threads = capacity.Cores()
	}
	return o
}

// greet says what is served, and how to try it.
func (n *node) greet(out io.Writer, addr net.Addr, plan capacity.Plan, b *llama.Backend, eng *engine.Engine, took time.Duration) {
	p, name := b.Params(), n.card.ID
	n.logger.Info("ready", "model", name, "addr", addr.String(), "cells", p.Ctx, "kv_type", p.KVType,
		"kv_bytes", b.KVBytes(), "threads", p.Threads, "parallel", n.cfg.Parallel, "context", eng.MaxLength(),
		"cache_ram", eng.Stats().RAM.Capacity, "format", n.card.Format.Name, "format_reason", n.card.FormatReason, "took", took.Round(time.Millisecond))
	if asked := n.cfg.CtxSize; asked != 0 && asked != p.Ctx {
		n.logger.Warn("the context has another size than ctx-size says: llama.cpp rounds it", "ctx_size", asked, "cells", p.Ctx)
	}
	if n.cfg.LogFormat != "text" {
		return
	}
	fmt.Fprintf(out, `
  model     %s (%s, %s, %s)
  context   %d tokens a request, %d KV cells in all (%s, %s)
  memory    %s
  prefixes  %s
  running   %d requests at once on %d threads
  tools     %s (%s)
  serving   http://%s/v1

Try it:
  curl http://%s/v1/responses%s -H 'Content-Type: application/json' -d '{"input":"What is the capital of France?"}'

`, name, n.card.Info.Name, n.card.Info.Quantization, mebi(n.card.Info.FileSize),
		eng.MaxLength(), p.Ctx, p.KVType, mebi(b.KVBytes()), memoryLine(plan), prefixes(eng.Stats(), n.cfg.CacheDir), n.cfg.Parallel, p.Threads,
		n.card.Format.Name, n.card.FormatReason, addr, addr, n.keyHeader())
}

// keyHeader is what a curl adds where keys are set.
func (n *node) keyHeader() string {
	if len(n.cfg.APIKeys) == 0 && n.cfg.APIKeyFile == "" && n.cfg.KeysFile == "" {
		return ""
	}
	return " -H 'Authorization: Bearer KEY'"
}

// memoryLine says what is taken from the start, what comes with use, and what there is.
func memoryLine(p capacity.Plan) string {
	text := fmt.Sprintf("%s of weights, %s of KV cache, up to %s to compute", mebi(p.Mapped+p.Copied), mebi(p.KV), mebi(p.Compute+p.Logits))
	if p.Available > 0 {
		text += ", of " + mebi(p.Available) + " free"
	}
	return text
}

// prefixes says where what leaves the KV cache is kept.
func prefixes(s engine.Stats, dir string) string {
	switch {
	case s.RAM.Capacity == 0:
		return "in the KV cache only"
	case s.Disk.Capacity == 0:
		return "up to " + mebi(s.RAM.Capacity) + " of memory beside the KV cache"
	}
	return "up to " + mebi(s.RAM.Capacity) + " of memory beside the KV cache, " + mebi(s.Disk.Bytes) + " of " + mebi(s.Disk.Capacity) + " in " + dir
}

func mebi(bytes int64) string { return fmt.Sprintf("%d MiB", (bytes+1<<19)>>20) }
