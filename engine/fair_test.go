package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/engine/enginetest"
)

// One at a time; how many of the first n requests to end were b's.
func firstOf(t *testing.T, n int, a, b engine.Request) int {
	var ended []string
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, enginetest.Small, engine.Config{MaxRunning: 1}, func(f *enginetest.Fake) {
			f.Cost = func(b *engine.Batch) time.Duration { return time.Duration(b.N) * time.Millisecond }
		})
		done := make(chan string, 40)
		submit := func(name string, q engine.Request, seed int) {
			q.Tenant, q.Prompt = name, prompt(seed, len(q.Prompt))
			s := r.submit(q)
			go func() {
				if _, err := collect(s); err == nil {
					done <- name
				}
			}()
		}
		for i := range 20 {
			submit("a", a, i)
		}
		for i := range 20 {
			submit("b", b, 100+i)
		}
		for range 40 {
			ended = append(ended, <-done)
		}
	})
	count := 0
	for _, name := range ended[:n] {
		if name == "b" {
			count++
		}
	}
	return count
}

// Who comes after another one's twenty requests is served in turn with it.
func TestTenantsTakeTurns(t *testing.T) {
	even := engine.Request{Prompt: make([]engine.Token, 50), MaxTokens: 5}
	require.InDelta(t, 10, firstOf(t, 20, even, even), 1)
}

// Turns are counted in tokens, not in requests.
func TestTenantsAreServedByTokens(t *testing.T) {
	short := engine.Request{Prompt: make([]engine.Token, 20), MaxTokens: 5}
	long := engine.Request{Prompt: make([]engine.Token, 110), MaxTokens: 5}
	require.InDelta(t, 16, firstOf(t, 20, long, short), 1)
}

func TestTenantsByWeight(t *testing.T) {
	even := engine.Request{Prompt: make([]engine.Token, 50), MaxTokens: 5}
	heavy := even
	heavy.Weight = 3
	require.InDelta(t, 15, firstOf(t, 20, even, heavy), 1)
}

// Idleness saves nothing up: who comes after long work of another one shares
// with it from then on.
func TestIdleTenantsHaveNoCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, enginetest.Small, engine.Config{MaxRunning: 1}, func(f *enginetest.Fake) {
			f.Cost = func(b *engine.Batch) time.Duration { return time.Duration(b.N) * time.Millisecond }
		})
		req := func(name string, seed int) engine.Request {
			return engine.Request{Prompt: prompt(seed, 50), MaxTokens: 5, Tenant: name}
		}
		first := r.submit(req("a", 0))
		for i := range 10 {
			_, err := collect(r.submit(req("a", 1+i)))
			require.NoError(t, err)
		}
		_, err := collect(first)
		require.NoError(t, err)

		done := make(chan string, 20)
		for i := range 20 {
			name := []string{"a", "b"}[i/10]
			s := r.submit(req(name, 50+i))
			go func() {
				if _, err := collect(s); err == nil {
					done <- name
				}
			}()
		}
		b := 0
		for i := range 20 {
			if name := <-done; i < 10 && name == "b" {
				b++
			}
		}
		require.InDelta(t, 5, b, 1)
	})
}
