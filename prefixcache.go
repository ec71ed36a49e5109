package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"quern/engine"
	"quern/engine/llama"
	"quern/engine/tier"
	"quern/server/config"
)

// stateFormat changes when states of an earlier program must not be read.
const stateFormat = "quern state 1"

// openPrefixes opens the directory that keeps prefixes, nil for none. A node
// whose directory can't be used goes on without it.
func openPrefixes(cfg *config.Config, b *llama.Backend, logger *slog.Logger) engine.Store {
	if cfg.CacheDir == "" || cfg.CacheRAM == 0 {
		return nil
	}
	digest, err := modelDigest(cfg.CacheDir, cfg.Model)
	if err != nil {
		logger.Warn("prefixes are not kept on disk", "err", err)
		return nil
	}
	d, err := tier.Open(tier.Options{
		Dir: cfg.CacheDir, Cap: int64(cfg.CacheDisk), Logger: logger,
		Identity: []string{stateFormat, digest, b.StateKind(), readProvenance().Llama},
	})
	if err != nil {
		logger.Warn("prefixes are not kept on disk", "err", err)
		return nil
	}
	blocks, bytes, capacity := d.Usage()
	logger.Info("prefixes are kept on disk", "dir", cfg.CacheDir, "blocks", blocks, "bytes", bytes, "cap", capacity)
	return d
}

// modelDigest is the SHA-256 of a model file. To read gigabytes takes a while, so
// it is kept in dir for as long as size, times and place of the file stay.
func modelDigest(dir, path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("digest of the model: %w", err)
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("digest of the model: %w", err)
	}
	what := fmt.Sprintf("%s %d %d", path, info.Size(), info.ModTime().UnixNano())
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		what += fmt.Sprintf(" %d %d", s.Dev, s.Ino)
	}
	sum := sha256.Sum256([]byte(what))
	memo := filepath.Join(dir, "model-"+hex.EncodeToString(sum[:8]))
	if b, err := os.ReadFile(memo); err == nil {
		if digest, ok := strings.CutSuffix(string(b), " "+what+"\n"); ok && len(digest) == 2*sha256.Size {
			return digest, nil
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("digest of the model: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("digest of the model: %w", err)
	}
	digest := hex.EncodeToString(h.Sum(nil))
	// Without the memo the next start takes as long; that is all.
	if err := os.MkdirAll(dir, 0o700); err == nil {
		if os.WriteFile(memo+".new", []byte(digest+" "+what+"\n"), 0o600) == nil {
			_ = os.Rename(memo+".new", memo)
		}
	}
	return digest, nil
}
