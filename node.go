package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"quern/engine"
	"quern/engine/llama"
	"quern/models"
	"quern/server"
	"quern/server/config"
	"quern/server/keys"
	"quern/server/store"
	"quern/tokenizer"
)

// node is one served model: what serve starts and stops.
type node struct {
	cfg    *config.Config
	logger *slog.Logger
	card   *models.Card
	api    *server.Server
	http   *http.Server
}

// serve runs a node until ctx ends, then drains it. It listens before it loads,
// so that a health check sees 503 instead of a refused connection.
func serve(ctx context.Context, cfg *config.Config, logger *slog.Logger, out io.Writer) (err error) {
	if err := llama.CheckCPU(); err != nil {
		return err
	}
	llama.SetLogger(logger)
	card, err := models.Read(cfg.Model, models.Options{TemplateFile: cfg.ChatTemplate, ToolFormat: cfg.ToolFormat})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return cannotListen(err)
	}
	key, err := sealKey(cfg.SealKeyFile, logger)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	ring, err := keys.Open(keys.Sources{Fixed: cfg.Keys(), Plain: cfg.APIKeyFile, File: cfg.KeysFile, Ledger: cfg.KeysLedger})
	if err != nil {
		return errors.Join(fmt.Errorf("keys: %w", err), listener.Close())
	}
	stopWatching := watchKeys(ring, logger)
	defer func() { stopWatching(); err = errors.Join(err, ring.Close()) }()
	responses, err := openStore(cfg, logger)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if responses != nil {
		defer func() { err = errors.Join(err, responses.Close()) }()
	}
	n := &node{cfg: cfg, logger: logger, card: card, api: newAPI(cfg, ring, key, responses, logger)}
	n.http = &http.Server{
		Handler: n.api.Handler(), ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 5 * time.Minute,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	start, served := time.Now(), make(chan error, 1)
	go func() { served <- n.http.Serve(listener) }()

	eng, err := n.load(ctx, listener.Addr(), out)
	if err != nil {
		return errors.Join(err, n.http.Close())
	}
	select {
	case err = <-served:
		err = fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
		err = n.drain()
	}
	err = errors.Join(err, eng.Close())
	logger.Info("stopped", "served", time.Since(start).Round(time.Millisecond))
	return err
}

// cannotListen says what to do about the usual cause.
func cannotListen(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: choose another one with --addr, or stop what listens there", err)
	}
	return err
}

func newAPI(cfg *config.Config, ring *keys.Ring, sealKey []byte, responses *store.Store, logger *slog.Logger) *server.Server {
	return server.New(server.Config{
		SealKey: sealKey, Store: responses,
		Keys: ring, MetricsByKey: cfg.MetricsByKey, Node: factsOf(cfg), Contract: cfg.Contract, MaxBody: int64(cfg.MaxBody),
		Limits: server.Limits{
			Depth: cfg.MaxDepth, Items: cfg.MaxItems, Tools: cfg.MaxTools, Text: int64(cfg.MaxText), Images: int64(cfg.MaxImages),
		},
		MaxSockets: cfg.MaxSockets, SocketIdle: cfg.SocketIdle, SocketLife: cfg.SocketLife,
		RequestTimeout: cfg.RequestTimeout, Version: version, Logger: logger, LogPrompts: cfg.LogPrompts,
		MaxOutputTokens: cfg.MaxOutputTokens, CacheIsolation: cfg.CacheIsolation,
	})
}

// load makes the model answer: weights, context, engine, tokenizer.
func (n *node) load(ctx context.Context, addr net.Addr, out io.Writer) (*engine.Engine, error) {
	start := time.Now()
	plan, err := n.planned()
	if err != nil {
		return nil, err
	}
	size := n.size(plan)
	n.tune(&size)
	n.logger.Info("loading", "model", n.card.Path, "bytes", n.card.Info.FileSize)
	backend, err := llama.Open(ctx, n.card.Path, size)
	if err != nil {
		return nil, err
	}
	drafter, err := n.openDrafter(ctx, backend, size)
	if err != nil {
		return nil, errors.Join(err, backend.Close())
	}
	eng := engine.New(backend, engine.Config{
		MaxRunning: n.cfg.Parallel, MaxQueue: queueLength(n.cfg.MaxQueue), MaxLength: n.card.Info.ContextLength, Logger: n.logger,
		MaxDraft: n.maxDraft(), Drafter: drafter,
		CacheRAM: plan.Prefixes, Store: openPrefixes(n.cfg, backend, n.logger),
	})
	n.api.SetModel(n.model(backend, eng))
	n.greet(out, addr, plan, backend, eng, time.Since(start))
	return eng, nil
}

// maxDraft is how many tokens the engine may guess ahead; 0: none.
func (n *node) maxDraft() int {
	if n.cfg.Spec == "off" {
		return 0
	}
	return n.cfg.SpecMax
}

// queueLength is in the engine's terms, where 0 means its default.
func queueLength(configured int) int {
	if configured == 0 {
		return -1
	}
	return configured
}

// model is what the HTTP side needs to know.
func (n *node) model(b *llama.Backend, eng *engine.Engine) *server.Model {
	info, s := n.card.Info, n.card.Sampling
	if n.cfg.Temperature >= 0 {
		s.Temperature = n.cfg.Temperature
	}
	var thoughts *int
	if n.cfg.ReasoningBudget >= 0 {
		thoughts = &n.cfg.ReasoningBudget
	}
	return &server.Model{
		ID: n.card.ID, Aliases: n.cfg.Alias, Created: time.Now(), ContextLength: eng.MaxLength(),
		Info: server.Facts{
			Architecture: info.Architecture, Parameters: int64(info.Parameters), Quantization: info.Quantization,
			SizeBytes: info.FileSize, ContextTrain: info.ContextLength, KVType: b.Params().KVType,
			Device: "cpu", Parallel: n.cfg.Parallel, Queue: n.cfg.MaxQueue, KVBlockTokens: 16,
		},
		Template: n.card.Template, Format: n.card.Format, FormatReason: n.card.FormatReason,
		Tokenizer: tokenizer.New(b.Vocab()), Engine: eng, ThoughtLimit: thoughts, SchemaLevels: n.cfg.SchemaLevels,
		Defaults: server.Sampling{
			Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK, MinP: s.MinP, RepeatPenalty: s.RepeatPenalty,
		},
	}
}

// drain lets running requests finish, as long as the configuration allows, and
// then ends them.
func (n *node) drain() error {
	n.logger.Info("draining", "timeout", n.cfg.DrainTimeout)
	ctx, cancel := context.WithTimeout(context.Background(), n.cfg.DrainTimeout)
	defer cancel()
	if err := n.api.Drain(ctx); err != nil {
		n.logger.Warn("requests were cut off at the end of the drain timeout")
	}
	// What still runs has had its terminal event; only idle connections are left.
	last, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	if err := n.http.Shutdown(last); err != nil {
		return n.http.Close()
	}
	return nil
}
