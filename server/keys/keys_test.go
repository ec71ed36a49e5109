package keys

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// holding makes a holder with these limits, without a ledger.
func holding(k Key) *Holder {
	h := &Holder{hash: HashOf(k.Name)}
	k.Hash = h.hash
	h.update(k, noon)
	return h
}

func TestRequestsAMinute(t *testing.T) {
	h := holding(Key{RequestsPerMinute: 2})
	for i := range 2 {
		l, err := h.Enter(noon)
		require.NoError(t, err, i)
		l.Leave()
	}
	_, err := h.Enter(noon)
	var limit *LimitError
	require.ErrorAs(t, err, &limit)
	require.Equal(t, LimitError{What: "requests per minute", Limit: 2, Wait: 30 * time.Second}, *limit)
	requests, tokens := h.Rates(noon)
	require.Equal(t, Rate{Limit: 2, Reset: time.Minute}, requests)
	require.Zero(t, tokens)
	_, err = h.Enter(noon.Add(29 * time.Second))
	require.Error(t, err)
	_, err = h.Enter(noon.Add(30 * time.Second))
	require.NoError(t, err)
	require.Equal(t, uint64(3), h.Totals().Requests)
	require.Equal(t, uint64(2), h.Totals().Refused)
}

func TestConcurrency(t *testing.T) {
	h := holding(Key{Concurrency: 1})
	first, err := h.Enter(noon)
	require.NoError(t, err)
	_, err = h.Enter(noon)
	require.ErrorContains(t, err, "1 requests at once")
	first.Leave()
	first.Leave() // again, as a second defer would
	second, err := h.Enter(noon)
	require.NoError(t, err)
	_, err = h.Enter(noon)
	require.Error(t, err, "a lease that is left twice frees one place")
	second.Leave()
}

func TestTokensAMinute(t *testing.T) {
	h := holding(Key{TokensPerMinute: 600})
	enter := func() *Lease {
		l, err := h.Enter(noon)
		require.NoError(t, err)
		return l
	}
	remaining := func() int { _, tokens := h.Rates(noon); return tokens.Remaining }

	l := enter()
	require.NoError(t, l.Reserve(Estimate{Input: 100, Output: 4000, Asked: 200}, noon))
	require.Equal(t, 300, remaining(), "what the request asks for is held, not the whole context")
	require.NoError(t, l.Settle(Usage{Input: 100, Output: 50}))
	l.Leave()
	require.Equal(t, 450, remaining(), "what was not used is given back")

	l = enter()
	require.NoError(t, l.Reserve(Estimate{Input: 100, Output: 100, Asked: 100}, noon))
	l.Leave()
	require.Equal(t, 450, remaining(), "a request that came to nothing costs nothing")

	err := enter().Reserve(Estimate{Input: 500}, noon)
	var limit *LimitError
	require.ErrorAs(t, err, &limit)
	require.Equal(t, 5*time.Second, limit.Wait)

	err = enter().Reserve(Estimate{Input: 5000}, noon)
	require.ErrorAs(t, err, &limit)
	require.Equal(t, 15*time.Second, limit.Wait, "more than the limit waits for a full bucket")
	later := noon.Add(15 * time.Second)
	require.NoError(t, enter().Reserve(Estimate{Input: 5000}, later))
	require.ErrorAs(t, enter().Reserve(Estimate{Input: 1}, later.Add(7*time.Minute)), &limit, "and is paid off afterwards")
}

func TestBalance(t *testing.T) {
	h := holding(Key{Balance: &Balance{Granted: 100, Price: Price{Input: 1, Cached: 0.1, Output: 2}}})
	l, err := h.Enter(noon)
	require.NoError(t, err)
	require.NoError(t, l.Reserve(Estimate{Input: 40, Output: 20}, noon))
	other, err := h.Enter(noon)
	require.NoError(t, err)
	var balance *BalanceError
	require.ErrorAs(t, other.Reserve(Estimate{Input: 21}, noon), &balance)
	require.Equal(t, BalanceError{Need: 21, Left: 20}, *balance)
	require.NoError(t, l.Settle(Usage{Input: 40, Cached: 30, Output: 5}))
	require.Equal(t, int64(77), h.Totals().Balance, "10 + 30·0.1 + 5·2 tokens are spent")
	l.Leave()
	require.Equal(t, int64(77), h.Totals().Balance)
	require.NoError(t, other.Reserve(Estimate{Input: 77}, noon))
	other.Leave()
	require.Equal(t, int64(77), h.Totals().Balance, "an unsettled reservation is given back")

	dear := holding(Key{Balance: &Balance{Granted: 100, Price: Price{Input: 1, Cached: 5, Output: 1}}})
	l, err = dear.Enter(noon)
	require.NoError(t, err)
	require.ErrorAs(t, l.Reserve(Estimate{Input: 30}, noon), &balance, "the dearer of both prices of input is reserved")
	l.Leave()
}

func TestNobodyHasNoLimits(t *testing.T) {
	var h *Holder
	l, err := h.Enter(noon)
	require.NoError(t, err)
	require.NoError(t, l.Reserve(Estimate{Input: 1 << 40}, noon))
	require.NoError(t, l.Settle(Usage{Input: 1}))
	l.Leave()
	require.True(t, h.Allows("any"))
	require.Empty(t, h.Name()+h.Owner())
}

// write puts keys into a file and returns its path.
func write(t *testing.T, path string, list ...Key) {
	t.Helper()
	require.NoError(t, Edit(path, func([]Key) ([]Key, error) { return list, nil }))
}

func TestBalanceSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	k := Key{Name: "a", Hash: HashOf("k"), Balance: &Balance{Granted: 1000, Price: DefaultPrice}}
	write(t, path, k)
	r, err := Open(Sources{File: path})
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			l, err := r.Find("k").Enter(time.Now())
			if err != nil || l.Reserve(Estimate{Input: 10, Output: 10}, time.Now()) != nil || l.Settle(Usage{Input: 10, Output: 5}) != nil {
				t.Error("a request of twenty was not paid")
			}
			l.Leave()
		})
	}
	all.Wait()
	// What a settlement has written is there without an orderly end.
	copied := filepath.Join(t.TempDir(), "ledger")
	raw, err := os.ReadFile(LedgerOf(path))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, raw, 0o600))
	spent, ok, err := Spent(copied)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, int64(300), spent[k.Hash])

	_, ok, err = Spent(LedgerOf(path))
	require.NoError(t, err)
	require.False(t, ok, "a running node has its ledger to itself")
	_, err = Open(Sources{File: path})
	require.ErrorContains(t, err, "in use by another process")
	require.NoError(t, r.Close())

	k.Balance.Granted = 400 // as a top-up would, by less than before
	write(t, path, k)
	r, err = Open(Sources{File: path})
	require.NoError(t, err)
	require.Equal(t, int64(100), r.Named()[0].Totals().Balance)
	require.NoError(t, r.Close())
}

func TestReload(t *testing.T) {
	dir := t.TempDir()
	path, plain := filepath.Join(dir, "keys.yaml"), filepath.Join(dir, "plain")
	write(t, path, Key{Name: "a", Hash: HashOf("ka"), Concurrency: 1}, Key{Name: "b", Hash: HashOf("kb"), Models: []string{"m"}})
	require.NoError(t, os.WriteFile(plain, []byte("# keys\nplain-1\n"), 0o600))
	r, err := Open(Sources{Fixed: []string{"fixed", "ka"}, Plain: plain, File: path})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	require.Equal(t, 4, r.Len())
	a := r.Find("ka")
	require.Equal(t, "a", a.Name(), "an entry of the file stands above a key without limits")
	require.False(t, r.Find("kb").Allows("x"))
	require.True(t, r.Find("kb").Allows("x", "m"))
	b := r.Find("kb")
	l, err := a.Enter(noon)
	require.NoError(t, err)

	write(t, path, Key{Name: "renamed", Hash: HashOf("ka"), Concurrency: 1})
	require.NoError(t, os.WriteFile(plain, []byte("plain-2\n"), 0o600))
	require.NoError(t, r.Reload())
	require.Nil(t, r.Find("kb"), "a key that is gone is out")
	_, err = b.Enter(noon)
	require.ErrorIs(t, err, ErrRevoked, "on its open connections, too")
	require.Nil(t, r.Find("plain-1"))
	require.NotNil(t, r.Find("plain-2"))
	require.Equal(t, "renamed", r.Find("ka").Name())
	_, err = r.Find("ka").Enter(noon)
	require.Error(t, err, "running requests count on")
	l.Leave()

	require.NoError(t, os.WriteFile(path, []byte("keys: [{name: a}]"), 0o600))
	require.ErrorContains(t, r.Reload(), "has no hash")
	require.NotNil(t, r.Find("ka"), "a broken file changes nothing")

	require.NoError(t, os.WriteFile(path, []byte("keys: []"), 0o600))
	require.NoError(t, r.Reload())
	require.Empty(t, r.Find("ka").Name(), "the fixed key is left")
	require.False(t, r.Public())
	empty, err := Open(Sources{File: path})
	require.NoError(t, err)
	require.False(t, empty.Public(), "a keys file without keys lets nobody in")
	require.True(t, Fixed().Public())
}

func TestWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	write(t, path, Key{Name: "a", Hash: HashOf("ka")})
	r, err := Open(Sources{File: path})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { r.Watch(ctx, time.Millisecond, slog.New(slog.DiscardHandler)) })
	write(t, path, Key{Name: "a", Hash: HashOf("ka")}, Key{Name: "b", Hash: HashOf("kb")})
	require.Eventually(t, func() bool { return r.Find("kb") != nil }, 10*time.Second, time.Millisecond)
	stop()
	done.Wait()
}

func TestFileSaysWhatIsWrong(t *testing.T) {
	hash := "hash: sha256:" + strings.Repeat("ab", 32)
	for name, row := range map[string]struct{ text, want string }{
		"unknown field": {"keys: [{name: a, " + hash + ", rpm: 3}]", "rpm"},
		"bad hash":      {"keys: [{name: a, hash: sha256:12}]", "64 hexadecimal digits"},
		"clear key":     {"keys: [{name: a, hash: my-secret}]", "quern keys add"},
		"no name":       {"keys: [{" + hash + "}]", "name"},
		"odd name":      {"keys: [{name: 'a b', " + hash + "}]", "a b"},
		"twice":         {"keys: [{name: a, " + hash + "}, {name: b, " + hash + "}]", "twice"},
		"negative":      {"keys: [{name: a, " + hash + ", concurrency: -1}]", "concurrency"},
		"balance":       {"keys: [{name: a, " + hash + ", balance: {granted: -1}}]", "granted"},
		"weight":        {"keys: [{name: a, " + hash + ", weight: -2}]", "weight"},
		"price":         {"keys: [{name: a, " + hash + ", balance: {granted: 1, price: {input: .nan}}}]", "price"},
	} {
		_, err := parse([]byte(row.text))
		require.ErrorContains(t, err, row.want, name)
		require.NotContains(t, err.Error(), "my-secret", "a key in the clear is not repeated")
	}
}

func TestEditIsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	want := Key{
		Name: "a", Hash: HashOf("k"), Models: []string{"m"}, RequestsPerMinute: 1, TokensPerMinute: 2, Concurrency: 3, Weight: 0.5,
		Balance: &Balance{Granted: 4, Price: Price{1, 0.1, 4}},
	}
	write(t, path, want)
	list, err := ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, []Key{want}, list)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	require.Error(t, Edit(path, func(l []Key) ([]Key, error) { return append(l, l[0]), nil }), "what can't be read is not written")
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "no lock and no half file stays")
	again, err := ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, list, again)
}

func TestGeneratedKeysDiffer(t *testing.T) {
	one, two := Generate(), Generate()
	require.NotEqual(t, one, two)
	require.Greater(t, len(one), 40)
}

// FuzzParse: no file makes the parser panic, and what it takes it can write.
func FuzzParse(f *testing.F) {
	f.Add([]byte("keys:\n- name: a\n  hash: sha256:" + strings.Repeat("ab", 32) + "\n  models: [x]\n  balance: {granted: 5, price: {input: 1}}\n"))
	f.Add([]byte("keys: 3"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, err := parse(raw)
		if err != nil {
			return
		}
		path := filepath.Join(t.TempDir(), "k")
		require.NoError(t, Edit(path, func([]Key) ([]Key, error) { return list, nil }))
	})
}
