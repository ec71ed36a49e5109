package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The ledger against a cache that keeps every cell with the set of its holders.
func TestLedgerCountsEachCell(t *testing.T) {
	for seed := range uint64(30) {
		for _, shared := range []bool{true, false} {
			t.Run(fmt.Sprint(seed, shared), func(t *testing.T) { randomLedger(t, seed, shared) })
		}
	}
}

func randomLedger(t *testing.T, seed uint64, shared bool) {
	r := rand.New(rand.NewPCG(seed, 0))
	l := ledger{shared: shared}
	type cell struct{ holders int }
	tails := map[int]*run{}
	cells := map[int][]*cell{}
	some := func() int {
		for id := range tails {
			return id
		}
		return -1
	}
	held := func(ids ...int) int {
		seen := map[*cell]bool{}
		for _, id := range ids {
			for _, c := range cells[id] {
				seen[c] = true
			}
		}
		return len(seen)
	}
	for next := range 150 {
		id := some()
		switch op := r.IntN(4); {
		case op == 0 || id < 0:
			n := 1 + r.IntN(20)
			tails[next] = l.extend(nil, n)
			for range n {
				cells[next] = append(cells[next], &cell{1})
			}
		case op == 1:
			n := 1 + r.IntN(5)
			tails[id] = l.extend(tails[id], n)
			for range n {
				cells[id] = append(cells[id], &cell{1})
			}
		case op == 2:
			n := 1 + r.IntN(len(cells[id]))
			tails[next] = l.copyPrefix(tails[id], n)
			for _, c := range cells[id][:n] {
				if shared {
					c.holders++
				} else {
					c = &cell{1}
				}
				cells[next] = append(cells[next], c)
			}
		default:
			n := r.IntN(len(cells[id]) + 1)
			tails[id] = l.truncate(tails[id], n)
			for _, c := range cells[id][n:] {
				c.holders--
			}
			cells[id] = cells[id][:n]
			if n == 0 {
				require.Nil(t, tails[id])
				delete(tails, id)
				delete(cells, id)
			}
		}
		if next%15 != 14 {
			continue
		}
		var ids []int
		l.begin()
		counted := 0
		for id := range tails {
			n := r.IntN(len(cells[id])) + 1
			was := held(ids...)
			prefix := held(append(ids, -1)...)
			cells[-1] = cells[id][:n]
			prefix = held(append(ids, -1)...) - prefix
			delete(cells, -1)
			if shared {
				require.Equal(t, prefix, l.countPrefix(tails[id], n))
			}
			counted += l.count(tails[id])
			ids = append(ids, id)
			require.Equal(t, held(ids...)-was, counted-was)
			only := 0
			for _, c := range cells[id] {
				if c.holders == 1 {
					only++
				}
			}
			require.Equal(t, only, l.exclusive(tails[id]))
			require.Equal(t, len(cells[id]), length(tails[id]))
		}
		require.Equal(t, held(ids...), l.used)
		require.Equal(t, l.used, counted)
	}
	for _, tail := range tails {
		l.release(tail)
	}
	require.Zero(t, l.used)
}
