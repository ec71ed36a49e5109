package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"quern/server/config"
	"quern/server/store"
)

// openStore opens the store of responses that the config asks for; nil for none.
func openStore(cfg *config.Config, logger *slog.Logger) (*store.Store, error) {
	o := store.Options{TTL: cfg.StoreTTL, MaxBytes: int64(cfg.StoreMaxBytes)}
	switch cfg.Store {
	case "memory":
		return store.Memory(o), nil
	case "disk":
	default:
		return nil, nil
	}
	path := cfg.StoreFile
	if path == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return nil, fmt.Errorf("no place for stored responses, set --store-file: %w", err)
		}
		path = filepath.Join(dir, "quern", "responses.db")
	}
	s, err := store.Disk(path, o, logger)
	if err != nil {
		return nil, err
	}
	records, bytes := s.Size()
	logger.Info("responses are stored", "file", path, "records", records, "bytes", bytes)
	return s, nil
}
