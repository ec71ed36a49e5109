package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBenchSuiteUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"m.gguf", "--only", "streams-3"}, {"m.gguf", "--reps", "0"}, {"m.gguf", "--quern", "path"},
	} {
		code, _, errs := quern(t, append([]string{"bench", "suite"}, args...)...)
		require.Equal(t, exitUsage, code, "%v: %s", args, errs)
	}
	code, _, errs := quern(t, "bench", "suite", "/nowhere/model.gguf")
	require.Equal(t, exitFailed, code, errs)
	require.Contains(t, errs, "/nowhere/model.gguf")
}

// What is missing is told, never an error.
func TestBenchSuitePeers(t *testing.T) {
	names := func(s suiteSetup) (out, missing []string) {
		peers, missing, err := s.peers(t.Output())
		require.NoError(t, err)
		for _, p := range peers {
			out = append(out, p.Name)
		}
		return out, missing
	}
	got, missing := names(suiteSetup{})
	require.Equal(t, []string{"quern", "quern --spec off"}, got)
	require.Len(t, missing, 2)
	for _, ollama := range []string{"/bin/ollama", "http://localhost:11434"} {
		got, missing = names(suiteSetup{llamaServer: "/x", ollama: ollama, programs: []string{"current=/y"}})
		require.Equal(t, []string{"quern", "quern --spec off", "current", "llama-server", "Ollama"}, got)
		require.Empty(t, missing)
	}
}
