package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine/llama"
)

func TestTuningsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache", "tune.json")
	require.Empty(t, readTunings(path))
	one := tuned{time.Unix(1, 0).UTC(), llama.Tuning{Threads: 2, ThreadsBatch: 4, Trials: []llama.Trial{{What: "decode", Setting: 2, Rate: 30}}}}
	require.NoError(t, keepTuning(path, "one", one))
	require.Equal(t, map[string]tuned{"one": one}, readTunings(path))

	for _, torn := range []string{"", "{", "[]", "null", `{"one":`} {
		require.NoError(t, os.WriteFile(path, []byte(torn), 0o600))
		require.Empty(t, readTunings(path), torn)
	}
	for i := range keptTunings + 5 {
		require.NoError(t, keepTuning(path, fmt.Sprint(i), tuned{When: time.Unix(int64(i), 0)}))
	}
	all := readTunings(path)
	require.Len(t, all, keptTunings)
	require.NotContains(t, all, "4")
	require.Contains(t, all, "5")
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "no temporary files")
	require.NoError(t, keepTuning("", "x", one))
	require.Error(t, keepTuning(filepath.Join(path, "x", "y"), "x", one))
}

func TestTuneKey(t *testing.T) {
	model := filepath.Join(t.TempDir(), "m.gguf")
	require.NoError(t, os.WriteFile(model, []byte("a"), 0o600))
	cfg := configured(t, "--model", model)
	o := llama.Options{Threads: 2, UBatch: 512}
	key := tuneKey(cfg, o)
	require.Equal(t, key, tuneKey(cfg, o))
	require.Contains(t, key, "m.gguf ")
	require.NotEqual(t, key, tuneKey(cfg, llama.Options{Threads: 4, UBatch: 512}))
	require.NotEqual(t, key, tuneKey(configured(t, "--model", model, "--tune", "full"), o))
	require.NoError(t, os.Chtimes(model, time.Time{}, time.Unix(5, 0)))
	require.NotEqual(t, key, tuneKey(cfg, o))
}

func TestWhatIsSetIsNotTuned(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	_, log := served(t, "--tune", "full", "--ubatch", "64") // and --threads
	require.NotContains(t, log.String(), "tuned")
	require.NoFileExists(t, filepath.Join(dir, "quern", "tune.json"))
}
