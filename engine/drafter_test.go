package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/engine/enginetest"
)

// withDrafter runs f with a model whose steps cost 100 ms and a row 5 ms, and a
// draft model that takes a twentieth.
func withDrafter(t *testing.T, setup func(d *enginetest.Fake), f func(t *testing.T, r *rig, d *enginetest.Fake)) {
	synctest.Test(t, func(t *testing.T) {
		d := enginetest.New(t, twoCores)
		d.Cost = func(b *engine.Batch) time.Duration {
			return 5*time.Millisecond + time.Duration(b.N)*250*time.Microsecond
		}
		setup(d)
		r := newRig(t, twoCores, engine.Config{MaxDraft: 15, Drafter: d}, func(f *enginetest.Fake) {
			f.Cost = func(b *engine.Batch) time.Duration {
				return 100*time.Millisecond + time.Duration(b.N)*5*time.Millisecond
			}
		})
		f(t, r, d)
		r.close()
		require.Zero(t, d.OpenSamplers())
		require.Zero(t, d.CellsUsed())
	})
}

const plainToken = 105 * time.Millisecond

func TestDraftModel(t *testing.T) {
	withDrafter(t, func(*enginetest.Fake) {}, func(t *testing.T, r *rig, d *enginetest.Fake) {
		p := prompt(1, 300)
		out, res := r.run(engine.Request{Prompt: p, MaxTokens: 200, Logprobs: 2})
		require.Equal(t, r.fake.Alone(p, engine.SamplerParams{}, 200), out)
		t.Logf("%v for 200 tokens; %d drafted, %d right", res.Decode, res.DraftedTokens, res.AcceptedTokens)
		require.Greater(t, res.AcceptedTokens, 150)
		require.Less(t, res.Decode, 200*plainToken/3)

		// The next turn goes on from what the draft model has computed.
		before := d.Rows()
		p = join(p, out, prompt(2, 20))
		out, res = r.run(engine.Request{Prompt: p, MaxTokens: 50})
		require.Equal(t, r.fake.Alone(p, engine.SamplerParams{}, 50), out)
		require.Less(t, d.Rows()-before, 20+2*50)
		require.Greater(t, res.AcceptedTokens, 30)
	})
}

func TestWrongDraftModelCostsLittle(t *testing.T) {
	wrong := func(d *enginetest.Fake) {
		d.Next = func(history []engine.Token, _ *enginetest.Sampler) engine.Token {
			return engine.Token(len(history) % 999)
		}
	}
	withDrafter(t, wrong, func(t *testing.T, r *rig, d *enginetest.Fake) {
		p := prompt(1, 20)
		out, res := r.run(engine.Request{Prompt: p, MaxTokens: 600})
		require.Equal(t, r.fake.Alone(p, engine.SamplerParams{}, 600), out)
		t.Logf("%v for 600 tokens, %v without; %d drafted, %d steps of the draft model", res.Decode, 600*plainToken, res.DraftedTokens, d.Steps())
		require.Positive(t, d.Steps())
		require.Less(t, float64(res.Decode), float64(600*plainToken)/0.97)
	})
}

// Whatever befalls the draft model, requests get their tokens.
func TestDraftModelFails(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		fail  func(step int) error
		right bool // it goes on drafting
	}{
		"always":       {func(int) error { return broken }, false},
		"now and then": {func(step int) error { return map[bool]error{step%5 == 0: broken}[true] }, true},
		"no cells":     {func(step int) error { return map[bool]error{step%7 == 0: engine.ErrNoCells}[true] }, true},
		"aborted":      {func(step int) error { return map[bool]error{step%6 == 0: engine.ErrAborted}[true] }, true},
	} {
		t.Run(name, func(t *testing.T) {
			setup := func(d *enginetest.Fake) {
				d.Fail = func(step int, _ *engine.Batch) error { return c.fail(step) }
			}
			withDrafter(t, setup, func(t *testing.T, r *rig, d *enginetest.Fake) {
				for i := range 3 {
					p := prompt(i, 40)
					out, res := r.run(engine.Request{Prompt: p, MaxTokens: 60})
					require.Equal(t, r.fake.Alone(p, engine.SamplerParams{}, 60), out)
					require.Equal(t, c.right, res.AcceptedTokens > 0)
				}
				if !c.right {
					require.Equal(t, 3, d.Steps(), "it is turned off")
				}
				require.True(t, r.Stats().Healthy)
			})
		})
	}
}

// Tokens that only one of the two models has are not exchanged.
func TestDraftModelOfAnotherLength(t *testing.T) {
	for name, vocab := range map[string][2]int{"the draft model's is longer": {500, 1000}, "the model's is longer": {1000, 500}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model, draft := twoCores, twoCores
				model.Vocab, draft.Vocab = vocab[0], vocab[1]
				d := enginetest.New(t, draft)
				d.Vocab = vocab[1]
				r := newRig(t, model, engine.Config{MaxDraft: 4, Drafter: d}, func(f *enginetest.Fake) {
					f.Vocab = vocab[0]
					f.Cost = func(*engine.Batch) time.Duration { return 100 * time.Millisecond }
				})
				p := []engine.Token{1, 2, 3}
				out, _ := r.run(engine.Request{Prompt: p, MaxTokens: 100})
				require.Equal(t, r.fake.Alone(p, engine.SamplerParams{}, 100), out)
				r.close()
			})
		})
	}
}
