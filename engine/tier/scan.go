package tier

import (
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// scan fills the shelf from the directory. Files of other identities count, but
// only their sizes are looked at.
func (d *Disk) scan() {
	byKey := map[Key]Block{}
	d.walk(func(path string, info fs.FileInfo) {
		key, ok := keyOf(info.Name())
		if filepath.Dir(path) != d.own || !ok {
			d.shelf.putOther(path, info.Size(), info.ModTime())
			return
		}
		f, h, err := openBlock(path, d.identity, key)
		if err != nil {
			d.log.Debug("cache directory: a file is dropped", "file", path, "err", err)
			_ = os.Remove(path)
			return
		}
		_ = f.Close()
		d.shelf.put(path, key, h.block.Parent, info.Size(), info.ModTime())
		byKey[key] = h.block
	})
	for _, b := range byKey {
		d.found = append(d.found, b)
	}
	// A block starts where the one before it ends, so this order is the one that
	// Blocks promises.
	slices.SortFunc(d.found, func(a, b Block) int { return a.Start - b.Start })
	for _, b := range slices.Backward(d.found) {
		d.shelf.raise(b.Key)
	}
	d.makeRoom(0)
	d.found = slices.DeleteFunc(d.found, func(b Block) bool { return !d.shelf.has(b.Key) })
}

// recount takes notice of what other processes have written or deleted.
func (d *Disk) recount() {
	there := map[string]bool{}
	d.walk(func(path string, info fs.FileInfo) {
		there[path] = true
		if key, ok := keyOf(info.Name()); !ok || filepath.Dir(path) != d.own || !d.shelf.has(key) {
			d.shelf.putOther(path, info.Size(), info.ModTime())
		}
	})
	for _, f := range d.shelf.retain(there) {
		if f.own {
			d.dropped(f.key)
		}
	}
	d.makeRoom(0)
}

// walk visits the blocks in the directory and removes what nobody will finish.
// What can't be read is passed over.
func (d *Disk) walk(visit func(path string, info fs.FileInfo)) {
	_ = filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return nil
		}
		if strings.HasPrefix(e.Name(), strings.TrimSuffix(tempPattern, "*")) {
			if time.Since(info.ModTime()) > tempLife {
				_ = os.Remove(path)
			}
			return nil
		}
		if ours(d.dir, path) {
			visit(path, info)
		}
		return nil
	})
}

// ours says whether a path is where a Disk puts blocks: nothing else in the
// directory is counted, or deleted.
func ours(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return false
	}
	id, name := filepath.Split(rel)
	if _, ok := keyOf(name); !ok || len(id) != 17 {
		return false
	}
	_, err = hex.DecodeString(id[:16])
	return err == nil
}

func keyOf(name string) (k Key, ok bool) {
	b, err := hex.DecodeString(name)
	return k, err == nil && copy(k[:], b) == len(k) && len(b) == len(k)
}
