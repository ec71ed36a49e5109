package store

import "time"

// memory keeps records in a map. The index has everything else.
type memory map[string][]byte

var _ keeper = memory(nil)

// Memory makes a store that ends with the process.
func Memory(o Options) *Store { return newStore(memory{}, o) }

func (m memory) put(key string, packed []byte, _ time.Time) error {
	m[key] = packed
	return nil
}

func (m memory) get(key string) ([]byte, error)          { return m[key], nil }
func (m memory) touch([]string, time.Time) error         { return nil }
func (m memory) each(func(string, int, time.Time)) error { return nil }
func (m memory) close() error                            { return nil }
func (m memory) remove(keys []string) error {
	for _, k := range keys {
		delete(m, k)
	}
	return nil
}
