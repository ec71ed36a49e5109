package store

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that a test sets.
type clock struct{ now time.Time }

func newClock() *clock                     { return &clock{time.Unix(1_700_000_000, 0)} }
func (c *clock) pass(d time.Duration)      { c.now = c.now.Add(d) }
func (c *clock) time() time.Time           { return c.now }
func (c *clock) options(o Options) Options { o.Now = c.time; return o }

func onDisk(t *testing.T, path string, o Options) *Store {
	t.Helper()
	s, err := Disk(path, o, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// both runs a test on a store of each kind.
func both(t *testing.T, o Options, f func(t *testing.T, s *Store)) {
	t.Run("memory", func(t *testing.T) { f(t, Memory(o)) })
	t.Run("disk", func(t *testing.T) { f(t, onDisk(t, filepath.Join(t.TempDir(), "a", "responses.db"), o)) })
}

func record(id string) *Record {
	return &Record{
		Owner: "ada", ID: id, Previous: "resp_0", Response: []byte(`{"id":"` + id + `"}`),
		Input: []byte(`{"n":1}`), Output: []byte(`{"n":2},{"n":3}`), Events: []byte("event: x\n\n"),
	}
}

// blob is a record of about so many bytes that don't compress.
func blob(id string, size int) *Record {
	r := &Record{Owner: "ada", ID: id, Response: make([]byte, size)}
	x := uint32(len(id) + 1)
	for i := range r.Response {
		x = x*1664525 + 1013904223
		r.Response[i] = byte(x >> 24)
	}
	return r
}

func has(s *Store, id string) bool {
	_, err := s.Get("ada", id)
	return err == nil
}

func TestKeeping(t *testing.T) {
	both(t, Options{}, func(t *testing.T, s *Store) {
		require.NoError(t, s.Put(record("resp_1")))
		got, err := s.Get("ada", "resp_1")
		require.NoError(t, err)
		require.Equal(t, *record("resp_1"), got)

		changed := record("resp_1")
		changed.Events, changed.Response = []byte{}, []byte("later")
		require.NoError(t, s.Put(changed))
		got, err = s.Get("ada", "resp_1")
		require.NoError(t, err)
		require.Equal(t, "later", string(got.Response))
		n, _ := s.Size()
		require.Equal(t, 1, n)

		for _, who := range []string{"bob", "", "ada\x00"} {
			_, err = s.Get(who, "resp_1")
			require.ErrorIs(t, err, ErrNotFound, "another owner")
			require.ErrorIs(t, s.Delete(who, "resp_1"), ErrNotFound)
		}
		require.NoError(t, s.Delete("ada", "resp_1"))
		require.ErrorIs(t, s.Delete("ada", "resp_1"), ErrNotFound)
		require.False(t, has(s, "resp_1"))
		n, size := s.Size()
		require.Zero(t, n)
		require.Zero(t, size)
	})
}

func TestExpiry(t *testing.T) {
	c := newClock()
	both(t, c.options(Options{TTL: time.Hour}), func(t *testing.T, s *Store) {
		require.NoError(t, s.Put(record("old")))
		c.pass(30 * time.Minute)
		require.NoError(t, s.Put(record("young")))
		require.NoError(t, s.Put(record("used")))
		c.pass(20 * time.Minute)
		require.NoError(t, s.Touch("ada", "used", "unknown"))
		c.pass(10 * time.Minute)
		require.False(t, has(s, "old"))
		require.True(t, has(s, "young"))
		c.pass(59 * time.Minute)
		require.False(t, has(s, "young"), "to look is not to use")
		require.False(t, has(s, "used"))
		n, size := s.Size()
		require.Zero(t, n)
		require.Zero(t, size, "what has expired takes no room")
	})
}

func TestTheLeastRecentlyUsedMakeRoom(t *testing.T) {
	both(t, Options{MaxBytes: 3500}, func(t *testing.T, s *Store) {
		for _, id := range []string{"a", "b", "c"} {
			require.NoError(t, s.Put(blob(id, 1000)))
		}
		require.NoError(t, s.Touch("ada", "a"))
		require.NoError(t, s.Put(blob("d", 1000)))
		require.True(t, has(s, "a"))
		require.False(t, has(s, "b"))
		require.NoError(t, s.Put(blob("a", 1000)), "in its own place")
		require.True(t, has(s, "c"))

		require.ErrorIs(t, s.Put(blob("huge", 4000)), ErrTooLarge)
		require.True(t, has(s, "c"), "what can't be kept drops nothing")
		require.NoError(t, s.Put(blob("big", 3000)))
		n, size := s.Size()
		require.Equal(t, 1, n)
		require.LessOrEqual(t, size, int64(3500))
	})
}

func TestManyAtOnce(t *testing.T) {
	both(t, Options{MaxBytes: 20_000, TTL: time.Hour}, func(t *testing.T, s *Store) {
		var all sync.WaitGroup
		for w := range 8 {
			all.Go(func() {
				for i := range 20 {
					id := fmt.Sprintf("resp_%d_%d", w, i%5)
					if err := s.Put(blob(id, 700)); err != nil {
						t.Error(err)
					}
					if r, err := s.Get("ada", id); err == nil && len(r.Response) != 700 {
						t.Errorf("%s came back with %d bytes", id, len(r.Response))
					}
					_ = s.Touch("ada", id)
					_ = s.Delete("ada", fmt.Sprintf("resp_%d_%d", (w+1)%8, i%5))
				}
			})
		}
		all.Wait()
		n, size := s.Size()
		require.LessOrEqual(t, size, int64(20_000))
		require.Equal(t, n, s.order.Len())
	})
}

func TestDiskSurvivesARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "responses.db")
	c := newClock()
	s := onDisk(t, path, c.options(Options{TTL: time.Hour}))
	require.NoError(t, s.Put(record("first")))
	c.pass(time.Minute)
	require.NoError(t, s.Put(record("second")))
	c.pass(time.Minute)
	require.NoError(t, s.Touch("ada", "first"))
	require.NoError(t, s.Put(record("third")))
	require.NoError(t, s.Delete("ada", "third"))
	_, size := s.Size()
	require.NoError(t, s.Close())

	c.pass(58*time.Minute + 30*time.Second)
	s = onDisk(t, path, c.options(Options{TTL: time.Hour}))
	n, again := s.Size()
	require.Equal(t, 2, n)
	require.Equal(t, size, again)
	c.pass(time.Minute)
	require.True(t, has(s, "first"), "the last use is kept, too")
	require.False(t, has(s, "second"))
	require.False(t, has(s, "third"))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
}

func TestASmallerLimitHoldsAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "responses.db")
	s := onDisk(t, path, Options{})
	for _, id := range []string{"a", "b", "c"} {
		require.NoError(t, s.Put(blob(id, 1000)))
	}
	require.NoError(t, s.Close())
	s = onDisk(t, path, Options{MaxBytes: 1500})
	n, _ := s.Size()
	require.Equal(t, 1, n)
	require.True(t, has(s, "c"))
}

// Whatever has become of a file, the node starts, keeps what can be read, and
// gives nothing back that was not put in.
func TestDamagedFiles(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole.db")
	s := onDisk(t, whole, Options{})
	for i := range 60 {
		require.NoError(t, s.Put(blob(strings.Repeat("x", i+1), 2000)))
	}
	require.NoError(t, s.Close())
	good, err := os.ReadFile(whole)
	require.NoError(t, err)

	faults := map[string][]byte{
		"no store": []byte(strings.Repeat("hello ", 5000)), "zeros": make([]byte, 64<<10), "one byte": {1},
		"torn": good[:len(good)/2], "torn early": good[:3*4096], "one page": good[:4096],
	}
	for at := 0; at < len(good); at += 4096 {
		broken := bytes.Clone(good)
		copy(broken[at:], bytes.Repeat([]byte{0xa5}, 4096))
		faults[fmt.Sprintf("page %d", at/4096)] = broken
	}
	for name, doc := range faults {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "responses.db")
			require.NoError(t, os.WriteFile(path, doc, 0o600))
			s := onDisk(t, path, Options{})
			for i := range 60 {
				id := strings.Repeat("x", i+1)
				if r, err := s.Get("ada", id); err == nil {
					require.Equal(t, blob(id, 2000).Response, r.Response)
				}
			}
			if err := s.Put(record("new")); err == nil {
				require.True(t, has(s, "new"))
			}
		})
	}
}

func TestFilesThatAreNotOurs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "responses.db")
	s := onDisk(t, path, Options{})
	_, err := Disk(path, Options{}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "another process")
	require.NoError(t, s.Close())

	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error { return tx.Bucket(metaBucket).Put(versionKey, []byte("7")) }))
	require.NoError(t, db.Close())
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = Disk(path, Options{}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, `"7"`)
	require.ErrorContains(t, err, path)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after), "it is left as it is")

	_, err = Disk(filepath.Join(path, "below"), Options{}, slog.New(slog.DiscardHandler))
	require.Error(t, err)
}

// failing is a keeper whose disk is full.
type failing struct{ memory }

func (failing) put(string, []byte, time.Time) error { return fmt.Errorf("no space left on device") }

func TestAFullDiskIsAnErrorOfThatResponseAlone(t *testing.T) {
	s := newStore(failing{memory{}}, Options{})
	require.ErrorContains(t, s.Put(record("a")), "no space left")
	require.False(t, has(s, "a"))
	n, size := s.Size()
	require.Zero(t, n)
	require.Zero(t, size)
}

func FuzzUnpack(f *testing.F) {
	f.Add(record("a").pack())
	f.Add([]byte{packVersion})
	f.Fuzz(func(t *testing.T, packed []byte) {
		r, err := unpack("ada", "a", packed)
		if err == nil {
			again, err := unpack("ada", "a", r.pack())
			require.NoError(t, err)
			require.Equal(t, r.Response, again.Response)
		}
	})
}

func TestCounts(t *testing.T) {
	now := time.Unix(1, 0)
	s := Memory(Options{TTL: time.Hour, MaxBytes: 600, Now: func() time.Time { return now }})
	put := func(id string) { require.NoError(t, s.Put(&Record{ID: id, Response: noise(t, 200)})) }
	put("a")
	put("b")
	put("c") // displaces a
	_, err := s.Get("", "a")
	require.ErrorIs(t, err, ErrNotFound)
	_, err = s.Get("", "c")
	require.NoError(t, err)
	require.ErrorIs(t, s.Put(&Record{ID: "d", Response: noise(t, 2000)}), ErrTooLarge)
	require.NoError(t, s.Delete("", "b"))
	now = now.Add(2 * time.Hour)
	_, err = s.Get("", "c")
	require.ErrorIs(t, err, ErrNotFound)
	require.Equal(t, Counts{MaxBytes: 600, Hits: 1, Misses: 2, Written: 3, Deleted: 1, Expired: 1, Displaced: 1, Failed: 1}, s.Counts())
}

// noise does not compress.
func noise(t *testing.T, n int) []byte {
	out := make([]byte, n)
	_, err := rand.Read(out)
	require.NoError(t, err)
	return out
}
