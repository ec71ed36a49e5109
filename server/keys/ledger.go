package keys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// ledger keeps what was spent of each balance, by the hash of its key. What a
// call of add has returned from is on disk.
type ledger struct{ db *bolt.DB }

var spentBucket = []byte("spent")

// openLedger opens or makes a ledger. One process has it at a time.
func openLedger(path string) (*ledger, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("%s is in use by another process: two nodes can't share the balances of one keys file", path)
	}
	if err != nil {
		return nil, fmt.Errorf("open the ledger %s: %w", path, err)
	}
	db.MaxBatchDelay = time.Millisecond // how long a settlement waits to share a sync
	return &ledger{db: db}, nil
}

// spent is what a key has spent in all.
func (l *ledger) spent(h Hash) (n milli, err error) {
	err = l.db.View(func(tx *bolt.Tx) error {
		if b := tx.Bucket(spentBucket); b != nil {
			n = readMilli(b.Get(h[:]))
		}
		return nil
	})
	return n, err
}

// add notes that a key has spent more. Settlements at one time share a sync.
func (l *ledger) add(h Hash, n milli) error {
	err := l.db.Batch(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(spentBucket)
		if err != nil {
			return err
		}
		var value [8]byte
		binary.BigEndian.PutUint64(value[:], uint64(readMilli(b.Get(h[:]))+n))
		return b.Put(h[:], value[:])
	})
	if err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	return nil
}

func (l *ledger) close() error { return l.db.Close() }

func readMilli(raw []byte) milli {
	if len(raw) != 8 {
		return 0
	}
	return milli(binary.BigEndian.Uint64(raw))
}

// Spent reads the ledger of a node that is not running: whole tokens by the hash
// of their key, rounded up. ok is false where a running node has it.
func Spent(path string) (spent map[Hash]int64, ok bool, err error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: 200 * time.Millisecond, ReadOnly: true})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer db.Close()
	spent = map[Hash]int64{}
	err = db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket(spentBucket)
		if b == nil {
			return nil
		}
		return b.ForEach(func(k, v []byte) error {
			if len(k) == len(Hash{}) {
				spent[Hash(k)] = int64((readMilli(v) + perToken - 1) / perToken)
			}
			return nil
		})
	})
	return spent, true, err
}
