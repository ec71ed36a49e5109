package engine_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/engine/enginetest"
)

func TestSaltSeparates(t *testing.T) {
	r := newRig(t, enginetest.Small, engine.Config{})
	p := prompt(1, 100)
	for _, c := range []struct {
		salt   string
		cached int
	}{{"a", 0}, {"b", 0}, {"a", 99}, {"", 0}, {"b", 99}, {"", 99}} {
		_, res := r.run(engine.Request{Prompt: p, MaxTokens: 2, CacheSalt: c.salt})
		require.Equal(t, c.cached, res.CachedTokens, "salt %q", c.salt)
	}
}

func TestContainedPrefixesAreDropped(t *testing.T) {
	r := newRig(t, enginetest.Small, engine.Config{})
	p := prompt(1, 200)
	r.run(engine.Request{Prompt: p[:50], MaxTokens: 1})
	r.run(engine.Request{Prompt: p[:100], MaxTokens: 1})
	r.run(engine.Request{Prompt: p, MaxTokens: 1})
	r.run(engine.Request{Prompt: p[:70], MaxTokens: 1})
	s := r.Stats()
	require.Equal(t, 1, s.IdlePrefixes)
	require.Equal(t, 200, s.CellsUsed)

	r.FlushCache()
	r.run(engine.Request{Prompt: p[:50], MaxTokens: 1})
	r.run(engine.Request{Prompt: p[:50], MaxTokens: 20}) // a copy of 49, which outgrows it
	require.Equal(t, 1, r.Stats().IdlePrefixes)
}

func TestUseKeepsAPrefix(t *testing.T) {
	l := enginetest.Small
	l.Seqs = 3
	r := newRig(t, l, engine.Config{MaxIdle: 2})
	for _, i := range []int{1, 2, 1, 3} { // 1 is used again before 3 pushes one out
		r.run(engine.Request{Prompt: prompt(i, 100), MaxTokens: 1})
	}
	_, res := r.run(engine.Request{Prompt: prompt(1, 100), MaxTokens: 1})
	require.Equal(t, 99, res.CachedTokens)
	_, res = r.run(engine.Request{Prompt: prompt(2, 100), MaxTokens: 1})
	require.Zero(t, res.CachedTokens)
}

// A running sequence offers the prefix it was given even if nobody else has it
// any more.
func TestBorrowedPrefixIsOffered(t *testing.T) {
	bubble(t, enginetest.Small, engine.Config{MaxIdle: 1}, func(t *testing.T, r *rig) {
		p := prompt(1, 200)
		r.run(engine.Request{Prompt: p, MaxTokens: 1})
		running := r.submit(engine.Request{Prompt: p, MaxTokens: 30})
		r.run(engine.Request{Prompt: prompt(2, 10), MaxTokens: 1}) // pushes p out
		_, res := r.run(engine.Request{Prompt: join(p, prompt(3, 10)), MaxTokens: 1})
		require.Equal(t, 199, res.CachedTokens)
		require.Equal(t, engine.ReasonNone, running.Result().Reason)
	}, slow)
}

func TestIdleIsBounded(t *testing.T) {
	for max, want := range map[int]int{-1: 0, 2: 2, 0: 10} {
		r := newRig(t, enginetest.Small, engine.Config{MaxIdle: max})
		for i := range 10 {
			r.run(engine.Request{Prompt: prompt(i, 100), MaxTokens: 1})
		}
		require.Equal(t, want, r.Stats().IdlePrefixes)
		if want > 0 {
			_, res := r.run(engine.Request{Prompt: prompt(9, 100), MaxTokens: 1})
			require.Equal(t, 99, res.CachedTokens, "the last one is there")
			r.FlushCache()
			require.Zero(t, r.Stats().IdlePrefixes)
			require.Zero(t, r.Stats().CellsUsed)
		}
	}
}

func TestOldestPrefixIsShortenedFirst(t *testing.T) {
	l := enginetest.Small
	l.Cells = 1000
	r := newRig(t, l, engine.Config{})
	for i := range 3 {
		r.run(engine.Request{Prompt: prompt(i, 300), MaxTokens: 1})
	}
	// 100 cells are free; 50 more are needed, and some are taken ahead.
	r.run(engine.Request{Prompt: prompt(9, 150), MaxTokens: 1})
	require.EqualValues(t, 1, r.Stats().Evictions)
	for i, cached := range []int{300 - 50 - 64, 299, 299} {
		_, res := r.run(engine.Request{Prompt: prompt(i, 300), MaxTokens: 1})
		require.Equal(t, cached, res.CachedTokens, "prompt %d", i)
		if i == 0 {
			break // computing it again shortens the next
		}
	}
}

func TestIdsRunOut(t *testing.T) {
	l := enginetest.Small
	l.Seqs = 3
	r := newRig(t, l, engine.Config{})
	for i := range 6 {
		p := prompt(i, 100)
		out, _ := r.run(engine.Request{Prompt: p, MaxTokens: 3})
		require.Equal(t, r.fake.Alone(p, engine.SamplerParams{}, 3), out)
	}
	require.Equal(t, 3, r.Stats().IdlePrefixes)
	_, res := r.run(engine.Request{Prompt: prompt(5, 100), MaxTokens: 1})
	require.Equal(t, 99, res.CachedTokens)
	_, res = r.run(engine.Request{Prompt: prompt(0, 100), MaxTokens: 1})
	require.Zero(t, res.CachedTokens)
}

func TestOnlyIdIsShortenedInPlace(t *testing.T) {
	l := enginetest.Small
	l.Seqs = 1
	r := newRig(t, l, engine.Config{})
	r.run(engine.Request{Prompt: prompt(1, 100), MaxTokens: 5})
	q := join(prompt(1, 60), prompt(2, 30))
	out, res := r.run(engine.Request{Prompt: q, MaxTokens: 5})
	require.Equal(t, r.fake.Alone(q, engine.SamplerParams{}, 5), out)
	require.Equal(t, 60, res.CachedTokens)
}

// Recurrent models continue a sequence from its very end, or from the mark before
// the end of its prompt.
func TestWholeSequencesOnly(t *testing.T) {
	l := enginetest.Small
	l.Partial = false
	r := newRig(t, l, engine.Config{})
	p := prompt(1, 100)
	out, _ := r.run(engine.Request{Prompt: p, MaxTokens: 10})
	turn := join(p, out, prompt(2, 20))
	next, res := r.run(engine.Request{Prompt: turn, MaxTokens: 10})
	require.Equal(t, r.fake.Alone(turn, engine.SamplerParams{}, 10), next)
	require.Equal(t, 109, res.CachedTokens)
	for _, tc := range []struct {
		prompt []engine.Token
		cached int
	}{
		{turn, 114}, {turn, 114}, {p, 84}, // generated anew, again and again
		{join(turn[:120], prompt(3, 50)), 114}, // the history has another end
		{turn[:50], 0}, {join(turn[:50], prompt(3, 50)), 0},
	} {
		got, res := r.run(engine.Request{Prompt: tc.prompt, MaxTokens: 10})
		require.Equal(t, r.fake.Alone(tc.prompt, engine.SamplerParams{}, 10), got)
		require.Equal(t, tc.cached, res.CachedTokens)
	}
}

func TestWholeSequenceThatHasMovedOn(t *testing.T) {
	l := enginetest.Small
	l.Partial = false
	bubble(t, l, engine.Config{}, func(t *testing.T, r *rig) {
		p := prompt(1, 100)
		running := r.submit(engine.Request{Prompt: p, MaxTokens: 50})
		time.Sleep(time.Second)
		q := join(p, prompt(2, 20))
		out, res := r.run(engine.Request{Prompt: q, MaxTokens: 5})
		require.Equal(t, r.fake.Alone(q, engine.SamplerParams{}, 5), out)
		require.Equal(t, 84, res.CachedTokens)
		require.Equal(t, engine.ReasonNone, running.Result().Reason)
	}, slow)
}

// With cells of its own for each sequence, a copy costs cells, and the length of
// one sequence is bounded instead of their sum.
func TestOwnCells(t *testing.T) {
	l := engine.Limits{Cells: 8 * 300, Seqs: 8, Batch: 64, UBatch: 64, Partial: true}
	r := newRig(t, l, engine.Config{})
	require.Equal(t, 300, r.MaxLength())
	p := prompt(1, 200)
	out, _ := r.run(engine.Request{Prompt: p, MaxTokens: 10})
	turn := join(p, out, prompt(2, 20))
	_, res := r.run(engine.Request{Prompt: turn, MaxTokens: 10})
	require.Equal(t, 209, res.CachedTokens)
	require.Zero(t, r.fake.Copied(), "taken over in place")
	_, res = r.run(engine.Request{Prompt: join(p, prompt(3, 20)), MaxTokens: 10})
	require.Equal(t, 200, res.CachedTokens)
	require.Equal(t, 200, r.fake.Copied())
	require.Equal(t, 239+229, r.Stats().CellsUsed)
}

func TestFollowersOutliveTheirLeader(t *testing.T) {
	bubble(t, enginetest.Small, engine.Config{}, func(t *testing.T, r *rig) {
		head := prompt(1, 1500)
		leader := r.submit(engine.Request{Prompt: join(head, prompt(2, 10)), MaxTokens: 5})
		var followers []*engine.Stream
		for i := range 3 {
			followers = append(followers, r.submit(engine.Request{Prompt: join(head, prompt(3+i, 10)), MaxTokens: 5}))
		}
		passing := r.submit(engine.Request{Prompt: prompt(9, 10), MaxTokens: 5})
		time.Sleep(800 * time.Millisecond)
		require.Equal(t, 3, r.Stats().Waiting)
		leader.Cancel()
		_, err := collect(leader)
		require.ErrorIs(t, err, engine.ErrCancelled)
		cached := 0
		for i, s := range followers {
			out, err := collect(s)
			require.NoError(t, err)
			require.Equal(t, r.fake.Alone(join(head, prompt(3+i, 10)), engine.SamplerParams{}, 5), out)
			cached += s.Result().CachedTokens
		}
		require.Greater(t, cached, 2*1500, "the first of them went on from where the leader was")
		_, err = collect(passing)
		require.NoError(t, err)
		require.Less(t, passing.Result().Total, followers[0].Result().TTFT)
	}, slow)
}

func TestShortHeadsDoNotWait(t *testing.T) {
	bubble(t, enginetest.Small, engine.Config{}, func(t *testing.T, r *rig) {
		head := prompt(1, 31)
		a := r.submit(engine.Request{Prompt: join(head, prompt(2, 1000)), MaxTokens: 5})
		b := r.submit(engine.Request{Prompt: join(head, prompt(3, 20)), MaxTokens: 5})
		time.Sleep(200 * time.Millisecond) // b may have come while a's first step ran
		require.Equal(t, 2, r.Stats().Running)
		for _, s := range []*engine.Stream{a, b} {
			_, err := collect(s)
			require.NoError(t, err)
		}
		require.Zero(t, a.Result().CachedTokens)
		require.Contains(t, []int{0, 31}, b.Result().CachedTokens, "all of the head if a's first step ran before b came")
	}, slow)
}

func TestRunningPromptIsReused(t *testing.T) {
	bubble(t, enginetest.Small, engine.Config{}, func(t *testing.T, r *rig) {
		p := prompt(1, 300)
		a := r.submit(engine.Request{Prompt: p, MaxTokens: 100})
		time.Sleep(3 * time.Second)
		_, res := r.run(engine.Request{Prompt: join(p, prompt(2, 10)), MaxTokens: 5})
		require.Equal(t, 300, res.CachedTokens)
		require.Equal(t, engine.ReasonNone, a.Result().Reason)
		out, err := collect(a)
		require.NoError(t, err)
		require.Equal(t, r.fake.Alone(p, engine.SamplerParams{}, 100), out)
	}, slow)
}

func TestMissIsLogged(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := newRig(t, enginetest.Small, engine.Config{Logger: logger})
	r.run(engine.Request{Prompt: prompt(1, 100), MaxTokens: 1})
	r.run(engine.Request{ID: "req-7", Prompt: join(prompt(1, 42), prompt(2, 20)), MaxTokens: 1})
	r.close()
	require.Contains(t, log.String(), "request=req-7 prompt=62 first_differing=42")
}
