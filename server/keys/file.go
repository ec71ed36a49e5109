package keys

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// ErrNoKey says that no key has the name.
var ErrNoKey = errors.New("there is no key of that name")

const fileHead = "# Keys of a quern node, as quern keys writes them; comments are not kept.\n"

// document is the keys file.
type document struct {
	Keys []Key `yaml:"keys"`
}

// ReadFile reads and checks a keys file.
func ReadFile(path string) ([]Key, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

func parse(raw []byte) ([]Key, error) {
	var d document
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	decoder.KnownFields(true)
	if err := decoder.Decode(&d); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	names, hashes := map[string]bool{}, map[Hash]bool{}
	for i := range d.Keys {
		k := &d.Keys[i]
		if err := k.check(); err != nil {
			return nil, err
		}
		if names[k.Name] || hashes[k.Hash] {
			return nil, fmt.Errorf("key %s is there twice, by its name or by its hash", k.Name)
		}
		names[k.Name], hashes[k.Hash] = true, true
	}
	return d.Keys, nil
}

// Edit changes a keys file, which need not exist yet. It is replaced in one
// step, so that a running node never reads half of it; a lock file keeps a
// second editor away meanwhile.
func Edit(path string, change func([]Key) ([]Key, error)) error {
	unlock, err := lock(path + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	list, err := ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if list, err = change(list); err != nil {
		return err
	}
	body, err := yaml.Marshal(document{Keys: list})
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	if _, err := parse(body); err != nil {
		return err
	}
	return replace(path, append([]byte(fileHead), body...))
}

// lock makes a file that must not exist, and returns what removes it.
func lock(path string) (func(), error) {
	const tries, pause = 20, 50 * time.Millisecond
	for range tries {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return func() { _ = os.Remove(path) }, f.Close()
		}
		if !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		time.Sleep(pause)
	}
	return nil, fmt.Errorf("%s exists: another quern keys is at work, or was killed; then remove it", path)
}

// replace writes a file of the same mode beside path and puts it in its place.
func replace(path string, body []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	mode := os.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".keys-*")
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Named returns the place of a key in a list.
func Named(list []Key, name string) (int, error) {
	i := slices.IndexFunc(list, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("%q: %w", name, ErrNoKey)
	}
	return i, nil
}

// ReadPlain reads a file with one key in the clear a line; # begins a comment.
// A file without a key is an error, since it would leave the node open to all.
func ReadPlain(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: holds no key, so the API would be open to all", path)
	}
	return list, nil
}
