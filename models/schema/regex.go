package schema

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

const (
	maxPatternBytes = 4096
	maxWork         = 400_000 // steps of making one automaton
)

// ErrUnsupported marks patterns that are good ECMA-262 but cannot be an
// automaton here: look-around, back references, word boundaries.
var ErrUnsupported = errors.New("not supported in a grammar")

// compilePattern makes an automaton of a schema's pattern, which matches
// anywhere in the text unless it is anchored.
func compilePattern(pattern string) (*dfa, error) {
	if len(pattern) > maxPatternBytes {
		return nil, fmt.Errorf("pattern of %d bytes: %w", len(pattern), ErrTooLarge)
	}
	re, err := syntax.Parse(fromECMA(pattern), syntax.Perl)
	if err != nil {
		return nil, patternError(err)
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, err
	}
	m := &subsets{prog: prog, ids: map[string]int{}, folds: map[int][]runeSpan{}}
	for _, inst := range prog.Inst {
		op := syntax.EmptyOp(inst.Arg)
		if inst.Op == syntax.InstEmptyWidth && op&^(syntax.EmptyBeginText|syntax.EmptyEndText) != 0 {
			return nil, fmt.Errorf("word boundary or multi-line anchor: %w", ErrUnsupported)
		}
	}
	return m.build()
}

// patternError tells unsupported syntax from broken syntax.
func patternError(err error) error {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return err
	}
	behind := strings.HasPrefix(e.Expr, "(?<=") || strings.HasPrefix(e.Expr, "(?<!")
	if e.Code == syntax.ErrInvalidPerlOp || behind || e.Code == syntax.ErrInvalidEscape && isReference(e.Expr) {
		return fmt.Errorf("%q: %w", e.Expr, ErrUnsupported)
	}
	if e.Code == syntax.ErrInvalidRepeatSize || e.Code == syntax.ErrLarge || e.Code == syntax.ErrNestingDepth {
		return fmt.Errorf("%q: %w", e.Expr, ErrTooLarge)
	}
	return errors.New(strings.TrimPrefix(e.Error(), "error parsing regexp: "))
}

// isReference knows back references and control escapes.
func isReference(s string) bool {
	return len(s) > 1 && (s[1] == 'k' || s[1] == 'c' || '1' <= s[1] && s[1] <= '9')
}

// fromECMA rewrites what ECMA-262 spells differently from RE2: \uXXXX.
func fromECMA(p string) string {
	if !strings.Contains(p, `\u`) {
		return p
	}
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		if p[i] != '\\' || i+1 == len(p) {
			b.WriteByte(p[i])
			continue
		}
		if p[i+1] == 'u' && i+6 <= len(p) && isHex(p[i+2:i+6]) {
			fmt.Fprintf(&b, `\x{%s}`, p[i+2:i+6])
			i += 5
			continue
		}
		b.WriteString(p[i : i+2])
		i++
	}
	return b.String()
}

func isHex(s string) bool {
	for _, c := range s {
		if !strings.ContainsRune("0123456789abcdefABCDEF", c) {
			return false
		}
	}
	return true
}

// subsets turns the program of a regular expression into a dfa by following
// sets of instructions.
type subsets struct {
	prog  *syntax.Prog
	ids   map[string]int
	queue []subset
	out   dfa
	folds map[int][]runeSpan
	key   []byte // scratch of id
	seen  []int  // by instruction, the closure that met it last
	round int    // counts closures
	work  int
	any   int // 1 + the state that accepts everything, once there is one
}

// subset is a set of instructions about to run; first is true before the
// first character.
type subset struct {
	pcs   []int
	first bool
}

func (m *subsets) build() (*dfa, error) {
	if _, err := m.id(subset{first: true}); err != nil {
		return nil, err
	}
	for i := 0; i < len(m.queue); i++ {
		s := m.queue[i]
		if s.pcs == nil && !s.first {
			continue // the state that accepts everything has its edges
		}
		if err := m.expand(i, s); err != nil {
			return nil, err
		}
	}
	return &m.out, nil
}

func (m *subsets) id(s subset) (int, error) {
	key := m.key[:0]
	if s.first {
		key = append(key, '^')
	}
	for _, pc := range s.pcs {
		key = binary.LittleEndian.AppendUint32(key, uint32(pc))
	}
	m.key = key
	if id, ok := m.ids[string(key)]; ok {
		return id, nil
	}
	id := len(m.out.states)
	if id >= maxStates {
		return 0, fmt.Errorf("pattern: %w", ErrTooLarge)
	}
	m.ids[string(key)] = id
	m.queue = append(m.queue, s)
	m.out.states = append(m.out.states, dfaState{})
	return id, nil
}

func (m *subsets) universal() (int, error) {
	if m.any == 0 {
		id, err := m.id(subset{})
		if err != nil {
			return 0, err
		}
		m.any = id + 1
		m.out.states[id].accept = true
		m.out.states[id].addAll(id)
	}
	return m.any - 1, nil
}

// expand makes the edges of one state: the alphabet is cut where the set of
// matching instructions changes.
func (m *subsets) expand(id int, s subset) error {
	_, m.out.states[id].accept = m.closure(s, true)
	live, matched := m.closure(s, false)
	if matched { // whatever follows, the pattern has been found
		to, err := m.universal()
		if err == nil {
			m.out.states[id].accept = true
			m.out.states[id].edges = nil
			m.out.states[id].addAll(to)
		}
		return err
	}
	var cuts []rune
	for _, a := range alphabet {
		cuts = append(cuts, a.lo, a.hi+1)
	}
	for _, pc := range live {
		for _, x := range m.spans(pc) {
			cuts = append(cuts, x.lo, x.hi+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	known := map[string]int{} // which of live match → the state after them
	at := make([]int, len(live))
	match := make([]byte, len(live))
	for i := range len(cuts) - 1 {
		r := cuts[i]
		if !inAlphabet(r) {
			continue
		}
		if m.work += 1 + len(live); m.work > maxWork {
			return fmt.Errorf("pattern: %w", ErrTooLarge)
		}
		for k, pc := range live {
			spans := m.spans(pc)
			for at[k] < len(spans) && spans[at[k]].hi < r {
				at[k]++
			}
			match[k] = 0
			if at[k] < len(spans) && spans[at[k]].lo <= r {
				match[k] = 1
			}
		}
		to, ok := known[string(match)]
		if !ok {
			var err error
			if to, err = m.id(subset{pcs: m.targets(live, match)}); err != nil {
				return err
			}
			known[string(match)] = to
		}
		m.addEdge(id, r, cuts[i+1]-1, to)
	}
	return nil
}

func inAlphabet(r rune) bool {
	return slices.ContainsFunc(alphabet, func(a runeSpan) bool { return a.lo <= r && r <= a.hi })
}

func (m *subsets) addEdge(id int, lo, hi rune, to int) {
	s := &m.out.states[id]
	if n := len(s.edges); n > 0 && s.edges[n-1].to == to && s.edges[n-1].hi+1 == lo {
		s.edges[n-1].hi = hi
		return
	}
	s.edges = append(s.edges, dfaEdge{lo, hi, to})
}

// targets is the set of instructions after those of live that match; the
// search may also begin anew, so the set is never nil.
func (m *subsets) targets(live []int, match []byte) []int {
	next := []int{m.prog.Start}
	for k, pc := range live {
		if match[k] == 1 {
			next = append(next, int(m.prog.Inst[pc].Out))
		}
	}
	slices.Sort(next)
	return slices.Compact(next)
}

// closure follows instructions that consume nothing. It returns those that
// consume and whether a match is reached; end says that the text ends here.
func (m *subsets) closure(s subset, end bool) (live []int, matched bool) {
	if m.round++; m.seen == nil {
		m.seen = make([]int, len(m.prog.Inst))
	}
	stack := slices.Clone(s.pcs)
	if s.first {
		stack = []int{m.prog.Start}
	}
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if m.seen[pc] == m.round {
			continue
		}
		m.seen[pc] = m.round
		inst := &m.prog.Inst[pc]
		switch inst.Op {
		case syntax.InstMatch:
			matched = true
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, int(inst.Out), int(inst.Arg))
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, int(inst.Out))
		case syntax.InstEmptyWidth:
			op := syntax.EmptyOp(inst.Arg)
			if (op&syntax.EmptyBeginText == 0 || s.first) && (op&syntax.EmptyEndText == 0 || end) {
				stack = append(stack, int(inst.Out))
			}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			live = append(live, pc)
		}
	}
	slices.Sort(live)
	return live, matched
}

// spans are the characters that an instruction takes, in order.
func (m *subsets) spans(pc int) []runeSpan {
	if s, ok := m.folds[pc]; ok {
		return s
	}
	inst := &m.prog.Inst[pc]
	var out []runeSpan
	switch inst.Op {
	case syntax.InstRuneAny:
		out = []runeSpan{{0, unicode.MaxRune}}
	case syntax.InstRuneAnyNotNL:
		out = []runeSpan{{0, '\n' - 1}, {'\n' + 1, unicode.MaxRune}}
	default:
		if len(inst.Rune) == 1 {
			r := inst.Rune[0]
			out = []runeSpan{{r, r}}
			if inst.Op == syntax.InstRune && syntax.Flags(inst.Arg)&syntax.FoldCase != 0 {
				for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
					out = append(out, runeSpan{f, f})
				}
			}
			break
		}
		for i := 0; i+1 < len(inst.Rune); i += 2 {
			out = append(out, runeSpan{inst.Rune[i], inst.Rune[i+1]})
		}
	}
	slices.SortFunc(out, func(a, b runeSpan) int { return int(a.lo - b.lo) })
	m.folds[pc] = out
	return out
}
