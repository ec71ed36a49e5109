package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"quern/server"
	"quern/server/config"
	"quern/server/keys"
)

// keysInterval is how often the files of keys are looked at.
const keysInterval = time.Second

// watchKeys reloads the keys when a file has changed, and at a SIGHUP, which
// therefore does not end the node. What it returns stops that and waits.
func watchKeys(ring *keys.Ring, logger *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	var running sync.WaitGroup
	running.Go(func() { ring.Watch(ctx, keysInterval, logger) })
	running.Go(func() {
		for {
			select {
			case <-hangups:
				ring.Tell(logger, "SIGHUP")
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		signal.Stop(hangups)
		cancel()
		running.Wait()
	}
}

// factsOf is what the node says of itself.
func factsOf(cfg *config.Config) []server.Fact {
	var out []server.Fact
	names, values := cfg.Facts()
	for _, name := range names {
		out = append(out, server.Fact{Name: name, Values: values[name]})
	}
	return out
}
