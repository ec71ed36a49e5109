package servertest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// Valid fails the test if the stream has any fault, and returns it.
func Valid(t testing.TB, body string) *Stream {
	t.Helper()
	s := Read(body)
	for _, fault := range Check(s) {
		t.Errorf("stream: %s", fault)
	}
	if t.Failed() {
		t.Logf("stream was:\n%s", body)
	}
	return s
}

// Check returns what is wrong with a stream.
func Check(s *Stream) []string {
	c := &checker{faults: append([]string{}, s.Faults...)}
	c.head(s)
	for i, e := range s.Events {
		if n := num(e, "sequence_number"); n != i {
			c.fault("event %d has sequence_number %v", i, e["sequence_number"])
		}
		c.event(e)
	}
	if c.terminals != 1 {
		c.fault("%d terminal events", c.terminals)
	}
	return c.faults
}

type checker struct {
	faults    []string
	terminals int
	id        string   // of the response
	open      *item    // being written
	done      []Object // items told whole
}

// item is an output item while its events come.
type item struct {
	added    Object
	partOpen bool
	parts    int
	text     string // that the deltas add up to
	whole    bool   // the .done event of the text came
}

func (c *checker) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

func (c *checker) head(s *Stream) {
	if len(s.Events) < 3 {
		c.fault("only %d events", len(s.Events))
		return
	}
	if a, b := str(s.Events[0], "type"), str(s.Events[1], "type"); a != "response.created" || b != "response.in_progress" {
		c.fault("the stream begins with %s, %s", a, b)
	}
	if last := str(s.Events[len(s.Events)-1], "type"); !isTerminal(last) {
		c.fault("the last event is %s", last)
	}
}

func (c *checker) event(e Object) {
	kind := str(e, "type")
	if _, there := e["error"]; there && kind != "error" {
		c.fault("%s has a top-level error", kind)
	}
	switch kind {
	case "response.created", "response.in_progress":
		c.snapshot(kind, obj(e, "response"), "in_progress")
	case "response.completed", "response.incomplete", "response.failed":
		c.terminals++
		if c.open != nil {
			c.fault("%s while an item is open", kind)
		}
		r := obj(e, "response")
		c.snapshot(kind, r, kind[len("response."):])
		c.output(kind, list(r, "output"))
	case "response.output_item.added":
		c.added(e)
	case "response.output_item.done":
		c.itemDone(e)
	case "error":
		if inner := obj(e, "error"); str(inner, "message") == "" || str(inner, "type") == "" || e["message"] != inner["message"] {
			c.fault("error event is %v", e)
		}
	default:
		c.within(kind, e)
	}
}

func (c *checker) snapshot(kind string, r Object, status string) {
	for _, fault := range CheckResource(r) {
		c.fault("%s: %s", kind, fault)
	}
	if str(r, "status") != status {
		c.fault("%s carries status %q", kind, str(r, "status"))
	}
	if c.id == "" {
		c.id = str(r, "id")
	}
	if str(r, "id") != c.id {
		c.fault("%s: id changed from %s to %s", kind, c.id, str(r, "id"))
	}
}

func (c *checker) output(kind string, output []any) {
	if len(output) != len(c.done) {
		c.fault("%s holds %d items, the stream had %d", kind, len(output), len(c.done))
		return
	}
	for i := range output {
		if !reflect.DeepEqual(output[i], any(c.done[i])) {
			c.fault("%s: output[%d] differs from its output_item.done", kind, i)
		}
	}
}

func (c *checker) added(e Object) {
	i := obj(e, "item")
	if c.open != nil {
		c.fault("an item is added while %s is open", str(c.open.added, "id"))
	}
	if num(e, "output_index") != len(c.done) {
		c.fault("added with output_index %v, want %d", e["output_index"], len(c.done))
	}
	if str(i, "status") != "in_progress" {
		c.fault("added with status %v", i["status"])
	}
	for _, fault := range checkItem(i) {
		c.fault("added: %s", fault)
	}
	if str(i, "arguments")+str(i, "input") != "" || len(list(i, "content"))+len(list(i, "summary")) > 0 {
		c.fault("added with content: %v", i)
	}
	c.open = &item{added: i}
}

func (c *checker) itemDone(e Object) {
	if c.open == nil {
		c.fault("an item is done that was not added")
		return
	}
	o, i := c.open, obj(e, "item")
	c.open = nil
	if num(e, "output_index") != len(c.done) {
		c.fault("done with output_index %v, want %d", e["output_index"], len(c.done))
	}
	c.done = append(c.done, i)
	for _, k := range []string{"id", "type", "call_id", "name", "namespace", "role"} {
		if o.added[k] != i[k] {
			c.fault("item done: %s changed from %v to %v", k, o.added[k], i[k])
		}
	}
	for _, fault := range checkItem(i) {
		c.fault("item done: %s", fault)
	}
	if o.partOpen || !o.whole {
		c.fault("item %s is done, but not its text", str(i, "id"))
	}
	if got := textOf(i); got != o.text {
		c.fault("item text %q is not what its deltas add up to, %q", got, o.text)
	}
}

func textOf(i Object) string {
	switch str(i, "type") {
	case "function_call":
		return str(i, "arguments")
	case "custom_tool_call":
		return str(i, "input")
	case "reasoning":
		return partText(list(i, "summary"))
	}
	return partText(list(i, "content"))
}

func partText(parts []any) string {
	var text strings.Builder
	for _, p := range parts {
		o, _ := p.(Object)
		text.WriteString(str(o, "text"))
	}
	return text.String()
}
