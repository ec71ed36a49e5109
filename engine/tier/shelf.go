package tier

import (
	"sync"
	"time"
)

// file is one file of the directory.
type file struct {
	path   string
	size   int64
	used   time.Time
	own    bool // of this identity, and then:
	key    Key
	parent Key
	reused bool // it has been of use since it was written
}

// shelf knows the files of a directory and which of them goes first.
type shelf struct {
	cap int64

	mu    sync.Mutex
	files map[string]*file // by path
	byKey map[Key]*file
	bytes int64
}

func newShelf(capacity int64) *shelf {
	return &shelf{cap: capacity, files: map[string]*file{}, byKey: map[Key]*file{}}
}

func (s *shelf) has(k Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKey[k] != nil
}

func (s *shelf) put(path string, k, parent Key, size int64, used time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(&file{path: path, size: size, used: used, own: true, key: k, parent: parent})
	s.byKey[k] = s.files[path]
	s.lift(k)
}

// putOther adds a file of another identity or process.
func (s *shelf) putOther(path string, size int64, used time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(&file{path: path, size: size, used: used})
}

func (s *shelf) add(f *file) {
	if old := s.files[f.path]; old != nil {
		s.bytes -= old.size
	}
	s.files[f.path] = f
	s.bytes += f.size
}

// raise makes the blocks before k go later than k itself.
func (s *shelf) raise(k Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lift(k)
}

func (s *shelf) lift(k Key) {
	f := s.byKey[k]
	for f != nil {
		p := s.byKey[f.parent]
		if p == nil || p.used.After(f.used) {
			return
		}
		p.used = f.used.Add(1)
		f = p
	}
}

// touch marks the blocks of a prefix, in order, as used at a time, the first of
// them as the latest, and returns them.
func (s *shelf) touch(keys []Key, now time.Time) []file {
	s.mu.Lock()
	defer s.mu.Unlock()
	var touched []file
	for i, k := range keys {
		if f := s.byKey[k]; f != nil {
			f.used, f.reused = now.Add(time.Duration(len(keys)-i)), true
			touched = append(touched, *f)
		}
	}
	return touched
}

// take takes a block off the shelf.
func (s *shelf) take(k Key) (file, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.byKey[k]
	if f == nil {
		return file{}, false
	}
	s.forget(f)
	return *f, true
}

func (s *shelf) forget(f *file) {
	delete(s.files, f.path)
	s.bytes -= f.size
	if f.own {
		delete(s.byKey, f.key)
	}
}

// evict takes files off the shelf until there is room for so many more bytes:
// those that were of no use yet first, the longest unused first. Where reused
// ones fill nearly all, the longest unused of any kind goes, for they must not
// stay for ever.
func (s *shelf) evict(bytes int64) []file {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []file
	for s.bytes+bytes > s.cap && len(s.files) > 0 {
		var kept int64
		for _, f := range s.files {
			if f.reused {
				kept += f.size
			}
		}
		aging := kept > s.cap/4*3
		var first *file
		for _, f := range s.files {
			if first == nil || f.before(first, aging) {
				first = f
			}
		}
		s.forget(first)
		gone = append(gone, *first)
	}
	return gone
}

func (f *file) before(g *file, aging bool) bool {
	if f.reused != g.reused && !aging {
		return g.reused
	}
	return f.used.Before(g.used)
}

// retain drops what is not there any more and returns it.
func (s *shelf) retain(there map[string]bool) []file {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []file
	for path, f := range s.files {
		if !there[path] {
			s.forget(f)
			gone = append(gone, *f)
		}
	}
	return gone
}

func (s *shelf) usage() (blocks int, bytes, capacity int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byKey), s.bytes, s.cap
}
