package llama

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
)

func TestSettingsToTry(t *testing.T) {
	require.Equal(t, []int{16, 12, 8, 4}, fractions(16))
	require.Equal(t, []int{2, 1}, fractions(2))
	require.Equal(t, []int{1}, fractions(1))
	require.Equal(t, []int{512, 256, 128}, halves(512))
	require.Empty(t, halves(64))
}

func TestRace(t *testing.T) {
	for _, tc := range []struct {
		name   string
		took   map[int]time.Duration
		budget time.Duration
		want   int
		trials int
	}{
		{"clearly better", map[int]time.Duration{8: 100, 4: 80}, time.Minute, 4, 2},
		{"hardly better", map[int]time.Duration{8: 100, 4: 97}, time.Minute, 8, 2},
		{"worse", map[int]time.Duration{8: 100, 4: 150}, time.Minute, 8, 2},
		{"no time to tell", map[int]time.Duration{8: 100, 4: 80}, 500 * time.Millisecond, 8, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				best, trials := race(t.Context(), "decode", []int{8, 4}, 1, tc.budget, func(s int, _ time.Time) error {
					time.Sleep(tc.took[s] * time.Millisecond)
					return nil
				})
				require.Equal(t, tc.want, best)
				require.Len(t, trials, tc.trials)
				require.Less(t, time.Since(start), tc.budget+time.Second)
			})
		})
	}
	best, _ := race(t.Context(), "decode", []int{8, 4}, 1, time.Minute, func(int, time.Time) error { return errors.New("no") })
	require.Equal(t, 8, best)
}

func TestTuneRealModel(t *testing.T) {
	var found *Tuning
	tuner := &Tuner{AnyThreads: true, AnyUBatch: true, Budget: 2 * time.Second, Done: func(f Tuning) { found = &f }}
	b, _ := open(t, smol, Options{Cells: 1024, Parallel: 1, Threads: 2, Batch: 512, UBatch: 256, KVType: "f16", Tune: tuner}, engine.Config{})
	require.NotNil(t, found)
	require.Equal(t, found.Threads, b.Params().Threads)
	require.Equal(t, found.ThreadsBatch, b.Params().ThreadsBatch)
	t.Logf("%+v", *found)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, tuner.tune(ctx, nil, &Options{Threads: 1}))
}
