package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSealKeyIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	keys := make(chan []byte, 8)
	for range cap(keys) {
		go func() {
			key, err := sealKey(path, slog.New(slog.DiscardHandler))
			if err != nil {
				key = nil
			}
			keys <- key
		}()
	}
	first := <-keys
	require.Len(t, first, 32)
	for range cap(keys) - 1 {
		require.Equal(t, first, <-keys)
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left behind")
}

func TestSealKeyRefusesWhatIsNone(t *testing.T) {
	for _, text := range []string{"", "abcd", "zz", "0123456789abcdef0123456789abcdef"} {
		path := filepath.Join(t.TempDir(), "key")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := sealKey(path, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, "64 hex digits")
	}
	_, err := sealKey("/nowhere/key", slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "seal-key-file")
}

func TestSealKeyWithoutAPlace(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("HOME", "")
	var log bytes.Buffer
	key, err := sealKey("", slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	require.Nil(t, key)
	require.Contains(t, log.String(), "--seal-key-file")
}
