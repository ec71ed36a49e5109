package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlan(t *testing.T) {
	wide := budget{rows: 100, cells: 1000, prefill: 100}
	with := func(f func(*budget)) budget { b := wide; f(&b); return b }
	for name, c := range map[string]struct {
		pending []int
		budget  budget
		want    []share
	}{
		"nothing":                        {nil, wide, nil},
		"one decodes":                    {[]int{1}, wide, []share{{0, 1}}},
		"all decode":                     {[]int{1, 1, 1}, wide, []share{{0, 1}, {1, 1}, {2, 1}}},
		"a prompt alone":                 {[]int{50}, wide, []share{{0, 50}}},
		"a prompt longer than the batch": {[]int{500}, wide, []share{{0, 100}}},
		"prompts share a batch":          {[]int{30, 30, 30}, wide, []share{{0, 30}, {1, 30}, {2, 30}}},
		"decode first, though younger":   {[]int{500, 1, 1}, wide, []share{{1, 1}, {2, 1}, {0, 98}}},
		"a chunk beside decode rows": {
			[]int{1, 500, 1}, with(func(b *budget) { b.prefill = 16 }), []share{{0, 1}, {2, 1}, {1, 16}},
		},
		"no prefill while decode is measured": {
			[]int{1, 500}, with(func(b *budget) { b.prefill = 0 }), []share{{0, 1}},
		},
		"a short prompt passes a long one": {[]int{500, 20}, wide, []share{{0, 80}, {1, 20}}},
		"and gets half where it is not that short": {
			[]int{500, 80}, with(func(b *budget) { b.prefill = 16 }), []share{{0, 8}, {1, 8}},
		},
		"the oldest wins a tie":              {[]int{80, 80}, wide, []share{{0, 80}, {1, 20}}},
		"the oldest gets the only row":       {[]int{80, 20}, with(func(b *budget) { b.prefill = 1 }), []share{{0, 1}}},
		"what the short leaves goes in turn": {[]int{60, 60, 10}, wide, []share{{0, 60}, {1, 30}, {2, 10}}},
		"more decode rows than batch":        {[]int{1, 1, 1}, with(func(b *budget) { b.rows = 2 }), []share{{0, 1}, {1, 1}}},
		"cells bound prefill":                {[]int{1, 500}, with(func(b *budget) { b.cells = 11 }), []share{{0, 1}, {1, 10}}},
		"no cells":                           {[]int{1, 500}, with(func(b *budget) { b.cells = 0 }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, plan(nil, c.pending, nil, c.budget))
		})
	}
}

// The oldest needs not be the next.
func TestPlanByTurn(t *testing.T) {
	b := budget{rows: 100, cells: 1000, prefill: 64}
	require.Equal(t, []share{{3, 1}, {2, 32}, {1, 32}}, plan(nil, []int{500, 200, 400, 1}, []int{2, 0, 3, 1}, b))
}

// Whatever the mix, a plan keeps to its budget, leaves no row unused that could
// be spent, and lets the oldest sequence get on.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{1, 1, 200, 3}, 10, 10, 10)
	f.Add([]byte{0, 255, 255}, 64, 3, 16)
	f.Fuzz(func(t *testing.T, raw []byte, rows, cells, prefill int) {
		b := budget{rows: max(1, rows%300), cells: max(0, cells%300), prefill: max(1, prefill%300)}
		var pending []int
		decode, want := 0, 0
		for _, x := range raw {
			n := int(x)%100 + 1
			pending = append(pending, n)
			if n == 1 {
				decode++
			} else {
				want += n
			}
		}
		got := map[int]int{}
		d, p := 0, 0
		for _, s := range plan(nil, pending, nil, b) {
			require.NotContains(t, got, s.seq)
			require.Positive(t, s.rows)
			require.LessOrEqual(t, s.rows, pending[s.seq])
			got[s.seq] = s.rows
			if pending[s.seq] == 1 {
				require.Zero(t, p, "decode rows come first")
				d++
			} else {
				p += s.rows
			}
		}
		room := min(b.rows, b.cells)
		require.Equal(t, min(decode, room), d)
		require.Equal(t, min(want, room-d, b.prefill), p)
		if len(pending) > 0 && !starved(pending, room) {
			require.Contains(t, got, 0, "the oldest gets on")
		}
	})
}

func TestStarved(t *testing.T) {
	for name, c := range map[string]struct {
		pending []int
		cells   int
		want    bool
	}{
		"room for each decode row":          {[]int{1, 1}, 2, false},
		"a decode row too many":             {[]int{1, 1}, 1, true},
		"nothing left for the oldest":       {[]int{50, 1}, 1, true},
		"one row for the oldest":            {[]int{50, 1}, 2, false},
		"nothing left for a younger prompt": {[]int{1, 50}, 1, false},
		"no cells":                          {[]int{50}, 0, true},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, starved(c.pending, c.cells)) })
	}
}
