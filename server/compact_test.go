package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const spoken = `{"role":"developer","content":"Be brief."},{"role":"user","content":"My name is Ada."},{"role":"assistant","content":"Hello Ada."}`

// compacted posts to /v1/responses/compact and returns the answer and its output
// as JSON.
func (n *node) compacted(body string) (object, string) {
	n.t.Helper()
	res, text := n.do("POST", "/v1/responses/compact", body)
	require.Equal(n.t, 200, res.StatusCode, text)
	var o object
	require.NoError(n.t, json.Unmarshal([]byte(text), &o))
	output, err := json.Marshal(o["output"])
	require.NoError(n.t, err)
	return o, string(output)
}

func TestCompactGivesANote(t *testing.T) {
	n := newNode(t, "The user is Ada.")
	o, output := n.compacted(`{"model":"test-model","tools":[{"type":"function","name":"f"}],"tool_choice":"required","input":[` + spoken + `]}`)
	require.Equal(t, "response.compaction", o["object"])
	require.Contains(t, n.LastPrompt(), "Hello Ada.<|im_end|>\n<|im_start|>user\n"+compactAsk)
	require.NotContains(t, n.LastPrompt(), "<tools>")
	items := o["output"].([]any)
	require.Len(t, items, 2, "the rules stay, the rest becomes a note")
	require.Equal(t, "developer", items[0].(object)["role"])
	note := items[1].(object)
	require.Equal(t, "compaction", note["type"])
	require.True(t, strings.HasPrefix(note["id"].(string), "cmp_"))
	require.NotContains(t, output, "Ada")
	require.Positive(t, o["usage"].(object)["output_tokens"])

	n.create(`{"input":` + strings.TrimSuffix(output, "]") + `,{"role":"user","content":"Who am I?"}]}`)
	require.Contains(t, n.LastPrompt(), "Be brief.")
	require.Contains(t, n.LastPrompt(), compactHead+"The user is Ada.")
	require.NotContains(t, n.LastPrompt(), "Hello Ada.")
}

func TestCompactKeepsWhatWasSaidIfTheModelSaysNothing(t *testing.T) {
	n := newNode(t, " ")
	_, output := n.compacted(`{"model":"test-model","input":[` + spoken + `]}`)
	n.create(`{"input":` + output + `}`)
	require.Contains(t, n.LastPrompt(), "user: My name is Ada.\nassistant: Hello Ada.")
}

func TestCompactIsNeverLongerThanWhatWasSaid(t *testing.T) {
	n := newNode(t, strings.Repeat("She likes ducks. ", 200))
	o, output := n.compacted(`{"model":"test-model","input":[` + spoken + `]}`)
	plain := "user: My name is Ada.\nassistant: Hello Ada."
	require.LessOrEqual(t, o["usage"].(object)["output_tokens"], float64(len(plain)), "the model goes on for no longer than that")
	n.create(`{"input":` + output + `}`)
	require.Contains(t, n.LastPrompt(), compactHead+plain)
	require.NotContains(t, n.LastPrompt(), "ducks")
	require.NotContains(t, n.LastPrompt(), "developer: Be brief.", "a rule stands there as it was, not in the note as well")
}

func TestCompactOfRulesAlone(t *testing.T) {
	n := newNode(t, "Nothing was said.")
	_, output := n.compacted(`{"model":"test-model","input":[{"role":"developer","content":"Be brief."}]}`)
	n.create(`{"input":` + output + `}`)
	require.Contains(t, n.LastPrompt(), "Be brief.")
	require.Contains(t, n.LastPrompt(), compactHead+"Nothing was said.")
}

func TestCompactDropsTheOldestOfALongConversation(t *testing.T) {
	n := newNode(t, "A note.")
	long := strings.Repeat(`{"role":"user","content":"`+strings.Repeat("x", 300)+`"},{"role":"assistant","content":"ok"},`, 10)
	n.compacted(`{"model":"test-model","input":[` + long + `{"role":"user","content":"last"}]}`)
	require.Contains(t, n.LastPrompt(), "last")
}

func TestCompactRefuses(t *testing.T) {
	n := newNode(t, "A note.")
	for body, param := range map[string]string{
		`{"input":"hi"}`:                      "model",
		`{"model":"test-model"}`:              "input",
		`{"model":"test-model","input":[]}`:   "input",
		`{"model":"test-model","input":7}`:    "input",
		`{"model":"m","input":"hi","stop":7}`: "stop",
	} {
		require.Equal(t, param, n.refused(400, "/v1/responses/compact", body)["param"], body)
	}
}

func TestForeignCompactions(t *testing.T) {
	own, other := newNode(t, "A note."), newNode(t, "A note.")
	_, foreign := other.compacted(`{"model":"test-model","input":"hi"}`)
	e := own.refused(400, "/v1/responses", `{"input":`+foreign+`}`)
	require.Equal(t, "input[0].encrypted_content", e["param"])
	for _, damaged := range []string{"", "x", "!!", strings.Repeat("A", 200)} {
		e := own.refused(400, "/v1/responses", `{"input":[{"type":"compaction","encrypted_content":"`+damaged+`"}]}`)
		require.Equal(t, "input[0].encrypted_content", e["param"])
	}
	n := newNode(t, "A note.", nodeOptions{config: Config{APIKeys: []string{"one", "two"}}})
	_, sealed := n.do("POST", "/v1/responses/compact", `{"model":"test-model","input":"hi"}`, "Authorization", "Bearer one")
	output, err := json.Marshal(decodeObject(t, sealed)["output"])
	require.NoError(t, err)
	for key, status := range map[string]int{"one": 200, "two": 400} {
		res, out := n.do("POST", "/v1/responses", `{"input":`+string(output)+`}`, "Authorization", "Bearer "+key)
		require.Equal(t, status, res.StatusCode, out)
		if status == 400 {
			require.Equal(t, "input[0].encrypted_content", errorOf(t, out)["param"])
		}
	}
}

func TestNodesThatShareASealKey(t *testing.T) {
	shared := nodeOptions{config: Config{SealKey: []byte("0123456789abcdef0123456789abcdef")}}
	_, output := newNode(t, "A note.", shared).compacted(`{"model":"test-model","input":"hi"}`)
	second := newNode(t, "yes", shared)
	second.create(`{"input":` + output + `}`)
	require.Contains(t, second.LastPrompt(), "A note.")
}
