package tier

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// tempPattern is what files are called while they are written.
	tempPattern = "tmp-*"
	// tempLife is after how long one belongs to nobody any more.
	tempLife = time.Hour
	// recountEvery is after how many writes a Disk looks at what others wrote.
	recountEvery = 256
	// pause is for how long nothing is written after a write has failed.
	pause = 10 * time.Second
)

var (
	// ErrPaused is Put's outcome for a while after a write has failed.
	ErrPaused = errors.New("writing has failed and is paused")
	errClosed = errors.New("closed")
	errGone   = errors.New("is not there")
)

// Options set up a Disk.
type Options struct {
	Dir      string
	Cap      int64    // bytes of all files in Dir
	Identity []string // what states depend on beside their tokens
	Logger   *slog.Logger
}

// Disk keeps blocks in files.
type Disk struct {
	dir, own string // Dir, and the part of it for this identity
	identity Key
	log      *slog.Logger

	shelf        *shelf
	writer       *worker
	reader       *worker
	packs, opens *packer // of the writer and of the reader
	dropped      func(Key)
	create       creator
	writes       int       // since the last recount; the writer's
	pausedUntil  time.Time // the writer's
	found        []Block
	packed       []byte // the reader's
}

// Open makes the directory, unless it is there, and reads the headers of the
// files in it. An error says that it can't be used at all.
func Open(o Options) (*Disk, error) {
	d := &Disk{dir: o.Dir, identity: sha256.Sum256([]byte("quern identity\x00" + strings.Join(o.Identity, "\x00"))), log: o.Logger, dropped: func(Key) {}, create: createTemp}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.own = filepath.Join(o.Dir, d.identity.String()[:16])
	if err := os.MkdirAll(d.own, 0o700); err != nil {
		return nil, fmt.Errorf("cache directory: %w", err)
	}
	var err error
	if d.packs, err = newPacker(); err == nil {
		d.opens, err = newPacker()
	}
	if err != nil {
		return nil, fmt.Errorf("cache directory: %w", err)
	}
	d.shelf = newShelf(o.Cap)
	d.scan()
	d.writer, d.reader = newWorker(), newWorker()
	return d, nil
}

func (d *Disk) path(k Key) string { return filepath.Join(d.own, k.String()) }

// Blocks lists what Open has found, each after the one before it. From here on
// dropped is told, on other goroutines, of blocks that are there no more.
func (d *Disk) Blocks(dropped func(Key)) []Block {
	d.dropped = dropped
	found := d.found
	d.found = nil
	return found
}

// Put writes a block, unless it is there. done gets nil once it can be read;
// until then state must not change.
func (d *Disk) Put(b Block, state []byte, done func(error)) {
	if !d.writer.do(func() { done(d.write(b, state)) }) {
		done(errClosed)
	}
}

func (d *Disk) write(b Block, state []byte) error {
	if d.shelf.has(b.Key) {
		return nil
	}
	if time.Now().Before(d.pausedUntil) {
		return ErrPaused
	}
	packed := d.packs.pack(state)
	h := header{identity: d.identity, block: b, raw: int64(len(state)), packed: int64(len(packed))}
	if h.size() > d.shelf.cap {
		return fmt.Errorf("a block of %d bytes exceeds the cap of %d", h.size(), d.shelf.cap)
	}
	// Room is made first, so that the cap holds at any time.
	d.makeRoom(h.size())
	err := writeBlock(d.create, d.path(b.Key), h, packed)
	if err != nil {
		d.pausedUntil = time.Now().Add(pause)
		d.log.Warn("cache directory: a prefix was not written", "err", err, "pause", pause)
		return err
	}
	d.shelf.put(d.path(b.Key), b.Key, b.Parent, h.size(), time.Now())
	if d.writes++; d.writes >= recountEvery {
		d.writes = 0
		d.recount()
	}
	return nil
}

func (d *Disk) makeRoom(bytes int64) {
	for _, f := range d.shelf.evict(bytes) {
		d.remove(f)
	}
}

// remove deletes a file that is off the shelf.
func (d *Disk) remove(f file) {
	if err := os.Remove(f.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		d.log.Warn("cache directory: a file can't be removed", "err", err)
	}
	if f.own {
		d.dropped(f.key)
	}
}

// Get reads the state of a block into dst and tells done its length, and how long
// that took. After an error the block is there no more.
func (d *Disk) Get(k Key, dst []byte, done func(n int, took time.Duration, err error)) {
	if !d.reader.do(func() {
		start := time.Now()
		n, err := d.read(k, dst)
		if err != nil {
			d.log.Debug("cache directory: a prefix was not read", "key", k, "err", err)
			if f, ok := d.shelf.take(k); ok {
				d.remove(f)
			}
		}
		done(n, time.Since(start), err)
	}) {
		done(0, 0, errClosed)
	}
}

func (d *Disk) read(k Key, dst []byte) (int, error) {
	if !d.shelf.has(k) {
		return 0, errGone
	}
	f, h, err := openBlock(d.path(k), d.identity, k)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if h.raw > int64(len(dst)) {
		return 0, fmt.Errorf("%w: a state of %d bytes for a block of %d", errForeign, h.raw, len(dst))
	}
	d.packed = resize(d.packed, int(h.packed)+sumBytes)
	if _, err := io.ReadFull(f, d.packed); err != nil {
		return 0, fmt.Errorf("%w: %w", errTorn, err)
	}
	packed := d.packed[:h.packed]
	if checksum(packed) != le.Uint32(d.packed[h.packed:]) {
		return 0, fmt.Errorf("%w: checksum of the state", errTorn)
	}
	return int(h.raw), d.opens.unpack(dst[:h.raw], packed)
}

// Touch says that the blocks of a prefix, in order, have been of use.
func (d *Disk) Touch(keys []Key) {
	d.writer.do(func() {
		for _, f := range d.shelf.touch(keys, time.Now()) {
			_ = os.Chtimes(f.path, time.Time{}, f.used)
		}
	})
}

// Drop deletes a block.
func (d *Disk) Drop(k Key) {
	d.writer.do(func() {
		if f, ok := d.shelf.take(k); ok {
			d.remove(f)
		}
	})
}

// Usage tells what the directory holds: of this identity, and all in bytes.
func (d *Disk) Usage() (blocks int, bytes, capacity int64) { return d.shelf.usage() }

// Close finishes what is queued, for as long as the timeout, and says whether
// no state given to Put or Get is in use any more.
func (d *Disk) Close(timeout time.Duration) bool {
	d.writer.stop()
	d.reader.stop()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for _, w := range []*worker{d.writer, d.reader} {
		select {
		case <-w.done:
		case <-timer.C:
			return false
		}
	}
	d.packs.close()
	d.opens.close()
	return true
}
