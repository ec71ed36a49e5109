package servertest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Object is a decoded JSON object.
type Object = map[string]any

// Stream is a whole event stream, read.
type Stream struct {
	Events   []Object
	Comments int
	Done     bool     // [DONE] came, last
	Faults   []string // of framing
}

// Read takes a stream apart. Faults of framing are noted, not fatal.
func Read(body string) *Stream {
	s := &Stream{}
	if !strings.HasSuffix(body, "\n\n") {
		s.fault("the last frame is not ended by a blank line")
	}
	for i, frame := range strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		s.frame(i, frame)
	}
	if !s.Done {
		s.fault("no [DONE]")
	}
	return s
}

func (s *Stream) fault(format string, args ...any) {
	s.Faults = append(s.Faults, fmt.Sprintf(format, args...))
}

func (s *Stream) frame(i int, frame string) {
	if strings.HasPrefix(frame, ":") && !strings.Contains(frame, "\n") {
		s.Comments++
		return
	}
	if s.Done {
		s.fault("frame %d comes after [DONE]", i)
	}
	if frame == "data: [DONE]" {
		s.Done = true
		return
	}
	lines := strings.Split(frame, "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "event: ") || !strings.HasPrefix(lines[1], "data: ") {
		s.fault("frame %d is not one event line and one data line: %.80q", i, frame)
		return
	}
	var e Object
	if err := json.Unmarshal([]byte(lines[1][len("data: "):]), &e); err != nil {
		s.fault("frame %d is not a JSON object: %s", i, err)
		return
	}
	if name := lines[0][len("event: "):]; name != str(e, "type") {
		s.fault("frame %d: event %q is not type %q", i, name, str(e, "type"))
	}
	s.Events = append(s.Events, e)
}

// Of returns the events of one type.
func (s *Stream) Of(kind string) []Object {
	var out []Object
	for _, e := range s.Events {
		if str(e, "type") == kind {
			out = append(out, e)
		}
	}
	return out
}

// Types returns the types in order, runs of the same type once.
func (s *Stream) Types() []string {
	var out []string
	for _, e := range s.Events {
		if t := str(e, "type"); len(out) == 0 || out[len(out)-1] != t {
			out = append(out, t)
		}
	}
	return out
}

// Final returns the response of the terminal event; nil without one.
func (s *Stream) Final() Object {
	for _, e := range s.Events {
		if isTerminal(str(e, "type")) {
			return obj(e, "response")
		}
	}
	return nil
}

// Text joins the deltas of the visible text.
func (s *Stream) Text() string {
	var b strings.Builder
	for _, e := range s.Of("response.output_text.delta") {
		b.WriteString(str(e, "delta"))
	}
	return b.String()
}

func isTerminal(kind string) bool {
	return kind == "response.completed" || kind == "response.incomplete" || kind == "response.failed"
}

func str(o Object, key string) string { s, _ := o[key].(string); return s }
func obj(o Object, key string) Object { m, _ := o[key].(Object); return m }
func list(o Object, key string) []any { l, _ := o[key].([]any); return l }
func num(o Object, key string) int {
	f, ok := o[key].(float64)
	if !ok {
		return -1
	}
	return int(f)
}
