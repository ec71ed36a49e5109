package schema

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// largestSchema is a schema of the size of the largest tools that agents offer:
// nested objects, enums, unions, patterns, bounds, a recursion.
func largestSchema() json.RawMessage {
	var props []string
	for i := range 60 {
		props = append(props, fmt.Sprintf(`"field_%d":{"anyOf":[{"type":"object","properties":{"id":{"type":"string","pattern":"^[a-z]{2,8}-[0-9]{%d}$"},"n":{"type":"integer","minimum":%d,"maximum":99999},"when":{"type":"string","format":"date-time"},"kind":{"enum":["alpha%d","beta","gamma"]},"kids":{"type":"array","items":{"$ref":"#"},"maxItems":20}},"required":["id","n"],"additionalProperties":false},{"type":"null"}]}`, i, i%9+1, i*7, i))
	}
	return json.RawMessage(`{"type":"object","properties":{` + strings.Join(props, ",") + `},"additionalProperties":false}`)
}

// BenchmarkCompile compiles without the cache: a synthetic large schema, and the
// largest of real tools where there are some beside the checkout.
func BenchmarkCompile(b *testing.B) {
	schemas := map[string]json.RawMessage{"synthetic": largestSchema()}
	if s := largestShared(b); s != nil {
		schemas["shared"] = s
	}
	for name, s := range schemas {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Compile(s, Options{Closed: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCompileCached is the same once the schema is known.
func BenchmarkCompileCached(b *testing.B) {
	c, s := NewCache(1<<20), largestSchema()
	for b.Loop() {
		if _, err := c.Compile(s, Options{Closed: true}); err != nil {
			b.Fatal(err)
		}
	}
}

// largestShared is the largest schema of tools in the corpora and requests that
// may lie beside the checkout.
func largestShared(b *testing.B) json.RawMessage {
	var best json.RawMessage
	root := filepath.Join("..", "..", "..", "shared")
	for _, glob := range []string{"toolcorpus/*/*.jsonl", "requests/*.json"} {
		files, err := filepath.Glob(filepath.Join(root, glob))
		if err != nil {
			b.Fatal(err)
		}
		for _, path := range files {
			raw, err := os.ReadFile(path)
			if err != nil {
				b.Fatal(err)
			}
			for d := json.NewDecoder(strings.NewReader(string(raw))); ; {
				var line struct {
					Tools   []struct{ Parameters json.RawMessage }
					Request struct {
						Tools []struct{ Parameters json.RawMessage }
					}
				}
				if d.Decode(&line) != nil { // the end, or a file of another kind
					break
				}
				for _, t := range append(line.Tools, line.Request.Tools...) {
					if len(t.Parameters) > len(best) {
						best = t.Parameters
					}
				}
			}
		}
	}
	return best
}
