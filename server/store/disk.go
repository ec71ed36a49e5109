package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// The buckets of a file. Records and the times of their last use are apart, so
// that to use a record does not write it anew.
var (
	recordBucket = []byte("records")
	usedBucket   = []byte("used")
	metaBucket   = []byte("meta")
	versionKey   = []byte("version")
)

// fileVersion is that of the layout of a file.
const fileVersion = "1"

// openTimeout is how long another process may take to let go of a file.
const openTimeout = time.Second

var (
	errVersion = errors.New("was written by another version")
	errTorn    = errors.New("the file is damaged")
)

// disk keeps records in a bbolt file.
type disk struct{ db *bolt.DB }

var _ keeper = (*disk)(nil)

// Disk opens or makes a store in a file. A damaged file is set aside, as
// PATH.damaged, and a new one begun: responses are not worth a node that does
// not start. One of another version is an error, since it may be of use to that
// version, and so is one that another process has open.
func Disk(path string, o Options, log *slog.Logger) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the store: %w", err)
	}
	s, err := openDisk(path, o)
	if errors.Is(err, errTorn) {
		aside := path + ".damaged"
		log.Error("the stored responses can't be read and are set aside", "file", aside, "error", err)
		if err := os.Rename(path, aside); err != nil {
			return nil, fmt.Errorf("set a damaged store aside: %w", err)
		}
		s, err = openDisk(path, o)
	}
	if err != nil {
		return nil, fmt.Errorf("the store %s: %w", path, err)
	}
	return s, nil
}

func openDisk(path string, o Options) (*Store, error) {
	if err := inspect(path); err != nil {
		return nil, err
	}
	d := &disk{}
	err := guard(func() (err error) {
		d.db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: openTimeout})
		return err
	})
	if err != nil {
		return nil, openFailure(err)
	}
	s := newStore(d, o)
	if err := errors.Join(d.lay(), s.load()); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return s, nil
}

// inspect looks at a file before bbolt maps it for writing: its version, and
// whether all pages that it counts are there. To touch one that is not would end
// the process.
func inspect(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return guard(func() error {
		db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: openTimeout, ReadOnly: true})
		if err != nil {
			return openFailure(err)
		}
		defer db.Close()
		return db.View(func(tx *bolt.Tx) error {
			if tx.Size() > info.Size() {
				return fmt.Errorf("%w: it has %d bytes of %d", errTorn, info.Size(), tx.Size())
			}
			if meta := tx.Bucket(metaBucket); meta != nil {
				if v := string(meta.Get(versionKey)); v != fileVersion {
					return fmt.Errorf("%w: its layout is %q, and this one's %q. Move the file away to begin a new store", errVersion, v, fileVersion)
				}
			}
			return nil
		})
	})
}

// openFailure tells a file that is in use or out of reach from one that is damaged.
func openFailure(err error) error {
	var path *fs.PathError
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return errors.New("another process has it open")
	case errors.As(err, &path), errors.Is(err, errTorn), errors.Is(err, errVersion):
		return err
	}
	return fmt.Errorf("%w: %w", errTorn, err)
}

// guard turns a panic over a damaged page, or over one that can't be read, into
// an error.
func guard(f func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(before)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errTorn, p)
		}
	}()
	return f()
}

// lay makes the buckets of a new file.
func (d *disk) lay() error {
	return d.update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{recordBucket, usedBucket, metaBucket} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return tx.Bucket(metaBucket).Put(versionKey, []byte(fileVersion))
	})
}

// load fills the index from the file, in the order of last use.
func (s *Store) load() error {
	var found []*entry
	err := s.keeper.each(func(key string, size int, used time.Time) {
		found = append(found, &entry{key: key, size: int64(len(key) + size), used: used})
	})
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b *entry) int { return a.used.Compare(b.used) })
	for _, e := range found {
		s.note(e)
	}
	return s.makeRoom(0, s.opts.Now())
}

func (d *disk) update(f func(*bolt.Tx) error) error {
	return guard(func() error { return d.db.Update(f) })
}

func (d *disk) view(f func(*bolt.Tx) error) error {
	return guard(func() error { return d.db.View(f) })
}

func (d *disk) put(key string, packed []byte, used time.Time) error {
	return d.update(func(tx *bolt.Tx) error {
		return errors.Join(tx.Bucket(recordBucket).Put([]byte(key), packed), setUsed(tx, key, used))
	})
}

func (d *disk) get(key string) (packed []byte, err error) {
	err = d.view(func(tx *bolt.Tx) error {
		packed = slices.Clone(tx.Bucket(recordBucket).Get([]byte(key)))
		return nil
	})
	return packed, err
}

func (d *disk) touch(keys []string, used time.Time) error {
	if len(keys) == 0 {
		return nil
	}
	return d.update(func(tx *bolt.Tx) error {
		for _, k := range keys {
			if err := setUsed(tx, k, used); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *disk) remove(keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	return d.update(func(tx *bolt.Tx) error {
		for _, k := range keys {
			if err := errors.Join(tx.Bucket(recordBucket).Delete([]byte(k)), tx.Bucket(usedBucket).Delete([]byte(k))); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *disk) each(f func(key string, size int, used time.Time)) error {
	return d.view(func(tx *bolt.Tx) error {
		times := tx.Bucket(usedBucket)
		return tx.Bucket(recordBucket).ForEach(func(k, v []byte) error {
			var used time.Time // long ago where it is not known
			if t := times.Get(k); len(t) == 8 {
				used = time.Unix(0, int64(binary.BigEndian.Uint64(t)))
			}
			f(string(k), len(v), used)
			return nil
		})
	})
}

func (d *disk) close() error { return guard(d.db.Close) }

func setUsed(tx *bolt.Tx, key string, used time.Time) error {
	return tx.Bucket(usedBucket).Put([]byte(key), binary.BigEndian.AppendUint64(nil, uint64(used.UnixNano())))
}
