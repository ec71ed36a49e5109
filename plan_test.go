package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"quern/engine/llama"
	"quern/models"
	"quern/models/testmodel"
	"quern/server/capacity"
	"quern/server/config"
)

// configured is the config that these flags make.
func configured(t *testing.T, args ...string) *config.Config {
	t.Helper()
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	cfg := config.Bind(flags)
	require.NoError(t, flags.Parse(args))
	require.NoError(t, cfg.Load(nil))
	return cfg
}

func TestPlanCommand(t *testing.T) {
	model := filepath.Join(t.TempDir(), "tiny.gguf")
	require.NoError(t, testmodel.Write(model))
	code, stdout, stderr := quern(t, "plan", model, "--ctx-size", "1024", "--cache-ram", "64MiB", "--json")
	require.Equal(t, exitOK, code, stderr)
	var p struct {
		capacity.Plan
		Firm     int64
		Fits     bool
		Warnings []string
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &p))
	require.Equal(t, 1024, p.Cells)
	require.Equal(t, "set", p.Limit)
	require.EqualValues(t, 64<<20, p.Prefixes)
	require.Positive(t, p.KV)
	require.Positive(t, p.Mapped)
	require.Equal(t, p.Copied+p.KV+p.Program, p.Firm)
	require.True(t, p.Fits)

	code, stdout, _ = quern(t, "plan", model, "--ctx-size", "1024")
	require.Equal(t, exitOK, code)
	require.Contains(t, stdout, "1024 cells (set), f16")
	code, _, stderr = quern(t, "plan", model, "--ctx-size", "1")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "ctx-size: 1")
}

// What can't work is refused as a fault of usage, unless it shall be tried.
func TestRefusal(t *testing.T) {
	model := filepath.Join(t.TempDir(), "tiny.gguf")
	require.NoError(t, testmodel.Write(model))
	card, err := models.Read(model, models.Options{})
	require.NoError(t, err)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--ctx-size", "16777216"}, "16777216 KV cells take"},
		{[]string{"--ctx-size", "16777216", "--fit", "off"}, ""},
		{nil, ""},
	} {
		cfg := configured(t, tc.args...)
		p, err := makePlan(cfg, card, 200<<20, 0)
		require.NoError(t, err)
		err = refusal(cfg, p)
		if tc.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, tc.want)
		require.ErrorContains(t, err, "--fit off")
		require.ErrorAs(t, err, &usageError{})
	}
}

// The plan of a real model against what llama.cpp then reports.
func TestPlanOfRealModels(t *testing.T) {
	dir := os.Getenv("QUERN_MODELS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		require.NoError(t, err)
		dir = filepath.Join(cache, "quern")
	}
	for _, name := range []string{"SmolLM2-135M-Instruct.Q4_1.gguf", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err != nil {
			t.Skipf("no %s: make test fetches it", path)
		}
		card, err := models.Read(path, models.Options{})
		require.NoError(t, err)
		for _, args := range [][]string{
			{"--ctx-size", "2048"}, {"--ctx-size", "8192", "--ubatch", "64", "--kv-type", "q8_0"},
			{"--ctx-size", "8192", "--flash-attn", "off", "--mmap=false"},
		} {
			cfg := configured(t, args...)
			p, err := makePlan(cfg, card, 0, 0)
			require.NoError(t, err)
			n := &node{cfg: cfg, card: card}
			b, err := llama.Open(t.Context(), path, n.size(p))
			require.NoError(t, err)
			m := b.Memory()
			t.Logf("%s %v: copied %d, is %d; kv %d, is %d; compute %d, is %d; logits %d, is %d", name, args,
				p.Copied, b.Model().CopiedBytes, p.KV, m.KV, p.Compute, m.Compute, p.Logits, m.Output)
			require.InEpsilon(t, b.Model().CopiedBytes, p.Copied, 0.02)
			require.Equal(t, m.KV, p.KV)
			require.InEpsilon(t, m.Compute, p.Compute, 0.15)
			require.Equal(t, m.Output, p.Logits)
			require.NoError(t, b.Close())
		}
	}
}
