package testmodel

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/models/gguf"
)

const (
	turn   = "<|im_start|>system\nYou are a tiny scripted model.%s<|im_end|>\n<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n"
	tools  = "\n\n# Tools\n<tools>\n{\"type\": \"function\", \"function\": {\"name\": \"get_weather\"}}\n</tools>"
	result = "Weather?<|im_end|>\n<|im_start|>assistant\n<tool_call>\n{}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n18\n</tool_response>"
)

func prompt(system, user string) string {
	return strings.Replace(strings.Replace(turn, "%s", system, 1), "%s", user, 1)
}

// A lead of 4 is less than one slip in 50 tokens at temperature 1; the script
// keeps more.
const enough = 4

func TestAnswers(t *testing.T) {
	n := build()
	call := "<tool_call>\n{\"name\": \"" + CallName + "\", \"arguments\": " + CallArguments + "}\n</tool_call>"
	for name, c := range map[string]struct{ prompt, want string }{
		"plain":              {prompt("", "Hi"), Plain},
		"no template":        {"Once upon a time", Plain},
		"other words":        {prompt("", "The long/short way along, 42 \"value\" {"), Plain},
		"long prompt":        {prompt("", strings.Repeat("word ", 500)), Plain},
		"tools":              {prompt(tools, "Hi"), call},
		"notool":             {prompt(tools, "/notool"), Plain},
		"notool in the line": {prompt(tools, "please /notool now"), Plain},
		"result":             {prompt(tools, result), ToolAnswer},
		"result and notool":  {prompt(tools, "/notool "+result), Plain},
	} {
		t.Run(name, func(t *testing.T) {
			text, lead := n.generate(c.prompt, 40, nil)
			require.Equal(t, c.want, text)
			require.Greater(t, lead, float64(enough))
		})
	}
}

func TestLongNeverEnds(t *testing.T) {
	n := build()
	for _, user := range []string{"/long", "Tell me, /long please"} {
		text, lead := n.generate(prompt("", user), 60, nil)
		require.True(t, strings.HasPrefix(text, Plain+Plain+Plain), text)
		require.Greater(t, lead, float64(enough))
	}
}

func TestPlainIsTokenisedAsWritten(t *testing.T) {
	v := newVocab()
	require.Len(t, v.tokenize(Plain), len(plain), "a later turn finds the same tokens")
	require.Len(t, v.tokenize(ToolAnswer), len(answer))
	require.Equal(t, []int{v.id("/long")}, v.tokenize("/long"))
	require.LessOrEqual(t, len(v.texts), 512)
}

// constrain lets only texts through that can still become a whole match of
// the parts; a part is a class of characters, with a * where it repeats.
func constrain(parts ...string) func(soFar, next string) bool {
	open, end := "^", "$"
	for _, p := range parts {
		open += "(?:" + p
		end = ")?" + end
	}
	prefix := regexp.MustCompile(open + end)
	whole := regexp.MustCompile("^" + strings.Join(parts, "") + "$")
	return func(soFar, next string) bool {
		if next == eos {
			return whole.MatchString(soFar)
		}
		return next != "" && prefix.MatchString(soFar+next)
	}
}

func literal(s string) (parts []string) {
	for _, r := range s {
		parts = append(parts, regexp.QuoteMeta(string(r)))
	}
	return parts
}

func TestUnderGrammar(t *testing.T) {
	n := build()
	join := func(lists ...[]string) (all []string) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	str := []string{`"`, `[a-z ]*`, `"`}
	object := join(literal(`{"city":`), []string{" *"}, str, literal(`,"days":`), []string{" *", `[0-9]`, `[0-9]*`}, literal(`}`))
	for name, c := range map[string]struct {
		prompt string
		parts  []string
		want   string
	}{
		"schema": {prompt("", "Hi"), object, `{"city":"value","days":42}`},
		"call": {
			prompt(tools, "Hi") + "<tool_call>\n",
			join(literal(`{"name": "lookup_7", "arguments": `), object, literal("}\n</tool_call>")),
			`{"name": "lookup_7", "arguments": {"city":"value","days":42}}` + "\n</tool_call>",
		},
		"array": {prompt("", "Hi"), join([]string{`\[`}, str, []string{`[,\]]`}), `["value"]`},
	} {
		t.Run(name, func(t *testing.T) {
			text, _ := n.generate(c.prompt, 80, constrain(c.parts...))
			require.Equal(t, c.want, text)
		})
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	start := time.Now()
	require.NoError(t, Write(path))
	require.Less(t, time.Since(start), 5*time.Second)

	f, err := gguf.Open(path)
	require.NoError(t, err)
	require.NoError(t, f.CheckTensors())
	i := f.Info()
	require.Equal(t, ChatTemplate, i.ChatTemplate)
	require.Equal(t, ContextLength, i.ContextLength)
	require.Zero(t, i.VocabSize%32)
	end, _ := i.Special("eos")
	require.Equal(t, eos, end.Text)
	require.Error(t, Write(filepath.Join(path, "nowhere")))
}

func TestWriteIsReproducible(t *testing.T) {
	first, second := build(), build()
	require.Equal(t, first, second)
	var args map[string]string
	require.NoError(t, json.Unmarshal([]byte(CallArguments), &args))
}
