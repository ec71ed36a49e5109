package server

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/server/servertest"
	"quern/server/store"
)

// storing is a node that keeps responses.
func storing(t *testing.T, answer string, opts ...nodeOptions) *node {
	o := nodeOptions{}
	if len(opts) > 0 {
		o = opts[0]
	}
	if o.config.Store == nil {
		o.config = withStore(o.config)
	}
	return newNode(t, answer, o)
}

func withStore(cfg Config) Config {
	cfg.Store = store.Memory(store.Options{})
	return cfg
}

// fetched asks for a path and wants a status; it returns the body decoded.
func (n *node) fetched(method, path string, status int, headers ...string) object {
	n.t.Helper()
	res, out := n.do(method, path, "", headers...)
	require.Equal(n.t, status, res.StatusCode, out)
	var o object
	require.NoError(n.t, json.Unmarshal([]byte(out), &o), out)
	if status >= 400 {
		return errorOf(n.t, out)
	}
	return o
}

func TestAStoredResponseComesBackAsItWas(t *testing.T) {
	n := storing(t, "<think>\nhm\n</think>\n\nHello.")
	for _, o := range []object{
		n.create(`{"input":"hi","metadata":{"a":"b"}}`),
		n.create(`{"input":"hi","store":true,"max_output_tokens":12}`),
		n.stream(`{"input":"hi","store":null}`).Final(),
	} {
		require.Equal(t, true, o["store"])
		path := "/v1/responses/" + o["id"].(string)
		require.Equal(t, o, n.fetched("GET", path, 200))
		require.Equal(t, object{"id": o["id"], "object": "response", "deleted": true}, n.fetched("DELETE", path, 200))
		for _, method := range []string{"GET", "DELETE"} {
			require.Equal(t, "response_not_found", n.fetched(method, path, 404)["code"])
		}
		require.Equal(t, codePreviousResponse, n.refused(400, "/v1/responses", `{"input":"x","previous_response_id":"`+o["id"].(string)+`"}`)["code"])
	}
	o := n.create(`{"input":"hi","store":false}`)
	require.Equal(t, false, o["store"])
	n.fetched("GET", "/v1/responses/"+o["id"].(string), 404)
}

func TestAConversationGoesOnFromWhatIsStored(t *testing.T) {
	n := storing(t, call(`{"city": "Paris"}`))
	first := n.create(`{"input":"Weather in Paris?","instructions":"Be brief.",` + weatherTool + `}`)
	callID := items(first, "function_call")[0]["call_id"].(string)
	n.Say("It is sunny.")
	second := n.create(`{"previous_response_id":"` + first["id"].(string) + `",` + weatherTool + `,
		"input":[{"type":"function_call_output","call_id":"` + callID + `","output":"sun"}]}`)
	require.Equal(t, first["id"], second["previous_response_id"])
	n.Say("You are welcome.")
	third := n.create(`{"previous_response_id":"` + second["id"].(string) + `","input":"Thanks."}`)
	p := n.LastPrompt()
	for _, part := range []string{"Weather in Paris?", `"city"`, "sun\n", "It is sunny.", "Thanks."} {
		at := strings.Index(p, part)
		require.GreaterOrEqual(t, at, 0, "%s in %s", part, p)
		p = p[at:]
	}
	require.NotContains(t, n.LastPrompt(), "Be brief.", "instructions are of one turn")

	// The same conversation, sent whole, is the same prompt.
	stored := n.LastPrompt()
	n.create(`{"input":[{"role":"user","content":"Weather in Paris?"},{"type":"function_call","call_id":"c","name":"weather","arguments":"{\"city\": \"Paris\"}"},
		{"type":"function_call_output","call_id":"c","output":"sun"},{"role":"assistant","content":"It is sunny."},{"role":"user","content":"Thanks."}]}`)
	require.Equal(t, n.LastPrompt(), stored)

	e := n.refused(400, "/v1/responses", `{"input":[{"type":"function_call_output","call_id":"nope","output":"x"}],"previous_response_id":"`+third["id"].(string)+`"}`)
	require.Equal(t, "input[0].call_id", e["param"])
	n.fetched("DELETE", "/v1/responses/"+second["id"].(string), 200)
	e = n.refused(400, "/v1/responses", `{"input":"x","previous_response_id":"`+third["id"].(string)+`"}`)
	require.Equal(t, codePreviousResponse, e["code"])
	require.Contains(t, e["message"], second["id"])
	n.fetched("GET", "/v1/responses/"+third["id"].(string), 200)
}

func TestPromptsAndCompactionsOfAStoredConversation(t *testing.T) {
	n := storing(t, "Hello Ada.")
	id := n.create(`{"input":"I am Ada."}`)["id"].(string)
	_, out := n.do("POST", "/v1/responses/render", `{"input":"Who am I?","previous_response_id":"`+id+`"}`)
	require.Contains(t, out, "I am Ada.")
	n.Say("Ada.")
	res, out := n.do("POST", "/v1/responses/compact", `{"model":"test-model","input":"Stop.","previous_response_id":"`+id+`"}`)
	require.Equal(t, 200, res.StatusCode, out)
	require.Contains(t, n.LastPrompt(), "I am Ada.")
}

func TestInputItems(t *testing.T) {
	n := storing(t, "ok")
	first := n.create(`{"input":"hi \"there\""}`)
	ref := dig(first, "output", 0, "id").(string)
	list := n.fetched("GET", "/v1/responses/"+first["id"].(string)+"/input_items", 200)
	require.Equal(t, "hi \"there\"", dig(list, "data", 0, "content", 0, "text"))
	require.Equal(t, dig(list, "data", 0, "id"), list["first_id"])
	require.Equal(t, false, list["has_more"])

	o := n.create(`{"input":[{"role":"user","content":"a"},{"id":"` + ref + `"},{"type":"message","role":"assistant","content":"b","id":"msg_b"},
		{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"x"}]}`)
	path := "/v1/responses/" + o["id"].(string) + "/input_items"
	var kinds []any
	for _, item := range n.fetched("GET", path+"?order=asc", 200)["data"].([]any) {
		require.NotEmpty(t, item.(object)["id"])
		kinds = append(kinds, item.(object)["type"])
	}
	require.Equal(t, []any{"message", "message", "message", "function_call", "function_call_output"}, kinds)
	list = n.fetched("GET", path+"?limit=2", 200)
	require.Equal(t, true, list["has_more"])
	require.Equal(t, "function_call_output", dig(list, "data", 0, "type"), "the latest first")
	list = n.fetched("GET", path+"?limit=2&after="+list["last_id"].(string), 200)
	require.Equal(t, "msg_b", dig(list, "data", 0, "id"))
	require.Equal(t, ref, dig(list, "data", 1, "id"), "a reference is listed as what it stands for")
	for query, param := range map[string]string{"limit=0": "limit", "limit=101": "limit", "limit=x": "limit", "order=up": "order", "after=nope": "after"} {
		require.Equal(t, param, n.fetched("GET", path+"?"+query, 400)["param"])
	}
	n.fetched("GET", "/v1/responses/resp_none/input_items", 404)
}

func TestAStoredConversationAllowsForCompactions(t *testing.T) {
	n := storing(t, "Ada likes red.")
	_, out := n.do("POST", "/v1/responses/compact", `{"model":"test-model","input":"I am Ada and like red."}`)
	var c struct{ Output json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(out), &c))
	id := n.create(`{"input":` + string(c.Output) + `}`)["id"].(string)
	n.create(`{"input":"What do I like?","previous_response_id":"` + id + `"}`)
	require.Contains(t, n.LastPrompt(), "Ada likes red.")
}

func TestAnotherKeyHasNoPartInIt(t *testing.T) {
	n := storing(t, "secret", nodeOptions{config: Config{APIKeys: []string{"one", "two"}}})
	_, out := n.do("POST", "/v1/responses", `{"input":"hi"}`, "Authorization", "Bearer one")
	var o object
	require.NoError(t, json.Unmarshal([]byte(out), &o))
	id := o["id"].(string)
	for _, at := range [][2]string{
		{"GET", ""}, {"GET", "?stream=true"}, {"GET", "/input_items"}, {"POST", "/cancel"}, {"DELETE", ""},
	} {
		e := n.fetched(at[0], "/v1/responses/"+id+at[1], 404, "Authorization", "Bearer two")
		require.Equal(t, "response_not_found", e["code"], at)
		n.fetched(at[0], "/v1/responses/"+id+at[1], 401)
	}
	res, _ := n.do("POST", "/v1/responses", `{"input":"x","previous_response_id":"`+id+`"}`, "Authorization", "Bearer two")
	require.Equal(t, 400, res.StatusCode)
	n.fetched("GET", "/v1/responses/"+id, 200, "Authorization", "Bearer one")
}

func TestWithoutAStore(t *testing.T) {
	n := newNode(t, "hi")
	o := n.create(`{"input":"hi","store":true}`)
	require.Equal(t, false, o["store"], "what was really done")
	e := n.refused(400, "/v1/responses", `{"input":"hi","previous_response_id":"`+o["id"].(string)+`"}`)
	require.Equal(t, codePreviousResponse, e["code"])
	require.Contains(t, e["message"], "--store")
	require.Contains(t, n.refused(400, "/v1/responses", `{"input":"hi","background":true}`)["message"], "--store")
	for _, at := range [][2]string{{"GET", ""}, {"GET", "?stream=true"}, {"GET", "/input_items"}, {"POST", "/cancel"}, {"DELETE", ""}} {
		require.Contains(t, n.fetched(at[0], "/v1/responses/resp_x"+at[1], 404)["message"], "--store")
	}
}

func TestStoredResponsesSurviveARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "responses.db")
	open := func() *store.Store {
		s, err := store.Disk(path, store.Options{}, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		return s
	}
	s := open()
	o := storing(t, "Hello Ada.", nodeOptions{config: Config{Store: s}}).create(`{"input":"I am Ada."}`)
	require.NoError(t, s.Close())
	s = open()
	defer func() { require.NoError(t, s.Close()) }()
	n := storing(t, "Ada.", nodeOptions{config: Config{Store: s}})
	require.Equal(t, o, n.fetched("GET", "/v1/responses/"+o["id"].(string), 200))
	n.create(`{"input":"Who am I?","previous_response_id":"` + o["id"].(string) + `"}`)
	require.Contains(t, n.LastPrompt(), "I am Ada.")
}

// A response that can't be stored is answered all the same, and says so.
func TestAFullStoreLosesNoAnswer(t *testing.T) {
	n := storing(t, "hi", nodeOptions{config: Config{Store: store.Memory(store.Options{MaxBytes: 10})}})
	one, s := n.both(`{"input":"hi","store":true}`)
	require.Equal(t, false, one["store"])
	require.Equal(t, false, s.Final()["store"])
	e := n.refused(500, "/v1/responses", `{"input":"hi","background":true}`)
	require.Equal(t, codeServerError, e["code"])
}

func TestOtherContractsStoreNothing(t *testing.T) {
	n := storing(t, "hi", nodeOptions{config: Config{Contract: "lenient"}})
	o := n.create(`{"model":"test-model","input":"hi","store":true}`)
	n.fetched("GET", "/v1/responses/"+o["id"].(string), 404)
}

// eventually asks until the answer is as wanted.
func (n *node) eventually(path string, wanted func(object) bool) object {
	n.t.Helper()
	var o object
	require.Eventually(n.t, func() bool {
		o = n.fetched("GET", path, 200)
		return wanted(o)
	}, 10*time.Second, time.Millisecond)
	return o
}

func terminal(o object) bool { return o["status"] != "queued" && o["status"] != "in_progress" }

func TestBackground(t *testing.T) {
	n := storing(t, "Hello Ada.")
	o := n.create(`{"input":"I am Ada.","background":true}`)
	require.Equal(t, "queued", o["status"])
	require.Equal(t, true, o["background"])
	require.Empty(t, o["output"])
	path := "/v1/responses/" + o["id"].(string)
	o = n.eventually(path, terminal)
	require.Equal(t, "completed", o["status"])
	require.Equal(t, "Hello Ada.", textOf(o))
	require.Empty(t, servertest.CheckResource(o))
	require.Equal(t, o, n.fetched("POST", path+"/cancel", 200), "it has ended")
	require.Equal(t, "stream", n.fetched("GET", path+"?stream=true", 400)["param"])
	n.create(`{"input":"Who am I?","previous_response_id":"` + o["id"].(string) + `"}`)
	require.Contains(t, n.LastPrompt(), "I am Ada.")

	require.Equal(t, "background", n.refused(400, "/v1/responses", `{"input":"x","background":true,"store":false}`)["param"])
	plain := n.create(`{"input":"hi"}`)
	require.Contains(t, n.fetched("POST", "/v1/responses/"+plain["id"].(string)+"/cancel", 400)["message"], "background")
	require.Equal(t, codeModelNotFound, n.refused(404, "/v1/responses", `{"model":"nope","input":"x","background":true}`)["code"])
}

var slowly = nodeOptions{cost: 2 * time.Millisecond}

func TestABackgroundResponseIsCancelled(t *testing.T) {
	n := storing(t, strings.Repeat("word ", 300), slowly)
	o := n.create(`{"input":"hi","background":true}`)
	path := "/v1/responses/" + o["id"].(string)
	n.eventually(path, func(o object) bool { return o["status"] == "in_progress" })
	e := n.refused(400, "/v1/responses", `{"input":"x","previous_response_id":"`+o["id"].(string)+`"}`)
	require.Contains(t, e["message"], "in progress")
	o = n.fetched("POST", path+"/cancel", 200)
	require.Equal(t, "cancelled", o["status"])
	require.Nil(t, o["error"])
	require.Equal(t, o, n.fetched("GET", path, 200))
	require.Equal(t, o, n.fetched("POST", path+"/cancel", 200), "twice is once")

	o = n.create(`{"input":"hi","background":true}`)
	path = "/v1/responses/" + o["id"].(string)
	n.fetched("DELETE", path, 200)
	n.fetched("GET", path, 404)
	require.Eventually(t, func() bool { return n.model.Engine.Stats().Running == 0 }, 10*time.Second, time.Millisecond)
}

func TestABackgroundStreamIsTakenUpAgain(t *testing.T) {
	n := storing(t, strings.Repeat("word ", 60), slowly)
	res, err := http.Post(n.http.URL+"/v1/responses", "application/json", strings.NewReader(`{"input":"hi","background":true,"stream":true}`)) //nolint:noctx // a test
	require.NoError(t, err)
	head := make([]byte, 3000)
	_, err = res.Body.Read(head)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close()) // the client leaves
	_, rest, _ := strings.Cut(string(head), `"response":{"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	path := "/v1/responses/" + id + "?stream=true"

	fetch := func(query string) string {
		res, out := n.do("GET", path+query, "")
		require.Equal(t, http.StatusOK, res.StatusCode, out)
		require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
		return out
	}
	running := fetch("") // to its end
	s := servertest.Valid(t, running)
	require.Equal(t, "completed", s.Final()["status"])
	require.Equal(t, strings.Repeat("word ", 60), s.Text())
	require.Equal(t, running, fetch(""), "what is stored is what was told")
	for _, after := range []string{"0", "5"} {
		part := servertest.Read(fetch("&starting_after=" + after))
		require.Empty(t, part.Faults)
		require.Equal(t, s.Events[len(s.Events)-len(part.Events):], part.Events)
		require.EqualValues(t, map[string]int{"0": 1, "5": 6}[after], part.Events[0]["sequence_number"])
	}
	require.Equal(t, "data: [DONE]\n\n", fetch("&starting_after=9999"))
	require.Equal(t, "stream", n.fetched("GET", strings.Replace(path, "true", "maybe", 1), 400)["param"])
	for body, status := range map[string]int{`{"stream":true}`: 200, `{"stream":1}`: 400, `{`: 400, `[]`: 200} {
		res, out := n.do("GET", "/v1/responses/"+id, body)
		require.Equal(t, status, res.StatusCode, out)
		require.Equal(t, body == `{"stream":true}`, out == running, body)
	}
	require.Equal(t, "starting_after", n.fetched("GET", path+"&starting_after=-1", 400)["param"])
}

func TestADrainWaitsForBackgroundResponses(t *testing.T) {
	n := storing(t, strings.Repeat("word ", 20), slowly)
	o := n.create(`{"input":"hi","background":true}`)
	require.NoError(t, n.server.Drain(t.Context()))
	o = n.fetched("GET", "/v1/responses/"+o["id"].(string), 200)
	require.Equal(t, "completed", o["status"])
}

func TestAResponseThatTheNodeDidNotLiveToEnd(t *testing.T) {
	s := store.Memory(store.Options{})
	n := storing(t, strings.Repeat("word ", 300), nodeOptions{config: Config{Store: s}, cost: 2 * time.Millisecond})
	o := n.create(`{"input":"hi","background":true}`)
	r, err := s.Get("", o["id"].(string)) // as a node finds it after a crash
	require.NoError(t, err)
	var left object
	require.NoError(t, json.Unmarshal(r.Response, &left))
	require.Equal(t, "failed", left["status"])
	require.Equal(t, codeServerError, dig(left, "error", "code"))
	n.fetched("DELETE", "/v1/responses/"+o["id"].(string), 200)
	_, err = s.Get("", o["id"].(string))
	require.ErrorIs(t, err, store.ErrNotFound)
}
