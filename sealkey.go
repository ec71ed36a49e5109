package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"quern/server"
)

// sealKey reads the key that encrypts compaction items, and makes one where
// there is none yet. Without a path it lies in the user's config directory; if
// that can't be used, the items last as long as the process.
func sealKey(path string, logger *slog.Logger) ([]byte, error) {
	if path != "" {
		return readSealKey(path)
	}
	dir, err := os.UserConfigDir()
	if err == nil {
		path = filepath.Join(dir, "quern", "seal.key")
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			var key []byte
			if key, err = readSealKey(path); err == nil {
				return key, nil
			}
		}
	}
	logger.Warn("compaction items will not outlast this process: set --seal-key-file", "error", err)
	return nil, nil
}

// readSealKey reads a key in hex, or makes one. Of several processes that make
// it at once, one wins, and all read what it has written.
func readSealKey(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeSealKey(path); err == nil {
			text, err = os.ReadFile(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("seal-key-file: %w", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != server.SealKeySize {
		return nil, fmt.Errorf("seal-key-file %s: must hold %d hex digits", path, 2*server.SealKeySize)
	}
	return key, nil
}

// makeSealKey writes a new key beside its place and links it there, so that
// nobody reads half of one.
func makeSealKey(path string) error {
	key := make([]byte, server.SealKeySize)
	_, _ = rand.Read(key) // never fails: the runtime ends the process instead
	part, err := os.CreateTemp(filepath.Dir(path), ".seal-*")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	if _, err := part.WriteString(hex.EncodeToString(key) + "\n"); err != nil {
		return errors.Join(err, part.Close())
	}
	if err := part.Close(); err != nil {
		return err
	}
	if err := os.Link(part.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
