package main

import (
	"context"
	"errors"
	"log/slog"

	"quern/server/config"
)

// serve runs a node until ctx ends, then drains it.
func serve(ctx context.Context, cfg *config.Config, logger *slog.Logger) error {
	return errors.New("this build cannot serve yet")
}
