package suite

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/server/bench"
)

// tiny does every work in no time.
var tiny = Sizes{
	Answer: 3, Head: 8, Long: 8, Echo: 8, EchoAnswer: 3, Sessions: 5, Turns: 2, ChatHead: 4, ChatAnswer: 2,
	StallAnswer: 60, StallAfter: 10 * time.Millisecond,
}

// fakePeer is a server in this process; starts counts how often it was started.
func fakePeer(t *testing.T, name string, f *fake, starts *[]Setup) Peer {
	return Peer{Name: name, Start: func(_ context.Context, s Setup) (*Server, error) {
		*starts = append(*starts, s)
		h := httptest.NewServer(f)
		t.Cleanup(h.Close)
		return &Server{URL: h.URL, Stop: func() error { h.Close(); return nil }}, nil
	}}
}

func options(t *testing.T, peers ...Peer) Options {
	return Options{
		Peers: peers, Works: Works(tiny), Setup: Setup{Model: "model.gguf", Threads: 2},
		Reps: 4, Seed: 1, Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler),
	}
}

func markdown(t *testing.T, r *Report) string {
	var b strings.Builder
	require.NoError(t, r.WriteMarkdown(&b))
	return b.String()
}

// Every work there is runs, on all peers that it is for.
func TestAllWorks(t *testing.T) {
	var ours, plain, others []Setup
	a, b := fakePeer(t, "quern", &fake{gap: time.Millisecond, steps: true}, &ours), fakePeer(t, "other", &fake{gap: 2 * time.Millisecond}, &others)
	c := fakePeer(t, "quern --spec off", &fake{gap: time.Millisecond}, &plain)
	c.Guessing = true
	report, err := Run(t.Context(), options(t, a, c, b))
	require.NoError(t, err)
	report.Roof = Roof{Decode: 2000, Prefill: 100_000}
	require.Empty(t, report.notes())
	require.Len(t, report.Rows, len(Works(tiny)))
	for _, row := range report.Rows {
		want := 4
		if row.Work.Heavy {
			want = 2
		}
		for i, side := range row.Sides {
			if i == 1 && !row.Work.Guessed {
				require.True(t, side.Absent)
				continue
			}
			require.Len(t, side.Runs, want, row.Work.Name)
			for _, f := range row.Work.Figures {
				require.NotZero(t, side.median(f), "%s: %s", row.Work.Name, f.Title)
			}
		}
	}
	// Many, long, twice for each repetition of the restart, chat.
	require.Len(t, ours, 2+4+1)
	require.Equal(t, Setup{Model: "model.gguf", Threads: 2, Slots: manySlots, Cells: manyCells}, ours[0])
	require.NotEmpty(t, ours[2].CacheDir)
	require.Equal(t, ours[2].CacheDir, ours[3].CacheDir)
	require.NotEqual(t, ours[2].CacheDir, ours[4].CacheDir)
	require.NotEqual(t, ours[2].CacheDir, others[2].CacheDir)

	out := markdown(t, report)
	require.Contains(t, out, "| work | figure | quern | quern --spec off | other | ÷ quern --spec off | ÷ other |")
	require.Contains(t, out, "1 stream of prose")
	require.Contains(t, out, "% of the roof")
	require.Contains(t, out, "| 75.0 % | 12.5 % | 12.5 % | 0.0 % |")
	require.NotContains(t, out, "failed")
}

func TestAServerThatFailsHoldsUpNoOther(t *testing.T) {
	var starts []Setup
	broken := &fake{}
	broken.broken.Store(1 << 40)
	flawed := &fake{}
	late := fakePeer(t, "late", flawed, &starts)
	o := options(t, fakePeer(t, "good", &fake{}, &starts), fakePeer(t, "broken", broken, &starts), late,
		Peer{Name: "absent", Start: func(context.Context, Setup) (*Server, error) { return nil, errors.New("no such file") }})
	o.Works = Works(tiny)[:2]
	once := sync.OnceFunc(func() { flawed.broken.Store(1) }) // a single request of one peer
	o.Works[0].Run = func(ctx context.Context, c *bench.Client, seed uint64) (*bench.Result, error) {
		once()
		return Works(tiny)[0].Run(ctx, c, seed)
	}
	report, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, report.Rows[0].Sides[0].Runs, 4)
	require.Len(t, report.Rows[1].Sides[2].Runs, 4)
	require.Error(t, report.Rows[0].Sides[1].Failed)
	require.ErrorContains(t, report.Rows[0].Sides[2].Failed, "1 requests failed: HTTP 500")
	out := markdown(t, report)
	require.Contains(t, out, "| failed | failed | failed | – | – | – |")
	require.Contains(t, out, "absent could not be started: no such file")
	require.Contains(t, out, "broken could not be started: HTTP 500")
}

func TestWhatRunsAlreadyIsNotRestarted(t *testing.T) {
	h := httptest.NewServer(&fake{})
	defer h.Close()
	o := options(t, At("there", h.URL+"/"))
	o.Works = []Work{restored(tiny)}
	report, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.ErrorIs(t, report.Rows[0].Sides[0].Failed, errShared)
}

func TestRunStopsWhenAsked(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var starts []Setup
	o := options(t, fakePeer(t, "one", &fake{}, &starts))
	o.Works[0].Run = func(context.Context, *bench.Client, uint64) (*bench.Result, error) {
		cancel()
		return nil, ctx.Err()
	}
	report, err := Run(ctx, o)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, starts, 1)
	require.Contains(t, markdown(t, report), "| not run |")
}

// The peers start the programs that they name, with the setup given.
func TestPeersAreProcesses(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for _, row := range []struct {
		kind string
		peer func(log *os.File) Peer
		want []string
	}{
		{"quern", func(l *os.File) Peer { return Quern("quern", self, l, "--spec", "off") },
			[]string{"serve model.gguf", "--threads 2", "--parallel 4", "--ctx-size 64", "--cache-dir dir", "--spec off"}},
		{"llama-server", func(l *os.File) Peer { return LlamaServer(self, l) }, []string{"-m model.gguf", "-t 2", "-np 4", "-c 64"}},
		{"ollama", func(l *os.File) Peer { return Ollama(self, t.TempDir(), l) },
			[]string{"ollama serve", "parallel 4 context 16", "/model.gguf\nPARAMETER num_thread 2"}},
	} {
		t.Run(row.kind, func(t *testing.T) {
			t.Setenv(actAs, row.kind)
			log, err := os.Create(t.TempDir() + "/log")
			require.NoError(t, err)
			defer log.Close()
			s, err := row.peer(log).Start(t.Context(), Setup{Model: "model.gguf", Threads: 2, Slots: 4, Cells: 64, CacheDir: "dir"})
			require.NoError(t, err)
			_, err = connect(t.Context(), s)
			require.NoError(t, err)
			require.NoError(t, s.Stop())
			require.False(t, answers(t.Context(), s.URL+"/health"), "it still runs")
			told, err := os.ReadFile(log.Name())
			require.NoError(t, err)
			for _, want := range row.want {
				require.Contains(t, string(told), want)
			}
		})
	}
	t.Run("one that ends", func(t *testing.T) {
		t.Setenv(actAs, "none")
		_, err := Quern("quern", self, os.Stderr).Start(t.Context(), Setup{})
		require.ErrorContains(t, err, "exit status 3")
	})
	t.Run("none", func(t *testing.T) {
		_, err := LlamaServer("/nowhere/llama-server", os.Stderr).Start(t.Context(), Setup{})
		require.ErrorIs(t, err, os.ErrNotExist)
	})
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0123: "0.012", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 99.96: "100", 9.996: "10.0"} {
		require.Equal(t, want, short(v))
	}
}
