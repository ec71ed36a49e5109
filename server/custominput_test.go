package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func scanInput(args string, step int) string {
	s := &inputScanner{}
	var out strings.Builder
	for i := 0; i < len(args); i += step {
		out.Write(s.push([]byte(args[i:min(len(args), i+step)])))
	}
	out.Write(s.flush())
	return out.String()
}

func TestCustomInputComesOutOfItsArguments(t *testing.T) {
	for _, row := range []struct{ name, args, want string }{
		{"plain", `{"input":"hello"}`, "hello"},
		{"blanks", " {\n \"input\" : \"a\\nb\" }", "a\nb"},
		{"escapes", `{"input":"\"\\\/\b\f\n\r\tA\u00e9\ud83d\ude00"}`, "\"\\/\b\f\n\r\tAé😀"},
		{"half a pair", `{"input":"\ud83dx\ud83d"}`, "\uFFFDx\uFFFD"},
		{"empty", `{"input":""}`, ""},
		{"cut in the text", `{"input":"abc`, "abc"},
		{"cut in the head", `{"inp`, `{"inp`},
		{"other key first", `{"x":1,"input":"abc"}`, "abc"},
		{"no such key", `{"text":"abc"}`, `{"text":"abc"}`},
		{"bare string", `"abc"`, "abc"},
		{"not JSON", `*** Begin Patch`, `*** Begin Patch`},
		{"nothing", ``, ``},
	} {
		t.Run(row.name, func(t *testing.T) {
			for step := 1; step <= len(row.args)+1; step++ {
				require.Equal(t, row.want, scanInput(row.args, step), "step %d", step)
			}
		})
	}
}

// FuzzCustomInput: any text that is encoded comes back, in any split.
func FuzzCustomInput(f *testing.F) {
	f.Add("a\"b\\c\n\u2028😀", 3)
	f.Add("", 1)
	f.Fuzz(func(t *testing.T, text string, step int) {
		args, err := json.Marshal(map[string]string{"input": text})
		require.NoError(t, err)
		var back map[string]string
		require.NoError(t, json.Unmarshal(args, &back))
		require.Equal(t, back["input"], scanInput(string(args), max(1, step%16)))
	})
}
