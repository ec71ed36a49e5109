package llama

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/engine/tier"
	"quern/models/testmodel"
)

// tierRig is an engine with tiers and cells for little more than one prompt.
type tierRig struct {
	*engine.Engine
	b *Backend
	t *testing.T
}

func openTiers(t *testing.T, path, dir, kv string) *tierRig {
	return openFlash(t, path, dir, kv, "auto")
}

func openFlash(t *testing.T, path, dir, kv, flash string) *tierRig {
	t.Helper()
	cells := 1024
	if filepath.Base(path) == smol { // whose tokens are longer
		cells = 512
	}
	b, err := Open(t.Context(), path, Options{Cells: cells, Parallel: 2, Threads: 2, Batch: 256, UBatch: 256, KVType: kv, FlashAttn: flash})
	require.NoError(t, err)
	c := engine.Config{CacheRAM: 256 << 20}
	if dir != "" {
		d, err := tier.Open(tier.Options{Dir: dir, Cap: 1 << 30, Identity: []string{filepath.Base(path), b.StateKind()}})
		require.NoError(t, err)
		c.Store = d
	}
	r := &tierRig{engine.New(b, c), b, t}
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func (r *tierRig) prompt(about string) []engine.Token {
	p, err := r.b.Vocab().Tokenize("<|im_start|>system\nYou are a helper. "+strings.Repeat("Be brief and kind. ", 20)+
		strings.Repeat(about+" is of interest. ", 22)+"<|im_end|>\n<|im_start|>user\nWhat do you know of "+about+"?<|im_end|>\n<|im_start|>assistant\n", true)
	require.NoError(r.t, err)
	return p
}

func (r *tierRig) ask(about string) answer {
	a := ask(r.t.Context(), r.Engine, r.prompt(about), 12)
	require.NoError(r.t, a.err)
	require.NoError(r.t, a.result.Err)
	return a
}

var topics = []string{"bees", "rivers", "iron"}

// paths runs f with a model that computes as quickly as it restores, and with one
// where to restore always pays.
func paths(t *testing.T, f func(t *testing.T, path string, pays bool)) {
	t.Run("scripted", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "scripted.gguf")
		require.NoError(t, testmodel.Write(path))
		f(t, path, false)
	})
	t.Run("real", func(t *testing.T) { f(t, modelPath(t, smol), true) })
}

// What is restored from memory, or from disk after a restart, answers as what is
// computed.
func TestRestoredAnswers(t *testing.T) {
	paths(t, func(t *testing.T, path string, pays bool) {
		for _, mode := range []struct{ kv, flash string }{{"f16", "auto"}, {"f16", "off"}, {"q8_0", "auto"}} {
			kv, dir := mode.kv, t.TempDir()
			r := openFlash(t, path, dir, kv, mode.flash)
			cold := map[string]answer{}
			for _, about := range topics {
				cold[about] = r.ask(about)
				require.Less(t, cold[about].result.CachedTokens, len(r.prompt(about))/2, "the head that all share")
			}
			for restart := range 2 {
				for _, about := range topics {
					a := r.ask(about)
					p := len(r.prompt(about))
					if pays {
						require.GreaterOrEqual(t, a.result.CachedTokens, p-16)
					}
					sameTokens(t, r.b.IsEOG, fmt.Sprint(kv, " ", about, " restart ", restart), cold[about], a)
				}
				s := r.Stats()
				require.True(t, !pays || s.RAM.HitTokens+s.Disk.HitTokens > 0)
				require.Zero(t, s.RAM.NotSaved+s.Disk.NotSaved+s.Disk.Lost)
				require.True(t, !pays || (restart > 0) == (s.Disk.HitTokens > 0))
				require.NoError(t, r.Close())
				r = openFlash(t, path, dir, kv, mode.flash)
			}
		}
	})
}

// Whatever becomes of the files, the answer is the same.
func TestDamagedPrefixFiles(t *testing.T) {
	paths(t, func(t *testing.T, path string, pays bool) {
		var cold answer
		for name, damage := range map[string]func(file string, whole []byte) error{
			"none": func(string, []byte) error { return nil },
			"torn": func(file string, whole []byte) error { return os.WriteFile(file, whole[:len(whole)*2/3], 0o600) },
			"flipped": func(file string, whole []byte) error {
				b := bytes.Clone(whole)
				b[len(b)/2] ^= 4
				return os.WriteFile(file, b, 0o600)
			},
			"gone": func(file string, _ []byte) error { return os.Remove(file) },
		} {
			dir := t.TempDir()
			r := openTiers(t, path, dir, "f16")
			if first := r.ask("bees"); cold.out == nil {
				cold = first
			}
			require.NoError(t, r.Close())
			files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(files), 2)
			for i, file := range files {
				whole, err := os.ReadFile(file)
				require.NoError(t, err)
				if i%2 == 0 {
					require.NoError(t, damage(file, whole))
				}
			}
			r = openTiers(t, path, dir, "f16")
			a := r.ask("bees")
			sameTokens(t, r.b.IsEOG, name, cold, a)
			p := len(r.prompt("bees"))
			require.True(t, !pays || (name == "none") == (a.result.CachedTokens >= p-16), "%d of %d", a.result.CachedTokens, p)
		}
	})
}

// Files of another model or KV type are not even looked at; a state that comes
// under a wrong identity all the same is refused by the context.
func TestForeignStates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scripted.gguf")
	require.NoError(t, testmodel.Write(path))
	a, b := openTiers(t, path, "", "f16"), openTiers(t, path, "", "q8_0")
	require.NotEqual(t, a.b.StateKind(), b.b.StateKind())
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())

	open := func(kv string) *Backend {
		b, err := Open(t.Context(), path, Options{Cells: 512, Parallel: 2, Threads: 1, Batch: 256, UBatch: 256, KVType: kv})
		require.NoError(t, err)
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
	from, to := open("f16"), open("q8_0")
	p := make([]engine.Token, 200)
	compute(t, from, 0, p)
	buf := make([]byte, from.StateSize(100))
	n, err := from.SeqSave(0, 50, 150, buf)
	require.NoError(t, err)
	require.LessOrEqual(t, n, len(buf))
	compute(t, to, 1, p[:50])
	require.Error(t, to.SeqRestore(1, 50, 150, buf[:n]))
	require.Equal(t, 49, to.context.SeqPosMax(1), "as it was")

	compute(t, from, 1, p[:50])
	require.Error(t, from.SeqRestore(1, 50, 149, buf[:n]), "another stretch")
	require.Error(t, from.SeqRestore(1, 49, 149, buf[:n]), "not at its end")
	require.NoError(t, from.SeqRestore(1, 50, 150, buf[:n]))
	require.Equal(t, 149, from.context.SeqPosMax(1))
	compute(t, from, 2, p[:51])
	require.ErrorIs(t, from.SeqRestore(2, 51, 151, buf[:n]), errStretch)
	_, err = from.SeqSave(0, 150, 250, buf)
	require.Error(t, err, "beyond its end")
	_, err = from.SeqSave(0, 0, 200, buf)
	require.Error(t, err, "no room for it")
	require.Equal(t, -1, from.context.SeqPosMax(from.spare), "nothing is left of it")
}

// compute puts a prompt into a sequence, without an engine.
func compute(t testing.TB, b *Backend, seq engine.SeqID, p []engine.Token) {
	t.Helper()
	batch := b.Batch()
	batch.N = 0
	for at := range p {
		batch.Token[at], batch.Pos[at], batch.Seq[at], batch.Want[at] = p[at], int32(at), seq, -1
		batch.N++
	}
	require.NoError(t, b.Step(batch))
}

// BenchmarkState saves and restores 1,024 tokens of the default model in blocks.
func BenchmarkState(b *testing.B) {
	be, err := Open(b.Context(), modelPath(b, benchModel()), Options{Cells: 4096, Parallel: 8, Threads: 2, Batch: 2048, UBatch: 512, KVType: "f16"})
	require.NoError(b, err)
	defer be.Close()
	compute(b, be, 0, make([]engine.Token, 1024))
	for _, n := range []int{64, 128, 256, 1024} {
		b.Run(fmt.Sprint("block=", n), func(b *testing.B) {
			buf := make([]byte, be.StateSize(n))
			var save, restore time.Duration
			for b.Loop() {
				require.NoError(b, be.SeqRemove(1, 0))
				for at := 0; at < 1024; at += n {
					start := time.Now()
					size, err := be.SeqSave(0, at, at+n, buf)
					save += time.Since(start)
					require.NoError(b, err)
					start = time.Now()
					require.NoError(b, be.SeqRestore(1, at, at+n, buf[:size]))
					restore += time.Since(start)
				}
			}
			b.ReportMetric(save.Seconds()*1e3/float64(b.N), "ms-save")
			b.ReportMetric(restore.Seconds()*1e3/float64(b.N), "ms-restore")
		})
	}
}
