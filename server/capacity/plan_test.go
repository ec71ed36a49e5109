package capacity

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// eight is a model of 8 billion parameters, most of its weights copied.
var eight = Model{
	HeadsKV: 32 * 8, HeadDimK: 128, HeadDimV: 128, TrainContext: 131072, Embedding: 4096, FeedForward: 14336, Heads: 32, Vocab: 128256,
	FileBytes: 4900 << 20, WeightBytes: 4900 << 20, Copied: 4500 << 20,
}

func asked(cells int) Ask {
	return Ask{Cells: cells, Parallel: 8, Sequences: 65, UBatch: 512, AnyUBatch: true, KVType: "f16", Flash: true, AnyForm: true, CacheRAM: -1}
}

func TestFit(t *testing.T) {
	const gib = 1 << 30
	for _, tc := range []struct {
		name            string
		ask             Ask
		available, swap int64
		cells, ubatch   int
		limit           string
		unpacked        bool
		warning         string // of the first one
		problem         string
	}{
		{name: "plenty", ask: asked(0), available: 64 * gib, cells: 131072, ubatch: 512, limit: "model"},
		{name: "not known", ask: asked(0), cells: 131072, ubatch: 512, limit: "model"},
		{name: "set and fits", ask: asked(32768), available: 12 * gib, cells: 32768, ubatch: 512, limit: "set"},
		{name: "memory limits", ask: asked(0), available: 10 * gib, cells: 34560, ubatch: 512, limit: "memory"},
		{name: "fewer rows for more cells", ask: asked(0), available: 6 * gib, cells: 7424, ubatch: 128, limit: "memory", warning: "128 rows"},
		{name: "mapped weights page", ask: asked(16384), available: 7 * gib, cells: 16384, ubatch: 512, limit: "set", warning: "again and again"},
		{name: "copies don't fit", ask: asked(0), available: 3 * gib, cells: 2048, ubatch: 128, limit: "memory", unpacked: true, warning: "packed copies"},
		{name: "swap holds it", ask: asked(16384), available: 4 * gib, swap: 8 * gib, cells: 16384, ubatch: 128, limit: "set", warning: "128 rows"},
		{name: "can't work", ask: asked(131072), available: 12 * gib, cells: 131072, ubatch: 128, limit: "set",
			problem: "131072 KV cells take 16384 MiB as f16, copied weights 4500 MiB, the program 128 MiB: more than the 12288 MiB of memory that are free. At most 61184 cells fit (--ctx-size), 115200 with --kv-type q8_0, 217856 with --kv-type q4_0"},
		{name: "nothing can work", ask: func() Ask { a := asked(0); a.AnyForm = false; return a }(), available: 4 * gib, cells: 2048, ubatch: 128, limit: "memory",
			problem: "A smaller model or quantization is needed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := Fit(eight, tc.ask, tc.available, tc.swap)
			require.NoError(t, err)
			require.Equal(t, []any{tc.cells, tc.ubatch, tc.limit, tc.unpacked}, []any{p.Cells, p.UBatch, p.Limit, p.Unpacked})
			require.Equal(t, p.Cells*4*32*8*128, int(p.KV))
			if tc.problem != "" {
				require.ErrorContains(t, p.Check(), tc.problem)
				return
			}
			require.NoError(t, p.Check())
			if w := p.Warnings(); tc.warning == "" {
				require.Empty(t, w)
			} else {
				require.Contains(t, w[0], tc.warning)
			}
		})
	}
	_, err := Fit(eight, Ask{KVType: "f8"}, 0, 0)
	require.Error(t, err)
}

func TestPlanWithoutChoices(t *testing.T) {
	a := asked(0)
	a.AnyUBatch, a.AnyForm = false, false
	p, err := Fit(eight, a, 6<<30, 0)
	require.NoError(t, err)
	require.Equal(t, 512, p.UBatch)
	a.CacheRAM = 7 << 30
	p, err = Fit(eight, a, 40<<30, 0)
	require.NoError(t, err)
	require.EqualValues(t, 7<<30, p.Prefixes)
	a.CacheRAM = 30 << 30
	p, err = Fit(eight, a, 40<<30, 0)
	require.NoError(t, err)
	require.Contains(t, strings.Join(p.Warnings(), "\n"), "kept prefixes may take 30720 MiB")
}

// A model whose cache the header doesn't tell is never refused.
func TestRoughPlansAreNotRefused(t *testing.T) {
	odd := eight
	odd.Odd = true
	p, err := Fit(odd, asked(131072), 8<<30, 0)
	require.NoError(t, err)
	require.True(t, p.Rough)
	require.NoError(t, p.Check())
	require.False(t, p.Unpacked)
}

// Recurrent layers keep a state for each sequence, so fewer of them are kept idle.
func TestStates(t *testing.T) {
	hybrid := half
	hybrid.Odd, hybrid.StateBytes = true, 80<<20
	for available, want := range map[int64]int{0: 65, 256 << 30: 65, 24 << 30: 38, 8 << 30: 17} {
		p, err := Fit(hybrid, asked(0), available, 0)
		require.NoError(t, err)
		require.Equal(t, want, p.Seqs)
		require.Equal(t, int64(want)*80<<20, p.State)
	}
}

func TestDraftCounts(t *testing.T) {
	alone, err := Fit(half, asked(4096), 0, 0)
	require.NoError(t, err)
	with := half
	with.Draft = &small
	both, err := Fit(with, asked(4096), 0, 0)
	require.NoError(t, err)
	require.Equal(t, alone.KV+4096*30*3*64*2*2, both.KV)
	require.Greater(t, both.Compute, alone.Compute)
}
