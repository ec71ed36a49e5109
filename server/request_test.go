package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/server/jsonvalue"
)

func TestRefusalsNameThePath(t *testing.T) {
	n := newNode(t, "hi")
	for _, row := range []struct{ body, param, code string }{
		{`{}`, "input", codeMissing},
		{`{"input":null}`, "input", codeMissing},
		{`{"input":5}`, "input", codeInvalidType},
		{`{"input":[5]}`, "input[0]", codeInvalidType},
		{`{"input":[{}]}`, "input[0].type", codeMissing},
		{`{"input":[{"type":"message","role":"nobody","content":"x"}]}`, "input[0].role", codeInvalidValue},
		{`{"input":[{"role":"user","content":[{"type":"input_text"}]}]}`, "input[0].content[0].text", codeMissing},
		{`{"input":[{"role":"user","content":[{"type":"input_text","text":5}]}]}`, "input[0].content[0].text", codeInvalidType},
		{`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:"}]}]}`, "input[0].content[0]", codeUnsupported},
		{`{"input":[{"role":"user","content":[{"type":"input_file"}]}]}`, "input[0].content[0]", codeUnsupported},
		{`{"input":[{"role":"user","content":[{"type":"dance"}]}]}`, "input[0].content[0].type", codeInvalidValue},
		{`{"input":[{"role":"user"}]}`, "input[0].content", codeMissing},
		{`{"input":[{"type":"banana"}]}`, "input[0].type", codeInvalidValue},
		{`{"input":[{"type":"function_call","call_id":"c"}]}`, "input[0].name", codeMissing},
		{`{"input":[{"type":"function_call","call_id":"c","name":"f"}]}`, "input[0].arguments", codeMissing},
		{`{"input":[{"type":"function_call_output","output":"x"}]}`, "input[0].call_id", codeMissing},
		{`{"input":[{"type":"function_call_output","call_id":"ghost","output":"x"}]}`, "input[0].call_id", codeInvalidValue},
		{`{"input":[{"type":"item_reference","id":"msg_ghost"}]}`, "input[0].id", codeItemNotFound},
		{`{"input":[{"type":"compaction","encrypted_content":"x"}]}`, "input[0].encrypted_content", codeInvalidValue},
		{`{"input":"hi","instructions":5}`, "instructions", codeInvalidType},
		{`{"input":"hi","tools":{}}`, "tools", codeInvalidType},
		{`{"input":"hi","tools":["x"]}`, "tools[0]", codeInvalidType},
		{`{"input":"hi","tools":[{"type":"function"}]}`, "tools[0].name", codeMissing},
		{`{"input":"hi","tools":[{"type":"function","name":"a b"}]}`, "tools[0].name", codeInvalidValue},
		{`{"input":"hi","tools":[{"type":"function","name":"f","parameters":"x"}]}`, "tools[0].parameters", codeInvalidType},
		{`{"input":"hi","tools":[{"type":"function","name":"f"},{"type":"function","name":"f"}]}`, "tools[1].name", codeInvalidValue},
		{`{"input":"hi","tools":[{"type":"namespace","tools":[]}]}`, "tools[0].name", codeMissing},
		{`{"input":"hi","tools":[{"type":"custom","name":"c","format":{"type":"poem"}}]}`, "tools[0].format.type", codeInvalidValue},
		{`{"input":"hi","tools":[{"type":"custom","name":"c","format":{"type":"grammar","definition":"x"}}]}`, "tools[0].format.syntax", codeMissing},
		{`{"input":"hi","tools":[{"type":"custom","name":"c","format":{"type":"grammar","syntax":"lark"}}]}`, "tools[0].format.definition", codeMissing},
		{`{"input":"hi","tools":[{"type":"custom","name":"c","format":{"type":"grammar","syntax":"ebnf","definition":"x"}}]}`, "tools[0].format.syntax", codeInvalidValue},
		{`{"input":"hi","tool_choice":"banana"}`, "tool_choice", codeInvalidValue},
		{`{"input":"hi","tool_choice":{"type":""}}`, "tool_choice.type", codeInvalidValue},
		{`{"input":[{"role":"","content":"x"}]}`, "input[0].role", codeInvalidValue},
		{`{"input":[{"role":"user","content":[{"type":"","text":"x"}]}]}`, "input[0].content[0].type", codeInvalidValue},
		{`{"input":"hi","tool_choice":"required"}`, "tool_choice", codeInvalidValue},
		{`{"input":"hi","tool_choice":{"type":"function","name":"absent"}}`, "tool_choice.name", codeInvalidValue},
		{`{"input":"hi","tool_choice":{"type":"web_search"}}`, "tool_choice.type", codeUnsupported},
		{`{"input":"hi","metadata":"x"}`, "metadata", codeInvalidType},
		{`{"input":"hi","metadata":{"a":5}}`, "metadata.a", codeInvalidType},
		{`{"input":"hi","metadata":{"a":"` + strings.Repeat("x", 513) + `"}}`, "metadata.a", codeTooLarge},
		{`{"input":"hi","text":"x"}`, "text", codeInvalidType},
		{`{"input":"hi","text":{"format":{"type":"json_schema","name":"a"}}}`, "text.format.schema", codeMissing},
		{`{"input":"hi","text":{"format":{"type":"xml"}}}`, "text.format.type", codeInvalidValue},
		{`{"input":"hi","reasoning":"high"}`, "reasoning", codeInvalidType},
		{`{"input":"hi","reasoning":{"effort":"heroic"}}`, "reasoning.effort", codeInvalidValue},
		{`{"input":"hi","include":"x"}`, "include", codeInvalidType},
		{`{"input":"hi","temperature":2.5}`, "temperature", codeInvalidValue},
		{`{"input":"hi","temperature":"warm"}`, "temperature", codeInvalidType},
		{`{"input":"hi","top_p":-0.1}`, "top_p", codeInvalidValue},
		{`{"input":"hi","top_logprobs":21}`, "top_logprobs", codeInvalidValue},
		{`{"input":"hi","max_output_tokens":0}`, "max_output_tokens", codeInvalidValue},
		{`{"input":"hi","max_output_tokens":1.5}`, "max_output_tokens", codeInvalidValue},
		{`{"input":"hi","max_tool_calls":0}`, "max_tool_calls", codeInvalidValue},
		{`{"input":"hi","stop":5}`, "stop", codeInvalidType},
		{`{"input":"hi","stop":[""]}`, "stop[0]", codeInvalidValue},
		{`{"input":"hi","seed":"x"}`, "seed", codeInvalidType},
		{`{"input":"hi","stream":"yes"}`, "stream", codeInvalidType},
		{`{"input":"hi","truncation":"maybe"}`, "truncation", codeInvalidValue},
		{`{"input":[]}`, "input", codeInvalidValue},
		{`{"input":[{"type":"web_search_call","id":"w"}]}`, "input", codeInvalidValue},
		{`{"input":[{"type":"function_call","call_id":"","name":"f","arguments":"{}"}]}`, "input[0].call_id", codeInvalidValue},
		{`{"input":[{"type":"function_call","call_id":"c","name":"","arguments":"{}"}]}`, "input[0].name", codeInvalidValue},
		{`{"input":"hi","reasoning":{"summary":"long"}}`, "reasoning.summary", codeInvalidValue},
		{`{"input":"hi","text":{"verbosity":"mute"}}`, "text.verbosity", codeInvalidValue},
		{`{"input":"hi","stream_options":{"include_obfuscation":"yes"}}`, "stream_options.include_obfuscation", codeInvalidType},
		{`{"input":"hi","background":true}`, "background", codeUnsupported},
		{`{"input":"hi","previous_response_id":"resp_x"}`, "previous_response_id", codePreviousResponse},
		{`{"input":"hi","prompt_cache_key":"` + strings.Repeat("x", 65) + `"}`, "prompt_cache_key", codeTooLarge},
	} {
		t.Run(row.body[:min(len(row.body), 60)], func(t *testing.T) {
			n.t = t
			status := http.StatusBadRequest
			if row.code == codeItemNotFound {
				status = http.StatusNotFound
			}
			e := n.refused(status, "/v1/responses", row.body)
			require.Equal(t, row.param, e["param"], e["message"])
			require.Equal(t, row.code, e["code"], e["message"])
			require.Contains(t, e["message"], row.param)
		})
	}
}

func TestBodiesThatAreNoRequest(t *testing.T) {
	n := newNode(t, "hi")
	for _, body := range []string{`{"model": "m", "input": `, "not json", "[]", `"x"`, "{\"input\":\"\xff\"}", strings.Repeat("[", 5000)} {
		e := n.refused(http.StatusBadRequest, "/v1/responses", body)
		require.Nil(t, e["param"])
	}
	e := n.refused(http.StatusNotFound, "/v1/responses", `{"model":"nope","input":"hi"}`)
	require.Equal(t, codeModelNotFound, e["code"])
	require.Equal(t, "model", e["param"])
}

// TestTolerance holds what real clients send and must not be refused.
func TestTolerance(t *testing.T) {
	n := newNode(t, "ok")
	for _, body := range []string{
		`{"input":"","max_output_tokens":1}`,
		`{"input":null,"instructions":"Say hi."}`,
		`{"input":"hi","previous_response_id":null,"tools":null,"tool_choice":null,"metadata":null,"text":null,"temperature":null,"top_p":null,"stream":null,"parallel_tool_calls":null,"stream_options":null,"max_tool_calls":null,"reasoning":null,"instructions":null,"top_logprobs":null,"stop":null,"seed":null,"include":null,"max_output_tokens":null,"store":null,"background":null,"truncation":null,"service_tier":null,"user":null}`,
		`{"input":"hi","client_metadata":{},"conversation":"c","request_id":"r","priority":0,"top_k":-1,"min_p":0.0,"repetition_penalty":1.0,"frequency_penalty":0.0,"presence_penalty":0.0,"stop":[],"timings_per_token":true}`,
		`{"input":"hi","text":{}}`,
		`{"input":"hi","include":["reasoning.encrypted_content","something.new"]}`,
		`{"input":"hi","tools":[{"type":"web_search"},{"type":"image_generation"},{"type":"local_shell"},{"type":"brand_new"}]}`,
		`{"input":"hi","tools":[{"type":"function","name":"f","strict":null,"description":null,"parameters":null}]}`,
		`{"input":[{"role":"user","content":"hi"},{"role":"assistant","content":"text"},{"type":"message","role":"assistant","content":null},{"role":"user","content":"x"}]}`,
		`{"input":[{"role":"user","content":"a"},{"type":"reasoning","encrypted_content":"x"},{"type":"reasoning","id":"rs_1","summary":[],"content":null,"encrypted_content":null},{"type":"web_search_call","id":"ws_1","status":"completed"},{"role":"assistant","content":[{"type":"output_text","text":"b","annotations":[],"logprobs":[]},{"type":"refusal","refusal":"no"}],"id":"msg_1","status":"completed","phase":"final_answer"},{"role":"user","content":"c"}]}`,
		`{"input":[{"role":"user","content":"a"},{"type":"function_call","call_id":"c1","name":"f","arguments":""},{"type":"function_call","call_id":"c1","name":"f","arguments":"not json"},{"type":"function_call_output","call_id":"c1","output":"1"},{"type":"function_call_output","call_id":"c1","output":"2"}]}`,
		`{"input":"a","temperature":0.5e0,"max_output_tokens":5.0}`,
		`{"input":"dup","input":"hi"}`,
		`{"input":[{"role":"user","content":"a"},{"type":"context_compaction","encrypted_content":null},{"type":"brand_new_call","id":"x"},{"type":"brand_new_call_output","call_id":"x"},{"type":"agent_message","author":"/lead/b","recipient":"/lead","content":[{"type":"encrypted_content","encrypted_content":"x"}]}]}`,
		`{"input":[{"role":"user","content":"a"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":[{"type":"encrypted_content","encrypted_content":"x"},{"type":"input_text","text":"t"}]}]}`,
	} {
		n.create(body)
	}
	n.create(`{"input":[{"role":"user","content":"a"},{"type":"agent_message","author":"/lead/b","recipient":"/lead","content":[{"type":"input_text","text":"Done."}]}]}`)
	require.Contains(t, n.LastPrompt(), "<|im_start|>user\nMessage from the agent /lead/b:\nDone.<|im_end|>")
	for _, effort := range []string{"none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"} {
		n.create(`{"input":"hi","reasoning":{"effort":"` + effort + `","summary":"auto"}}`)
	}
}

func TestEcho(t *testing.T) {
	n := newNode(t, "ok")
	o := n.create(`{"input":"hi","model":"alias","instructions":"Be <brief>.","temperature":0.5,"top_p":0.9,"presence_penalty":0.25,"frequency_penalty":0.5,
		"max_output_tokens":17,"max_tool_calls":3,"top_logprobs":2,"truncation":"auto","parallel_tool_calls":false,"metadata":{"b":"1","a":"2"},
		"safety_identifier":"u","prompt_cache_key":"k","user":"me","reasoning":{"effort":"minimal","summary":"auto"},"store":true,
		"text":{"verbosity":"low","format":{"type":"text"}},"tool_choice":"none",
		"tools":[{"type":"function","name":"f","parameters":{"type":"object",
		"properties":{}}}]}`)
	for key, want := range map[string]any{
		"model": "alias", "instructions": "Be <brief>.", "temperature": 0.5, "top_p": 0.9, "presence_penalty": 0.25, "frequency_penalty": 0.5,
		"max_output_tokens": 17.0, "max_tool_calls": 3.0, "top_logprobs": 2.0, "truncation": "auto", "parallel_tool_calls": false,
		"metadata": object{"a": "2", "b": "1"}, "safety_identifier": "u", "prompt_cache_key": "k", "user": "me", "store": false,
		"reasoning": object{"effort": "low", "summary": "auto"}, "tool_choice": "none",
	} {
		require.Equal(t, want, o[key], key)
	}
	tool := dig(o, "tools", 0).(object)
	require.Len(t, tool, 5)
	require.Nil(t, tool["strict"])
	d := n.create(`{"input":"hi"}`)
	for key, want := range map[string]any{
		"tools": []any{}, "tool_choice": "auto", "parallel_tool_calls": true, "truncation": "disabled", "background": false,
		"instructions": nil, "max_output_tokens": nil, "service_tier": "default", "metadata": object{}, "temperature": 1.0,
	} {
		require.Equal(t, want, d[key], key)
	}
}

func TestSamplingReachesTheEngine(t *testing.T) {
	n := newNode(t, "ok")
	n.create(`{"input":"hi","temperature":0.5,"top_p":0.25,"top_k":7,"min_p":0.125,"seed":42,"presence_penalty":1,"frequency_penalty":-1,"repetition_penalty":1.5}`)
	p := n.LastParams()
	p.Grammar = ""
	require.Equal(t, engine.SamplerParams{
		Temperature: .5, TopP: .25, TopK: 7, MinP: .125, Seed: 42, Presence: 1, Frequency: -1, Repeat: 1.5,
	}, p)
	n.create(`{"input":"hi"}`)
	a := n.LastParams().Seed
	n.create(`{"input":"hi"}`)
	require.NotEqual(t, a, n.LastParams().Seed, "no seed is a random one")
}

func TestItemReferences(t *testing.T) {
	n := newNode(t, "The answer is teal.")
	id := dig(n.create(`{"input":"colour?"}`), "output", 0, "id").(string)
	n.create(`{"input":[{"role":"user","content":"colour?"},{"type":"item_reference","id":"` + id + `"},{"role":"user","content":"again"}]}`)
	require.Contains(t, n.LastPrompt(), "<|im_start|>assistant\nThe answer is teal.<|im_end|>")
	n.create(`{"input":[{"role":"user","content":"colour?"},{"id":"` + id + `"},{"role":"user","content":"again"}]}`)
	require.Contains(t, n.LastPrompt(), "teal")
}

func TestRecentItemsAreBoundedAndKeptApart(t *testing.T) {
	r := newRecentItems()
	r.put("a", "msg_1", []byte(`{}`))
	require.NotNil(t, r.get("a", "msg_1"))
	require.Nil(t, r.get("b", "msg_1"), "another key's items are not found")
	big := []byte(strings.Repeat("x", 1<<20))
	for i := range 40 {
		r.put("a", string(rune('A'+i)), big)
	}
	require.LessOrEqual(t, r.bytes, maxRecentBytes)
	require.Nil(t, r.get("a", "msg_1"), "the oldest goes first")
	require.NotNil(t, r.get("a", string(rune('A'+39))))
}

// A prompt_cache_key asks to keep the prefix longer, in both APIs.
func TestPromptCacheKeyPins(t *testing.T) {
	for key, pinned := range map[string]bool{``: false, `,"prompt_cache_key":null`: false, `,"prompt_cache_key":"k"`: true} {
		v, err := jsonvalue.Parse([]byte(`{"input":"hi"`+key+`}`), maxDepth)
		require.NoError(t, err)
		req, refused := decodeCreate(contracts[0], &Model{}, v, recall{}, nil)
		require.Nil(t, refused)
		require.Equal(t, pinned, req.pinned, key)

		v, err = jsonvalue.Parse([]byte(`{"messages":[{"role":"user","content":"hi"}]`+key+`}`), maxDepth)
		require.NoError(t, err)
		chat, refused := decodeChat(contracts[0], &Model{}, v)
		require.Nil(t, refused)
		require.Equal(t, pinned, chat.pinned, key)
	}
}

// FuzzDecodeCreate: no body makes the decoder panic, and what it takes can be
// turned into a conversation and echoed as valid JSON.
func FuzzDecodeCreate(f *testing.F) {
	f.Add([]byte(`{"input":"hi","tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"function","name":"f"}}`))
	f.Add([]byte(`{"input":[{"role":"user","content":[{"type":"input_text","text":"x"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"y"}]}]}`))
	f.Add([]byte(`{"text":{"format":{"type":"json_schema","name":"n","schema":{"a": [1 , 2]},"strict":true}},"metadata":{"k":"v"},"stop":["a"],"reasoning":{"effort":"low"}}`))
	f.Add([]byte(`{"tools":[{"type":"namespace","name":"n","tools":[{"name":"f"},{"type":"custom","name":"g","format":{"definition":"x"}}]}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}}`))
	f.Add([]byte(`{"input":[{"type":"item_reference","id":"x"},{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}]}],"seed":-1,"temperature":1e-3}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := jsonvalue.Parse(body, maxDepth)
		if err != nil {
			return
		}
		req, refused := decodeCreate(contracts[0], &Model{}, v, recall{}, nil)
		if refused != nil {
			require.NotEmpty(t, refused.Message)
			return
		}
		_, _ = req.conversation()
		raw := req.echo.append([]byte(`{"m":`), "m")
		_, err = jsonvalue.Parse(raw, maxDepth+10)
		require.NoError(t, err, "%s", raw)
	})
}

// FuzzDecodeChat: the same for chat.
func FuzzDecodeChat(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":null,"reasoning_content":"r","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}},{"id":"d","type":"custom","custom":{"name":"g","input":"i"}}]},{"role":"tool","tool_call_id":"c","content":"y"}],"n":1,"logprobs":true,"top_logprobs":2}`))
	f.Add([]byte(`{"messages":[],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":true}},"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := jsonvalue.Parse(body, maxDepth)
		if err != nil {
			return
		}
		req, refused := decodeChat(contracts[0], &Model{}, v)
		if refused != nil {
			require.NotEmpty(t, refused.Message)
			return
		}
		_, _ = req.conversation()
	})
}
