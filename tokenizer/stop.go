package tokenizer

// StopMatcher finds the first stop string that completes in a text that comes
// in parts. Text that could be the beginning of a stop string is held back
// until it is decided, and a stop string itself never comes out. Where two
// complete at the same byte the longer counts.
//
// It is an Aho-Corasick automaton over bytes. The state is the longest end of
// the text that begins a stop string, which is just the text to hold back.
type StopMatcher struct {
	nodes   []stopNode
	first   [256]bool
	state   int32
	stopped string
	done    bool
	held    []byte // the text held back, as long as the state is deep
	out     []byte
	emitted int
}

type stopNode struct {
	label          byte
	child, sibling int32 // 0: none
	fail           int32 // state of the longest proper end
	depth          int32
	match          string // the longest stop string that ends here
}

// NewStopMatcher takes the stop strings; empty ones are ignored.
func NewStopMatcher(stops []string) *StopMatcher {
	m := &StopMatcher{nodes: make([]stopNode, 1)}
	for _, s := range stops {
		if s != "" {
			m.add(s)
		}
	}
	m.link()
	return m
}

func (m *StopMatcher) add(s string) {
	m.first[s[0]] = true
	at := int32(0)
	for i := range len(s) {
		next := m.child(at, s[i])
		if next == 0 {
			next = int32(len(m.nodes))
			n := stopNode{label: s[i], sibling: m.nodes[at].child, depth: m.nodes[at].depth + 1}
			m.nodes = append(m.nodes, n)
			m.nodes[at].child = next
		}
		at = next
	}
	m.nodes[at].match = s
}

// link sets the failure states, level by level.
func (m *StopMatcher) link() {
	queue := make([]int32, 1, len(m.nodes))
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for c := m.nodes[at].child; c != 0; c = m.nodes[c].sibling {
			n := &m.nodes[c]
			if at != 0 {
				n.fail = m.next(m.nodes[at].fail, n.label)
			}
			if n.match == "" {
				n.match = m.nodes[n.fail].match
			}
			queue = append(queue, c)
		}
	}
}

func (m *StopMatcher) child(at int32, b byte) int32 {
	c := m.nodes[at].child
	for c != 0 && m.nodes[c].label != b {
		c = m.nodes[c].sibling
	}
	return c
}

func (m *StopMatcher) next(at int32, b byte) int32 {
	for {
		if c := m.child(at, b); c != 0 || at == 0 {
			return c
		}
		at = m.nodes[at].fail
	}
}

// Push takes the next text and returns what is certain to stand before any
// stop string. After a stop it returns nothing more. The slice is valid until
// the next call and must not be modified.
func (m *StopMatcher) Push(text []byte) (emit []byte, stopped bool) {
	if m.done {
		return nil, true
	}
	for i := range text {
		if m.state == 0 && !m.first[text[i]] {
			continue
		}
		m.state = m.next(m.state, text[i])
		if match := m.nodes[m.state].match; match != "" {
			m.done, m.stopped = true, match
			return m.release(text[:i+1], len(match)), true
		}
	}
	return m.release(text, int(m.nodes[m.state].depth)), false
}

// release gives all of the held text and text but the last hold bytes.
func (m *StopMatcher) release(text []byte, hold int) []byte {
	if len(m.held) == 0 && hold == 0 {
		m.emitted += len(text)
		return text
	}
	m.out = append(append(m.out[:0], m.held...), text...)
	n := len(m.out) - hold
	m.held = append(m.held[:0], m.out[n:]...)
	m.emitted += n
	return m.out[:n]
}

// Flush ends the text and returns what was held back; nothing after a stop.
func (m *StopMatcher) Flush() []byte {
	if m.done {
		return nil
	}
	m.out = append(m.out[:0], m.held...)
	m.emitted += len(m.out)
	m.held, m.state = m.held[:0], 0
	return m.out
}

// Stopped is the stop string found, empty if none was.
func (m *StopMatcher) Stopped() string { return m.stopped }

// Emitted is the number of bytes returned so far.
func (m *StopMatcher) Emitted() int { return m.emitted }

// Held is the number of bytes held back.
func (m *StopMatcher) Held() int {
	if m.done {
		return 0
	}
	return len(m.held)
}
