package suite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"quern/server/bench"
)

// Options say what is run.
type Options struct {
	Peers []Peer // the first is the one that others are compared with
	Works []Work
	Setup Setup // but for places and cells
	Reps  int
	Seed  uint64
	Dir   string // for what servers keep
	// Logger tells how far it is.
	Logger *slog.Logger
}

// Report is what came of it.
type Report struct {
	Peers []string
	Rows  []*Row
	Roof  Roof
	Notes []string // what is missing, and why
}

// Roof is what the machine allows the model, in tokens a second; 0: not known.
type Roof struct{ Decode, Prefill float64 }

// Row is a work with what each peer made of it, in the order of Report.Peers.
type Row struct {
	Work  Work
	Sides []*Side
}

// Side is what a peer made of a work.
type Side struct {
	Runs    []*bench.Result
	Profile profile
	Failed  error
	Absent  bool // the work was not for this peer
}

// Run does all works. Failures of servers are part of the report; the error is
// for when ctx ends.
func Run(ctx context.Context, o Options) (*Report, error) {
	report := &Report{}
	for _, p := range o.Peers {
		report.Peers = append(report.Peers, p.Name)
	}
	for at := 0; at < len(o.Works); {
		end := at + 1
		for end < len(o.Works) && together(o.Works[at], o.Works[end]) {
			end++
		}
		report.Rows = append(report.Rows, o.group(ctx, report, o.Works[at:end])...)
		if err := ctx.Err(); err != nil {
			return report, err
		}
		at = end
	}
	return report, nil
}

// together says whether two works run on the same servers.
func together(a, b Work) bool {
	return a.Slots == b.Slots && a.Cells == b.Cells && !a.Restart && !b.Restart
}

// group runs works that have the same servers, work by work, and each work turn
// by turn.
func (o *Options) group(ctx context.Context, report *Report, works []Work) []*Row {
	rows := make([]*Row, len(works))
	for i, w := range works {
		rows[i] = &Row{Work: w}
		for _, p := range o.Peers {
			rows[i].Sides = append(rows[i].Sides, &Side{Absent: p.Guessing && !w.Guessed})
		}
	}
	if works[0].Restart {
		o.restarted(ctx, rows[0])
		return rows
	}
	clients := make([]*bench.Client, len(o.Peers))
	for i, p := range o.Peers {
		server, c, err := o.start(ctx, p, works[0], "")
		if err != nil {
			failAll(rows, i, err)
			report.Notes = append(report.Notes, fmt.Sprintf("%s could not be started: %s", p.Name, err))
			continue
		}
		clients[i] = c
		defer o.stop(p, server)
	}
	for _, row := range rows {
		o.turns(ctx, row, clients)
	}
	return rows
}

func failAll(rows []*Row, peer int, err error) {
	for _, r := range rows {
		r.Sides[peer].Failed = err
	}
}

// turns repeats a work, peer by peer.
func (o *Options) turns(ctx context.Context, row *Row, clients []*bench.Client) {
	for rep := range o.reps(row.Work) {
		for i, side := range row.Sides {
			if side.Absent || side.Failed != nil || ctx.Err() != nil {
				continue
			}
			start := time.Now()
			o.once(ctx, row.Work, side, clients[i], rep)
			o.tell(row.Work, o.Peers[i], rep, side, start)
		}
	}
}

func (o *Options) once(ctx context.Context, w Work, side *Side, c *bench.Client, rep int) {
	root := c.URL[:len(c.URL)-len("/v1")]
	before, ok := readProfile(ctx, root)
	start := time.Now()
	r, err := w.Run(ctx, c, o.seed(rep))
	if err == nil {
		err = failure(r)
	}
	if err != nil {
		side.Failed = err
		return
	}
	took := time.Since(start)
	if after, there := readProfile(ctx, root); ok && there {
		side.Profile.add(before, after, took)
	}
	side.Runs = append(side.Runs, r)
}

// restarted runs a work on servers that are stopped and started in between.
func (o *Options) restarted(ctx context.Context, row *Row) {
	for rep := range o.reps(row.Work) {
		for i, side := range row.Sides {
			if side.Absent || side.Failed != nil || ctx.Err() != nil {
				continue
			}
			start := time.Now()
			dir := filepath.Join(o.Dir, fmt.Sprintf("prefixes-%d-%d", i, rep))
			r, err := o.restart(ctx, o.Peers[i], row.Work, dir, rep)
			if side.Failed = err; err == nil {
				side.Runs = append(side.Runs, r)
			}
			o.tell(row.Work, o.Peers[i], rep, side, start)
			_ = os.RemoveAll(dir) // it lies in the one that goes at the end
		}
	}
}

var errShared = errors.New("it was not started here, and can't be restarted")

func (o *Options) restart(ctx context.Context, p Peer, w Work, dir string, rep int) (r *bench.Result, err error) {
	for life := range 2 {
		server, c, err := o.start(ctx, p, w, dir)
		if err != nil {
			return nil, err
		}
		switch {
		case server.Shared:
			err = errShared
		case life == 0:
			r, err = w.Run(ctx, c, o.seed(rep))
		default:
			err = w.After(ctx, c, o.seed(rep), r)
		}
		if err = errors.Join(err, server.Stop()); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (o *Options) start(ctx context.Context, p Peer, w Work, cacheDir string) (*Server, *bench.Client, error) {
	s := o.Setup
	s.Slots, s.Cells, s.CacheDir = w.Slots, w.Cells, cacheDir
	server, err := p.Start(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	c, err := connect(ctx, server)
	if err != nil {
		return nil, nil, errors.Join(err, server.Stop())
	}
	return server, c, nil
}

func (o *Options) stop(p Peer, s *Server) {
	if err := s.Stop(); err != nil {
		o.Logger.Warn("stop", "server", p.Name, "error", err)
	}
}

// seed makes other prompts for each repetition, the same for all peers.
func (o *Options) seed(rep int) uint64 { return o.Seed + uint64(rep) }

func (o *Options) reps(w Work) int {
	if w.Heavy {
		return (o.Reps + 2) / 3
	}
	return o.Reps
}

func (o *Options) tell(w Work, p Peer, rep int, side *Side, start time.Time) {
	args := []any{"work", w.Name, "server", p.Name, "rep", rep + 1, "took", time.Since(start).Round(time.Millisecond)}
	if side.Failed != nil {
		o.Logger.Warn("failed", append(args, "error", side.Failed)...)
		return
	}
	f := w.Figures[0]
	o.Logger.Info("measured", append(args, f.Title, short(f.Value(side.Runs[len(side.Runs)-1]))+" "+f.Unit)...)
}

// failure is an error if a request failed.
func failure(r *bench.Result) error {
	if len(r.Errors) == 0 {
		return nil
	}
	return fmt.Errorf("%d requests failed: %s: %s", r.Failures(), r.Errors[0].Kind, r.Errors[0].Example)
}
