package tier

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// chain makes n blocks of a prefix, each with a state of so many bytes.
func chain(seed uint64, n, size int) (blocks []Block, states [][]byte) {
	r := rand.New(rand.NewPCG(seed, 1))
	parent := RootKey(fmt.Sprint("salt ", seed))
	for i := range n {
		tokens := make([]int32, 16)
		for k := range tokens {
			tokens[k] = r.Int32()
		}
		state := make([]byte, size)
		for k := range state {
			state[k] = byte(r.Uint32() >> (8 * (k % 2))) // the odd bytes vary
			if k%2 == 1 {
				state[k] = byte(k / 64)
			}
		}
		b := Block{Key: KeyOf(parent, tokens), Parent: parent, Start: 16 * i, Tokens: tokens}
		blocks, states, parent = append(blocks, b), append(states, state), b.Key
	}
	return blocks, states
}

func open(t *testing.T, dir string, capacity int64, identity ...string) *Disk {
	t.Helper()
	d, err := Open(Options{Dir: dir, Cap: capacity, Identity: identity})
	require.NoError(t, err)
	t.Cleanup(func() { d.Close(time.Minute) })
	return d
}

func put(d *Disk, b Block, state []byte) error {
	done := make(chan error, 1)
	d.Put(b, state, func(err error) { done <- err })
	return <-done
}

func get(d *Disk, k Key) ([]byte, error) {
	type result struct {
		n   int
		err error
	}
	dst, done := make([]byte, 1<<16), make(chan result, 1)
	d.Get(k, dst, func(n int, _ time.Duration, err error) { done <- result{n, err} })
	r := <-done
	return dst[:r.n], r.err
}

func TestBlocksSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	blocks, states := chain(1, 5, 3001)
	d := open(t, dir, 1<<20, "model", "f16")
	for i, b := range blocks {
		require.NoError(t, put(d, b, states[i]))
		got, err := get(d, b.Key)
		require.NoError(t, err)
		require.Equal(t, states[i], got)
	}
	require.True(t, d.Close(time.Minute))
	require.Error(t, put(d, blocks[0], states[0]), "closed")

	require.Empty(t, open(t, dir, 1<<20, "model", "q8_0").Blocks(func(Key) {}), "another identity")
	d = open(t, dir, 1<<20, "model", "f16")
	require.Equal(t, blocks, d.Blocks(func(Key) {}))
	for i, b := range blocks {
		got, err := get(d, b.Key)
		require.NoError(t, err)
		require.Equal(t, states[i], got)
	}
	d.Drop(blocks[4].Key)
	require.NoError(t, put(d, blocks[0], states[0]), "after the drop")
	require.Len(t, files(t, dir), 4)
}

// files lists the blocks of a directory.
func files(t *testing.T, dir string) []string {
	all, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	require.NoError(t, err)
	return all
}

// damages are things that happen to a file.
var damages = map[string]func(t *testing.T, path string, whole []byte){
	"empty":  func(t *testing.T, path string, _ []byte) { write(t, path, nil) },
	"half":   func(t *testing.T, path string, b []byte) { write(t, path, b[:len(b)/2]) },
	"last":   func(t *testing.T, path string, b []byte) { write(t, path, b[:len(b)-1]) },
	"header": func(t *testing.T, path string, b []byte) { write(t, path, b[:50]) },
	"tokens": func(t *testing.T, path string, b []byte) { write(t, path, b[:100]) },
	"longer": func(t *testing.T, path string, b []byte) { write(t, path, append(bytes.Clone(b), 0)) },
	"zeros":  func(t *testing.T, path string, b []byte) { write(t, path, make([]byte, len(b))) },
	"text":   func(t *testing.T, path string, _ []byte) { write(t, path, []byte("not a block at all")) },
	"tail": func(t *testing.T, path string, b []byte) {
		write(t, path, append(bytes.Clone(b[:len(b)-64]), make([]byte, 64)...))
	},
	"gone": func(t *testing.T, path string, _ []byte) { require.NoError(t, os.Remove(path)) },
	"a folder": func(t *testing.T, path string, _ []byte) {
		require.NoError(t, errors.Join(os.Remove(path), os.Mkdir(path, 0o700)))
	},
	"no link": func(t *testing.T, path string, _ []byte) {
		require.NoError(t, errors.Join(os.Remove(path), os.Symlink("/nowhere", path)))
	},
	"another's": func(t *testing.T, path string, _ []byte) {
		blocks, states := chain(77, 1, 3001)
		id := RootKey("some other node")
		p, err := newPacker()
		require.NoError(t, err)
		defer p.close()
		packed := p.pack(states[0])
		require.NoError(t, writeBlock(createTemp, path, header{identity: id, block: blocks[0], raw: 3001, packed: int64(len(packed))}, packed))
	},
}

func write(t *testing.T, path string, b []byte) { require.NoError(t, os.WriteFile(path, b, 0o600)) }

// A damaged file is a miss, whether the damage happens before a restart or
// while the node runs, and does no harm to the others.
func TestDamagedFileIsAMiss(t *testing.T) {
	for name, damage := range damages {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " restart ", restart), func(t *testing.T) {
				dir := t.TempDir()
				blocks, states := chain(1, 3, 3001)
				d := open(t, dir, 1<<20, "m")
				for i, b := range blocks {
					require.NoError(t, put(d, b, states[i]))
				}
				path := d.path(blocks[1].Key)
				whole, err := os.ReadFile(path)
				require.NoError(t, err)
				damage(t, path, whole)
				if restart {
					d.Close(time.Minute)
					d = open(t, dir, 1<<20, "m")
					d.Blocks(func(Key) {})
				}
				_, err = get(d, blocks[1].Key)
				require.Error(t, err)
				for _, i := range []int{0, 2} {
					got, err := get(d, blocks[i].Key)
					require.NoError(t, err)
					require.Equal(t, states[i], got)
				}
				_, err = get(d, blocks[1].Key)
				require.Error(t, err)
				if name == "a folder" {
					return // nothing that a node may delete
				}
				require.NoError(t, put(d, blocks[1], states[1]), "it can be written anew")
				got, err := get(d, blocks[1].Key)
				require.NoError(t, err)
				require.Equal(t, states[1], got)
			})
		}
	}
}

// No single changed byte goes unnoticed.
func TestEveryByteCounts(t *testing.T) {
	dir := t.TempDir()
	blocks, states := chain(1, 1, 301)
	d := open(t, dir, 1<<20, "m")
	require.NoError(t, put(d, blocks[0], states[0]))
	path := d.path(blocks[0].Key)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 1 << (i % 8)
		write(t, path, b)
		_, err := d.read(blocks[0].Key, make([]byte, 1000))
		require.Error(t, err, "byte %d", i)
	}
	write(t, path, whole)
	got, err := get(d, blocks[0].Key)
	require.NoError(t, err)
	require.Equal(t, states[0], got)
	_, err = d.read(blocks[0].Key, make([]byte, 300))
	require.Error(t, err, "no room for it")
}

// fullFile is a file on a disk that takes so many bytes more.
type fullFile struct {
	*os.File
	left *int
}

func (f fullFile) Write(b []byte) (int, error) {
	if len(b) > *f.left {
		n, _ := f.File.Write(b[:*f.left])
		*f.left = 0
		return n, syscall.ENOSPC
	}
	*f.left -= len(b)
	return f.File.Write(b)
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	blocks, states := chain(1, 4, 3001)
	d := open(t, dir, 1<<20, "m")
	left := 4000
	d.create = func(dir, pattern string) (tempFile, error) {
		f, err := os.CreateTemp(dir, pattern)
		return fullFile{f, &left}, err
	}
	require.NoError(t, put(d, blocks[0], states[0]))
	require.NoError(t, put(d, blocks[1], states[1]))
	require.ErrorIs(t, put(d, blocks[2], states[2]), syscall.ENOSPC)
	left = 1 << 20
	require.ErrorIs(t, put(d, blocks[3], states[3]), ErrPaused, "it isn't tried again at once")
	require.Len(t, files(t, dir), 2, "nothing is left of it")
	_, err := get(d, blocks[2].Key)
	require.Error(t, err)
	d.pausedUntil = time.Time{}
	require.NoError(t, put(d, blocks[3], states[3]))
}

func TestUnusableDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, nil)
	_, err := Open(Options{Dir: filepath.Join(file, "cache"), Cap: 1 << 20})
	require.Error(t, err)

	dir := t.TempDir()
	blocks, states := chain(1, 2, 3001)
	d := open(t, dir, 1<<20, "m")
	require.NoError(t, put(d, blocks[0], states[0]))
	require.NoError(t, os.RemoveAll(d.own))
	require.Error(t, put(d, blocks[1], states[1]))
	_, err = get(d, blocks[0].Key)
	require.Error(t, err)
	blocksLeft, bytesLeft, _ := d.Usage()
	require.Zero(t, blocksLeft)
	require.Zero(t, bytesLeft)
}

func TestCapHolds(t *testing.T) {
	dir := t.TempDir()
	const most = 11_000 // room for six
	d := open(t, dir, most, "m")
	var gone []Key
	var mu sync.Mutex
	d.Blocks(func(k Key) { mu.Lock(); gone = append(gone, k); mu.Unlock() })
	kept, keptStates := chain(0, 2, 3001)
	for i, b := range kept {
		require.NoError(t, put(d, b, keptStates[i]))
	}
	d.Touch([]Key{kept[0].Key, kept[1].Key})
	for seed := range uint64(20) {
		blocks, states := chain(100+seed, 2, 3001)
		for i, b := range blocks {
			require.NoError(t, put(d, b, states[i]))
			n, used, _ := d.Usage()
			require.LessOrEqual(t, used, int64(most))
			require.Len(t, files(t, dir), n)
		}
	}
	for i, b := range kept {
		got, err := get(d, b.Key)
		require.NoError(t, err, "what was of use stays")
		require.Equal(t, keptStates[i], got)
	}
	require.Len(t, gone, 42-len(files(t, dir)))
	big, state := chain(5, 1, 60_000)
	require.Error(t, put(d, big[0], state[0]))

	// The beginning of a prefix outlives its end, here and after a restart with
	// a lower cap.
	for range 2 {
		there := map[Key]bool{}
		for _, b := range d.Blocks(func(Key) {}) {
			there[b.Key] = true
			require.True(t, b.Start == 0 || there[b.Parent])
		}
		d.Close(time.Minute)
		d = open(t, dir, most/2, "m")
	}
	require.LessOrEqual(t, len(files(t, dir)), 3)
}

// Other files in the directory are left alone, those of other models make room.
func TestOthersInTheDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "notes.txt"), make([]byte, 50_000))
	old := filepath.Join(dir, "0123456789abcdef", tempPattern[:4]+"1")
	a := open(t, dir, 5_000, "a")
	blocks, states := chain(1, 2, 3001)
	for i, b := range blocks {
		require.NoError(t, put(a, b, states[i]))
	}
	a.Close(time.Minute)
	require.NoError(t, os.Mkdir(filepath.Dir(old), 0o700))
	write(t, old, []byte("half a block"))
	require.NoError(t, os.Chtimes(old, time.Time{}, time.Now().Add(-2*tempLife)))

	b := open(t, dir, 5_000, "b")
	for i := range 2 {
		require.NoError(t, put(b, blocks[i], states[i]))
	}
	_, used, _ := b.Usage()
	require.LessOrEqual(t, used, int64(5_000))
	require.FileExists(t, filepath.Join(dir, "notes.txt"))
	require.NoFileExists(t, old)
}

// Two processes on one directory read what either wrote, lose what either
// deletes, and never get anything else.
func TestTwoOnOneDirectory(t *testing.T) {
	dir := t.TempDir()
	const most = 30_000
	var all sync.WaitGroup
	for p := range 2 {
		d := open(t, dir, most, "m")
		d.Blocks(func(Key) {})
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(p), 9))
			for range 300 {
				blocks, states := chain(uint64(r.IntN(12)), 3, 3001)
				i := r.IntN(3)
				if r.IntN(2) == 0 {
					if err := put(d, blocks[i], states[i]); err != nil {
						t.Error(err)
					}
				} else if got, err := get(d, blocks[i].Key); err == nil && !bytes.Equal(got, states[i]) {
					t.Error("a wrong state")
				}
			}
		})
	}
	all.Wait()
	d := open(t, dir, most, "m")
	found := d.Blocks(func(Key) {})
	require.NotEmpty(t, found)
	for _, b := range found {
		_, err := get(d, b.Key)
		require.NoError(t, err)
	}
}

func TestRecountLearnsOfOthers(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir, 10_000, "m"), open(t, dir, 10_000, "m")
	dropped := make(chan Key, 10)
	a.Blocks(func(k Key) { dropped <- k })
	blocks, states := chain(1, 3, 3001)
	require.NoError(t, put(a, blocks[0], states[0]))
	require.NoError(t, os.Remove(a.path(blocks[0].Key)))
	require.NoError(t, put(b, blocks[1], states[1]))
	require.NoError(t, put(b, blocks[2], states[2]))
	a.recount()
	require.Equal(t, blocks[0].Key, <-dropped)
	_, used, _ := a.Usage()
	require.Greater(t, used, int64(3000))
}

func FuzzReadBlock(f *testing.F) {
	blocks, states := chain(1, 1, 301)
	p, err := newPacker()
	require.NoError(f, err)
	f.Cleanup(p.close)
	packed := p.pack(states[0])
	whole := append(appendHeader(nil, header{block: blocks[0], raw: 301, packed: int64(len(packed))}), packed...)
	f.Add(whole, packed)
	f.Add(whole[:headBytes], packed[:10])
	f.Fuzz(func(t *testing.T, file, packed []byte) {
		if h, err := readHeader(bytes.NewReader(file), int64(len(file))+sumBytes); err == nil {
			require.Equal(t, file[:len(file)-int(h.packed)], appendHeader(nil, h))
		}
		_ = p.unpack(make([]byte, 301), packed)
	})
}

func TestArena(t *testing.T) {
	_, err := NewArena(100, 5000)
	require.Error(t, err)
	a, err := NewArena(1<<20, 5000)
	require.NoError(t, err)
	require.Equal(t, 8192, a.Slot())
	require.Equal(t, 128, a.Capacity())
	var slots [][]byte
	for range 128 {
		s := a.Take()
		require.Len(t, s, 8192)
		s[0], s[8191] = byte(len(slots)), 1
		slots = append(slots, s)
	}
	require.Nil(t, a.Take())
	for i, s := range slots {
		require.Equal(t, byte(i), s[0], "slots are apart")
		a.Give(s[:10])
	}
	require.Zero(t, a.Taken())
	require.NotNil(t, a.Take())
	require.NoError(t, a.Close())
}
