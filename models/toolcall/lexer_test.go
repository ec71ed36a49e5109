package toolcall

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"quern/models/chat"

	"github.com/stretchr/testify/require"
)

var testTools = []chat.Tool{
	{Name: "add", Parameters: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a"]}`)},
	{Name: "note", Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)},
	{Name: "ping"},
}

type lexCase struct {
	name, format, in string
	opt              Options
	cut              bool
	reasoning, text  string
	calls            []answerCall
	malformed        int
}

func call(name, args string) answerCall { return answerCall{Name: name, Args: args, Ended: true} }
func cutCall(name, args string) answerCall {
	return answerCall{Name: name, Args: args, Ended: true, Cut: true}
}

var lexCases = []lexCase{
	{name: "plain text", in: "Hello,\n  world. ", text: "Hello,\n  world. "},
	{name: "leading white space of an answer", in: "\n  code", text: "\n  code"},
	{name: "only white space", in: " \n", text: " \n"},
	{name: "call", in: "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1,  \"b\":2}}\n</tool_call>", calls: []answerCall{call("add", `{"a": 1,  "b":2}`)}},
	{name: "phantom text before a call", in: "\n\n<tool_call>{\"name\":\"ping\",\"arguments\":{}}</tool_call>\n\n", calls: []answerCall{call("ping", "{}")}},
	{name: "text around calls", in: "Before. \n<tool_call>{\"name\":\"ping\",\"arguments\":{}}</tool_call>\n\n  After.", text: "Before.\nAfter.", calls: []answerCall{call("ping", "{}")}},
	{name: "no arguments at all", in: `<tool_call>{"name":"ping"}</tool_call>`, calls: []answerCall{call("ping", "{}")}},
	{name: "null arguments", in: `<tool_call>{"name":"ping","arguments":null}</tool_call>`, calls: []answerCall{call("ping", "{}")}},
	{name: "arguments first", in: `<tool_call>{"arguments": {"a": 1}, "id": "x1", "name": "add"}</tool_call>`, calls: []answerCall{{Name: "add", ID: "x1", Args: `{"a": 1}`, Ended: true}}},
	{name: "double-encoded", in: `<tool_call>{"name":"note","arguments":"{\"text\": \"a\\n\\\"b\\\" \u00e9\"}"}</tool_call>`, calls: []answerCall{call("note", "{\"text\": \"a\\n\\\"b\\\" é\"}")}},
	{name: "double-encoded nonsense", in: `<tool_call>{"name":"note","arguments":"hello"}</tool_call>`, text: `<tool_call>{"name":"note","arguments":"hello"}</tool_call>`, malformed: 1},
	{name: "escaped name", in: `<tool_call>{"\u006eame":"a\u0064d","arguments":{"a":1}}</tool_call>`, calls: []answerCall{call("add", `{"a":1}`)}},
	{name: "marker in a string", in: `<tool_call>{"name":"note","arguments":{"text":"} </tool_call> <think> {"}}</tool_call>`, calls: []answerCall{call("note", `{"text":"} </tool_call> <think> {"}`)}},
	{name: "two objects", in: "<tool_call>\n{\"name\":\"add\",\"arguments\":{\"a\":1}}\n{\"name\":\"ping\",\"arguments\":{}}\n</tool_call>", calls: []answerCall{call("add", `{"a":1}`), call("ping", "{}")}},
	{name: "list in the block", in: `<tool_call>[{"name":"add","arguments":{"a":1}}, {"name":"ping","arguments":{}}]</tool_call>`, calls: []answerCall{call("add", `{"a":1}`), call("ping", "{}")}},
	{name: "no end marker", in: "<tool_call>{\"name\":\"ping\",\"arguments\":{}}", calls: []answerCall{call("ping", "{}")}},
	{name: "no end marker, next call", in: "<tool_call>{\"name\":\"ping\",\"arguments\":{}}\n<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1}}", calls: []answerCall{call("ping", "{}"), call("add", `{"a":1}`)}},
	{name: "no end marker, text", in: "<tool_call>{\"name\":\"ping\",\"arguments\":{}}\nDone.", text: "Done.", calls: []answerCall{call("ping", "{}")}},
	{name: "missing brackets at the end", in: `<tool_call>{"name":"add","arguments":{"a":1, "b": 2`, calls: []answerCall{call("add", `{"a":1, "b": 2}`)}},
	{name: "missing brackets before the marker", in: `<tool_call>{"name":"note","arguments":{"text":"x"</tool_call>`, calls: []answerCall{call("note", `{"text":"x"}`)}},
	{name: "trailing commas", in: `<tool_call>{"name":"add","arguments":{"a":[1,2 , ],},}</tool_call>`, calls: []answerCall{call("add", `{"a":[1,2  ]}`)}},
	{name: "one bracket too many", in: `<tool_call>{"name":"add","arguments":{"a":1}}}</tool_call>`, calls: []answerCall{call("add", `{"a":1}`)}},
	{name: "raw control characters", in: "<tool_call>{\"name\":\"note\",\"arguments\":{\"text\":\"a\nb\tc\x01\"}}</tool_call>", calls: []answerCall{call("note", `{"text":"a\nb\tc\u0001"}`)}},
	{name: "cut in a string", in: `<tool_call>{"name":"note","arguments":{"text":"a\u00`, cut: true, calls: []answerCall{cutCall("note", `{"text":"a\u00`)}},
	{name: "cut before arguments", in: `<tool_call>{"name":"note", "arg`, cut: true, calls: []answerCall{cutCall("note", "")}},
	{name: "cut behind arguments", in: `<tool_call>{"name":"note","arguments":{}`, cut: true, calls: []answerCall{call("note", "{}")}},
	{name: "cut in the name", in: `<tool_call>{"name":"no`, cut: true, text: `<tool_call>{"name":"no`, malformed: 1},
	{name: "stopped in a string", in: `<tool_call>{"name":"note","arguments":{"text":"a`, calls: []answerCall{cutCall("note", `{"text":"a`)}, malformed: 1},
	{name: "NaN", in: `<tool_call>{"name":"add","arguments":{"a":NaN}}</tool_call>`, text: `<tool_call>{"name":"add","arguments":{"a":NaN}}</tool_call>`, malformed: 1},
	{name: "bad value late", in: `<tool_call>{"name":"add","arguments":{"a":1,"b":oops}}</tool_call> x`, text: `oops}}</tool_call> x`, calls: []answerCall{cutCall("add", `{"a":1,"b":`)}, malformed: 1},
	{name: "bad escape", in: `<tool_call>{"name":"note","arguments":{"text":"a\q"}}`, text: `q"}}`, calls: []answerCall{cutCall("note", `{"text":"a`)}, malformed: 1},
	{name: "unknown tool", in: `<tool_call>{"name":"nope","arguments":{}}</tool_call>`, text: `<tool_call>{"name":"nope","arguments":{}}</tool_call>`, malformed: 1},
	{name: "unknown tool beside others", in: `A <tool_call>{"name":"nope","arguments":{}}{"name":"ping","arguments":{}}</tool_call><tool_call>{"name":"nope2"}</tool_call>`, text: "A {\"name\":\"nope\",\"arguments\":{}}\n<tool_call>{\"name\":\"nope2\"}</tool_call>", calls: []answerCall{call("ping", "{}")}, malformed: 2},
	{name: "quoted marker", in: "It prints <tool_call> and then </tool_call>.", text: "It prints <tool_call> and then </tool_call>.", malformed: 1},
	{name: "half a marker", in: "a <tool_", text: "a <tool_"},
	{name: "no tools", format: "hermes", opt: Options{Tools: []chat.Tool{}}, in: `<tool_call>{"name":"ping","arguments":{}}</tool_call>`, text: `<tool_call>{"name":"ping","arguments":{}}</tool_call>`},
	{name: "at most one call", opt: Options{MaxCalls: 1}, in: `<tool_call>{"name":"ping","arguments":{}}</tool_call><tool_call>{"name":"add","arguments":{"a":1}}</tool_call> x`, calls: []answerCall{call("ping", "{}")}},

	{name: "forced", opt: Options{Forced: true, Opening: "<tool_call>\n"}, in: `{"name":"add","arguments":{"a":1}}` + "\n</tool_call>", calls: []answerCall{call("add", `{"a":1}`)}},
	{name: "forced, cut early", opt: Options{Forced: true, Opening: "<tool_call>\n"}, cut: true, in: `{"name":"ad`, text: `{"name":"ad`, malformed: 1},
	{name: "forced without markers", format: "json", opt: Options{Forced: true}, in: `{"name":"add","arguments":{"a":"x"}}`, calls: []answerCall{call("add", `{"a":"x"}`)}},
	{name: "forced after thoughts", format: "json", opt: Options{Forced: true}, in: `{"a":1}`, text: `{"a":1}`, malformed: 1},

	{name: "bare", opt: Options{Bare: true}, in: "\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n", calls: []answerCall{call("add", `{"a": 1}`)}},
	{name: "bare with parameters", opt: Options{Bare: true}, in: `{"name":"add","parameters":{"a":1}}`, calls: []answerCall{call("add", `{"a":1}`)}},
	{name: "bare in a fence", opt: Options{Bare: true}, in: "```json\n{\"name\":\"add\",\"arguments\":{\"a\":1}}\n```", calls: []answerCall{call("add", `{"a":1}`)}},
	{name: "bare in an open fence", opt: Options{Bare: true}, in: "```\n{\"name\":\"add\",\"arguments\":{\"a\":1}}", calls: []answerCall{call("add", `{"a":1}`)}},
	{name: "bare, then text", opt: Options{Bare: true}, in: "{\"name\":\"add\",\"arguments\":{\"a\":1}} is it.", text: "{\"name\":\"add\",\"arguments\":{\"a\":1}} is it."},
	{name: "bare, does not fit", opt: Options{Bare: true}, in: `{"name":"add","arguments":{"a":"1"}}`, text: `{"name":"add","arguments":{"a":"1"}}`},
	{name: "bare without arguments", opt: Options{Bare: true}, in: `{"name":"ping"}`, text: `{"name":"ping"}`},
	{name: "bare with another key", opt: Options{Bare: true}, in: `{"name":"ping","arguments":{},"why":1}`, text: `{"name":"ping","arguments":{},"why":1}`},
	{name: "bare and cut", opt: Options{Bare: true}, cut: true, in: `{"name":"ping","arguments":{}`, text: `{"name":"ping","arguments":{}`},
	{name: "bare twice", opt: Options{Bare: true}, in: `{"name":"ping","arguments":{}}{"name":"ping","arguments":{}}`, text: `{"name":"ping","arguments":{}}{"name":"ping","arguments":{}}`},
	{name: "bare behind text", format: "llama3", opt: Options{Bare: true}, in: "I look.\n\n{ \"name\": \"add\", \"parameters\": {\"a\": 1}}\n", text: "I look.", calls: []answerCall{call("add", `{"a": 1}`)}},
	{name: "bare behind text, typed", format: "llama3", opt: Options{Bare: true}, in: "I look.\n{\"type\": \"function\", \"name\": \"ping\", \"parameters\": {}}", text: "I look.", calls: []answerCall{call("ping", "{}")}},
	{name: "bare in a line", format: "llama3", opt: Options{Bare: true}, in: `Like {"name":"add","parameters":{"a":1}}`, text: `Like {"name":"add","parameters":{"a":1}}`},
	{name: "bare between text", format: "llama3", opt: Options{Bare: true}, in: "A call:\n{\"name\":\"add\",\"parameters\":{\"a\":1}}\nis this.", text: "A call:\n{\"name\":\"add\",\"parameters\":{\"a\":1}}\nis this."},
	{name: "bare behind text, does not fit", format: "llama3", opt: Options{Bare: true}, in: "So:\n{\"name\":\"add\",\"parameters\":{\"b\":1}}", text: "So:\n{\"name\":\"add\",\"parameters\":{\"b\":1}}"},
	{name: "bare behind text, no tool", format: "llama3", opt: Options{Bare: true}, in: "So:\n{\"name\":\"nope\",\"parameters\":{}}", text: "So:\n{\"name\":\"nope\",\"parameters\":{}}"},
	{name: "JSON behind text", format: "llama3", opt: Options{Bare: true}, in: "So:\n{\n\"age\": 1}\n{\"name\"", text: "So:\n{\n\"age\": 1}\n{\"name\""},
	{name: "bare behind text of another family", opt: Options{Bare: true}, in: "I look.\n{\"name\":\"add\",\"arguments\":{\"a\":1}}", text: "I look.\n{\"name\":\"add\",\"arguments\":{\"a\":1}}"},
	{name: "other fence", opt: Options{Bare: true}, in: "```go\nx\n```", text: "```go\nx\n```"},
	{name: "not wanted", in: `{"name":"ping","arguments":{}}`, text: `{"name":"ping","arguments":{}}`},
	{name: "bare after a failed start", opt: Options{Bare: true}, in: `{"x":1} <tool_call>{"name":"ping"}</tool_call>`, text: `{"x":1}`, calls: []answerCall{call("ping", "{}")}},
	{name: "bare behind thoughts", opt: Options{Bare: true}, in: "<think>\nhm\n</think>\n\n{\"name\":\"ping\",\"arguments\":{}}", reasoning: "hm", calls: []answerCall{call("ping", "{}")}},
	{name: "bare list of xlam", format: "xlam", opt: Options{Bare: true}, in: `[{"name":"ping","arguments":{}},{"name":"add","arguments":{"a":1}}]`, calls: []answerCall{call("ping", "{}"), call("add", `{"a":1}`)}},
	{name: "ordinary list", format: "xlam", opt: Options{Bare: true}, in: `[1,2]`, text: `[1,2]`, malformed: 1},

	{name: "JSON answer", opt: Options{JSON: true, Bare: true}, in: "{\"name\":\"ping\",\"arguments\":{},\n\"tag\":\n\"<think>\",\"b\":\"<tool_call>\"}", text: "{\"name\":\"ping\",\"arguments\":{},\n\"tag\":\n\"<think>\",\"b\":\"<tool_call>\"}"},
	{name: "call instead of a JSON answer", opt: Options{JSON: true}, in: "<tool_call>{\"name\":\"ping\"}</tool_call>", calls: []answerCall{call("ping", "{}")}},

	{name: "thoughts", in: "<think>\nI think.\n</think>\n\nHi.", reasoning: "I think.", text: "Hi."},
	{name: "empty thoughts", in: "<think>\n\n</think>\n\nHi.", text: "Hi."},
	{name: "thoughts from the prompt", opt: Options{StartInReasoning: true}, in: "\nI think.</think>Hi.", reasoning: "I think.", text: "Hi."},
	{name: "thoughts opened twice", opt: Options{StartInReasoning: true}, in: "<think>I think.</think>Hi.", reasoning: "I think.", text: "Hi."},
	{name: "thoughts cut", opt: Options{StartInReasoning: true}, cut: true, in: "I think. </th", reasoning: "I think. </th"},
	{name: "second thoughts", in: "<think>a</think>b\n<think>c</think>d", reasoning: "a\nc", text: "b\nd"},
	{name: "quoted in a sentence", in: "Write <think> and </think>.", text: "Write <think> and </think>."},
	{name: "call ends the thoughts", opt: Options{StartInReasoning: true}, in: "Hm.\n<tool_call>{\"name\":\"ping\"}</tool_call>\n</think>\nSo.", reasoning: "Hm.", text: "So.", calls: []answerCall{call("ping", "{}")}},
	{name: "calls end the answer", opt: Options{StartInReasoning: true}, in: "<tool_call>{\"name\":\"ping\"}</tool_call><tool_call>{\"name\":\"ping\"}</tool_call>", calls: []answerCall{call("ping", "{}"), call("ping", "{}")}},
	{name: "call is only discussed", opt: Options{StartInReasoning: true}, in: "<tool_call>{\"name\":\"ping\"}</tool_call> or not</think>So.", reasoning: "<tool_call>{\"name\":\"ping\"}</tool_call> or not", text: "So."},
	{name: "calls are only discussed", opt: Options{StartInReasoning: true}, in: "<tool_call>{\"name\":\"note\",\"arguments\":{\"text\":\"</think>\"}}</tool_call>\n<tool_call>{\"name\":\"ping\"}</tool_call> or not</think>So.", reasoning: "<tool_call>{\"name\":\"note\",\"arguments\":{\"text\":\"</think>\"}}</tool_call>\n<tool_call>{\"name\":\"ping\"}</tool_call> or not", text: "So."},
	{name: "unknown call in thoughts", opt: Options{StartInReasoning: true}, in: "<tool_call>{\"name\":\"nope\"}</tool_call></think>So.", reasoning: "<tool_call>{\"name\":\"nope\"}</tool_call>", text: "So."},
	{name: "call in thoughts, cut behind it", opt: Options{StartInReasoning: true}, cut: true, in: "<tool_call>{\"name\":\"ping\"}</tool_call>", reasoning: "<tool_call>{\"name\":\"ping\"}</tool_call>"},
	{name: "call in thoughts without its end", opt: Options{StartInReasoning: true}, in: "Hm.\n<tool_call>{\"name\":\"ping\"}\n", reasoning: "Hm.", calls: []answerCall{call("ping", "{}")}},
	{name: "calls in thoughts without their ends", format: "kimi_k2", opt: Options{StartInReasoning: true}, in: `Hm.<|tool_call_begin|>ping<|tool_call_argument_begin|>{}<|tool_call_begin|>add<|tool_call_argument_begin|>{"a":1}`, reasoning: "Hm.", calls: []answerCall{call("ping", "{}"), call("add", `{"a":1}`)}},
	{name: "call in thoughts without its brackets", opt: Options{StartInReasoning: true}, in: `Hm. <tool_call>{"name":"add","arguments":{"a":1}`, reasoning: `Hm. <tool_call>{"name":"add","arguments":{"a":1}`},
	{name: "thoughts end in a half call", opt: Options{StartInReasoning: true}, in: "x <tool_call></think>So.", reasoning: "x <tool_call>", text: "So."},

	{name: "name first", format: "mistral", in: `[TOOL_CALLS]add[CALL_ID]abc123xyz[ARGS]{"a":1}[TOOL_CALLS]ping[ARGS]{}`, calls: []answerCall{{Name: "add", ID: "abc123xyz", Args: `{"a":1}`, Ended: true}, call("ping", "{}")}},
	{name: "name first, cut", format: "mistral", cut: true, in: `[TOOL_CALLS]add[ARGS]{"a":1`, calls: []answerCall{cutCall("add", `{"a":1`)}},
	{name: "name first, cut in the name", format: "mistral", cut: true, in: `[TOOL_CALLS]ad`, text: `[TOOL_CALLS]ad`, malformed: 1},
	{name: "indexed names", format: "kimi_k2", in: `<|tool_calls_section_begin|><|tool_call_begin|>functions.add:3<|tool_call_argument_begin|>{"a":1}<|tool_call_end|><|tool_calls_section_end|>`, calls: []answerCall{{Name: "add", ID: "functions.add:3", Args: `{"a":1}`, Ended: true}}},
	{name: "name is key", format: "apertus", in: `<|tools_prefix|>[{"add": {"a":1}, "ping": {}}, {"nope": {}}]<|tools_suffix|>`, text: `{"nope": {}}`, calls: []answerCall{call("add", `{"a":1}`), call("ping", "{}")}, malformed: 1},

	{name: "tags", format: "qwen3_coder", in: tagsCall("<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</parameter>\n"), calls: []answerCall{call("add", `{"a":1,"b":2}`)}},
	{name: "tags, no arguments", format: "qwen3_coder", in: tagsCall(""), calls: []answerCall{call("add", `{}`)}},
	{name: "tags, value of another type", format: "qwen3_coder", in: tagsCall("<parameter=a>many</parameter>\n<parameter=b>None</parameter>\n"), calls: []answerCall{call("add", `{"a":"many","b":null}`)}},
	{name: "tags, tag left open", format: "qwen3_coder", in: tagsCall("<parameter=a>1\n<parameter=b>2</parameter>"), calls: []answerCall{call("add", `{"a":1,"b":2}`)}},
	{name: "tags, one line break dropped", format: "qwen3_coder", in: "<tool_call><function=note><parameter=text>\n\n \"a\\\n\n</parameter></function></tool_call>", calls: []answerCall{call("note", `{"text":"\n \"a\\\n"}`)}},
	{name: "tags, markers in a value", format: "qwen3_coder", in: "<tool_call><function=note><parameter=text></function></tool_call>\n</param</parameter></function></tool_call>", calls: []answerCall{call("note", `{"text":"</function></tool_call>\n</param"}`)}},
	{name: "tags, two calls in a section", format: "qwen3_coder", in: "<tool_call><function=ping></function><function=ping></function></tool_call>x", text: "x", calls: []answerCall{call("ping", "{}"), call("ping", "{}")}},
	{name: "tags, section ends the call", format: "qwen3_coder", in: "<tool_call><function=ping></tool_call>x", text: "x", calls: []answerCall{call("ping", "{}")}},
	{name: "tags, natural end", format: "qwen3_coder", in: "<tool_call><function=add><parameter=a>1</parameter>", calls: []answerCall{call("add", `{"a":1}`)}},
	{name: "tags, no section, unknown tool", format: "qwen3_coder", in: "Write <function=x> and </function>.", text: "Write <function=x> and </function>.", malformed: 1},
	{name: "tags, objects in the section", format: "qwen3_coder", in: "<tool_call>\n{\"name\":\"ping\"}\n{\"name\":\"add\",\"arguments\":{\"a\":1}}</tool_call>", calls: []answerCall{call("ping", "{}"), call("add", `{"a":1}`)}},
	{name: "tags, cut in a string", format: "qwen3_coder", cut: true, in: "<tool_call><function=note><parameter=text>abc</para", calls: []answerCall{cutCall("note", `{"text":"abc`)}},
	{name: "tags, cut in a number", format: "qwen3_coder", cut: true, in: "<tool_call><function=add><parameter=a>1</parameter><parameter=b>2", calls: []answerCall{cutCall("add", `{"a":1`)}},
	{name: "tags, text between", format: "qwen3_coder", in: "<tool_call><function=add><parameter=a>1</parameter>oops</function></tool_call>", text: "oops</function></tool_call>", calls: []answerCall{cutCall("add", `{"a":1`)}, malformed: 1},
	{name: "tags, call ends the thoughts", format: "qwen3_coder", opt: Options{StartInReasoning: true}, in: "Hm.\n" + tagsCall("") + "\n</think>So.", reasoning: "Hm.", text: "So.", calls: []answerCall{call("add", "{}")}},
	{name: "tags, call is only discussed", format: "qwen3_coder", opt: Options{StartInReasoning: true}, in: tagsCall("") + " or not</think>So.", reasoning: tagsCall("") + " or not", text: "So."},
	{name: "key and value", format: "glm45", in: "<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>", calls: []answerCall{call("add", `{"a":1}`)}},
	{name: "key and value, name alone", format: "glm45", in: "<tool_call>ping", calls: []answerCall{call("ping", "{}")}},
	{name: "key and value, cut in the name", format: "glm45", cut: true, in: "<tool_call>ping", text: "<tool_call>ping", malformed: 1},
	{name: "key and value, no value", format: "glm45", in: "<tool_call>add<arg_key>a</arg_key>1</tool_call>", text: "<tool_call>add<arg_key>a</arg_key>1</tool_call>", malformed: 1},
	{name: "attribute", format: "deepseek_v4", in: dsmlCall(`<｜DSML｜parameter name="a" string="true">1</｜DSML｜parameter><｜DSML｜parameter name="text" string="false">2</｜DSML｜parameter>`), calls: []answerCall{call("note", `{"a":"1","text":2}`)}},
	{name: "attribute, not said", format: "deepseek_v4", in: dsmlCall(`<｜DSML｜parameter name="x">[1]</｜DSML｜parameter><｜DSML｜parameter name="text">2</｜DSML｜parameter>`), calls: []answerCall{call("note", `{"x":[1],"text":"2"}`)}},

	{name: "expressions", format: "olmo3", in: "<function_calls>\nadd(a=1, b=2)\nping()\n</function_calls>x", text: "x", calls: []answerCall{call("add", `{"a":1,"b":2}`), call("ping", "{}")}},
	{name: "expressions, unknown tool", format: "olmo3", in: "<function_calls>nope(a=')')\nping()</function_calls>", text: "<function_calls>nope(a=')')", calls: []answerCall{call("ping", "{}")}, malformed: 1},
	{name: "expressions, text behind", format: "olmo3", in: "<function_calls>ping()\nSo it is.", text: "So it is.", calls: []answerCall{call("ping", "{}")}},
	{name: "expressions, no literal", format: "lfm2", in: "<|tool_call_start|>[add(a=b.c())]<|tool_call_end|>", text: "<|tool_call_start|>[add(a=b.c())]<|tool_call_end|>", malformed: 1},
	{name: "expressions, second is broken", format: "lfm2", in: "<|tool_call_start|>[ping(), add(1)]<|tool_call_end|>", text: "add(1)]<|tool_call_end|>", calls: []answerCall{call("ping", "{}")}, malformed: 1},
	{name: "expressions, missing brackets", format: "lfm2", in: "<|tool_call_start|>[add(a=[1, {'x': 2", calls: []answerCall{call("add", `{"a":[1,{"x":2}]}`)}},
	{name: "expressions, cut in a string", format: "lfm2", cut: true, in: `<|tool_call_start|>[note(text='a"\u00e9\ud83d\u00`, calls: []answerCall{cutCall("note", `{"text":"a\"`)}},
	{name: "expressions, cut in a word", format: "lfm2", cut: true, in: `<|tool_call_start|>[add(a=1, b=Tr`, calls: []answerCall{cutCall("add", `{"a":1`)}},
	{name: "expressions, cut behind a key", format: "lfm2", cut: true, in: `<|tool_call_start|>[add(a=1, b=`, calls: []answerCall{cutCall("add", `{"a":1`)}},
	{name: "bare expressions", format: "pythonic", opt: Options{Bare: true}, in: "[ping(), add(a=-1)]", calls: []answerCall{call("ping", "{}"), call("add", `{"a":-1}`)}},
	{name: "bare list that is none", format: "pythonic", opt: Options{Bare: true}, in: "[nope(x=1)] is Python", text: "[nope(x=1)] is Python", malformed: 1},
	{name: "a method of the tool", format: "llama3", in: `<|python_tag|>note.call(text="a")`, calls: []answerCall{call("note", `{"text":"a"}`)}},
	{name: "a method of no tool", format: "llama3", in: `<|python_tag|>nope.call(text="a")`, text: `<|python_tag|>nope.call(text="a")`, malformed: 1},
	{name: "another method", format: "llama3", in: `<|python_tag|>note.get(text="a")`, text: `<|python_tag|>note.get(text="a")`, malformed: 1},
	{name: "Python where JSON is usual", in: `<tool_call>{'name': 'note', 'arguments': {'text': "it's", 'n': 'a "b"'}}</tool_call>`, calls: []answerCall{call("note", `{"text": "it's", "n": "a \"b\""}`)}},
	{name: "Python constants where JSON is usual", in: `<tool_call>{"name": "add", "arguments": {"a": 1, "b": None, "c": [True, False]}}</tool_call>`, calls: []answerCall{call("add", `{"a": 1, "b": null, "c": [true, false]}`)}},
	{name: "Python behind a name", format: "kimi_k2", in: `<|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{'a': 1, "b": True}<|tool_call_end|>`, calls: []answerCall{{Name: "add", ID: "functions.add:0", Args: `{"a": 1, "b": true}`, Ended: true}}},
	{name: "no Python constant", in: `<tool_call>{"name":"add","arguments":{"a":1,"b":Tomorrow}}</tool_call> x`, text: `Tomorrow}}</tool_call> x`, calls: []answerCall{cutCall("add", `{"a":1,"b":`)}, malformed: 1},
	{name: "half a Python constant", in: `<tool_call>{"name":"add","arguments":{"a":1,"b":Tr`, text: `Tr`, calls: []answerCall{cutCall("add", `{"a":1,"b":`)}, malformed: 1},
	{name: "no bare Python", opt: Options{Bare: true}, in: `{"name":"add","arguments":{"a":1,"b":None}}`, text: `{"name":"add","arguments":{"a":1,"b":None}}`},
	{name: "Python objects", format: "sarashina", in: `<|tool_calls|>[{'name': 'note', 'arguments': {'text': "it's", "n": 'a "b" \'c\' \\ \x41\u00e9\ud83d\udea2\U0001F6A2\q\n', 'ok': [True, None, true]}}]`, calls: []answerCall{call("note", `{"text": "it's", "n": "a \"b\" 'c' \\ A\u00e9\ud83d\udea2🚢\\q\n", "ok": [true, null, true]}`)}},
	{name: "Python objects, cut", format: "sarashina", cut: true, in: `<|tool_calls|>[{'name': 'note', 'arguments': {'text': 'a\`, calls: []answerCall{cutCall("note", `{"text": "a`)}},
	{name: "Python objects, stopped", format: "sarashina", in: `<|tool_calls|>[{'name': 'add', 'arguments': {'a': 1`, calls: []answerCall{call("add", `{"a": 1}`)}},
	{name: "Python objects, no constant", format: "sarashina", in: `<|tool_calls|>[{'name': 'add', 'arguments': {'a': Tru}}]`, text: `<|tool_calls|>[{'name': 'add', 'arguments': {'a': Tru}}]`, malformed: 1},
	{name: "XTML", format: "kimi_k3", in: xtml(`<|open|>argument key="text" type="string"<|sep|>a<|open|>b<|close|>argument<|sep|><|open|>argument key="a&amp;&quot;" type="number"<|sep|>1<|close|>argument<|sep|>`), calls: []answerCall{call("note", `{"text":"a<|open|>b","a&\"":1}`)}},
	{name: "XTML, all at once", format: "kimi_k3", in: xtml(`<|open|>json type="object"<|sep|> {"text": "b"} <|close|>json<|sep|>`), calls: []answerCall{call("note", `{"text": "b"}`)}},
	{name: "XTML, not all at once", format: "kimi_k3", in: xtml(`<|open|>json type="object"<|sep|>b<|close|>json<|sep|>`), calls: []answerCall{call("note", `{"json":"b"}`)}},
	{name: "XTML, no name", format: "kimi_k3", in: `<|open|>tools<|sep|><|open|>call index="1"<|sep|><|close|>call<|sep|>`, text: `<|open|>tools<|sep|><|open|>call index="1"<|sep|><|close|>call<|sep|>`, malformed: 1},
	{name: "XTML, the prompt has opened the response", format: "kimi_k3", in: "Hi.<|close|>response<|sep|><|close|>message<|sep|>", text: "Hi."},
	{name: "XTML, JSON", format: "kimi_k3", opt: Options{JSON: true}, in: `<|open|>response<|sep|>{"a":1}<|close|>response<|sep|><|close|>message<|sep|>`, text: `{"a":1}`},
	{name: "elements", format: "minimax_m3", in: elements(`~<text>a ~</b> <c~</text>~<list>~<item>1~</item>~<item>~<item>x~</item>~</item>~</list>~<o>~<o>true~</o> ~<k>~</k>~</o>`), calls: []answerCall{call("note", `{"text":"a ]<]minimax[>[</b> <c","list":[1,["x"]],"o":{"o":true,"k":""}}`)}},
	{name: "elements in disorder", format: "minimax_m3", in: elements(`~<o>~<a>1~</b>~</o>`), calls: []answerCall{call("note", `{"o":"]<]minimax[>[<a>1]<]minimax[>[</b>"}`)}},
	{name: "elements, cut", format: "minimax_m3", cut: true, in: strings.ReplaceAll("~<tool_call>~<invoke name=\"note\">~<text>a~</te", "~", "]<]minimax[>["), calls: []answerCall{cutCall("note", `{"text":"a`)}},
	{name: "an end of thoughts that opens an answer", in: "</think>\n\nHi </think>.", text: "Hi </think>."},
	{name: "expressions, long strings", format: "lfm2", in: "<|tool_call_start|>[note(n=1, text='" + long + "\\n\\'\\u00e9\\ud83d\\udea2\\q', o={'k': '" + long + "'}, last=\"" + long + "\")]<|tool_call_end|>", calls: []answerCall{call("note", `{"n":1,"text":"`+long+`\n'é🚢\\q","o":{"k":"`+long+`"},"last":"`+long+`"}`)}},
	{name: "expressions, long strings, cut", format: "lfm2", cut: true, in: "<|tool_call_start|>[note(text='" + long + "\\u00", calls: []answerCall{cutCall("note", `{"text":"`+long)}},
	{name: "expressions, long strings, bad value late", format: "lfm2", in: "<|tool_call_start|>[note(text='" + long + "', n=f(1))]<|tool_call_end|>", text: "', n=f(1))]<|tool_call_end|>", calls: []answerCall{cutCall("note", `{"text":"`+long)}, malformed: 1},
	{name: "expressions, long strings, stopped", format: "lfm2", in: "<|tool_call_start|>[note(text='" + long + "', n", text: "', n", calls: []answerCall{cutCall("note", `{"text":"`+long)}, malformed: 1},
	{name: "marked strings, long", format: "gemma4", in: "<|tool_call>call:note{text:<|\"|>" + long + "<|<|\"|>,n:w}<tool_call|>", calls: []answerCall{call("note", `{"text":"`+long+`<|","n":"w"}`)}},
	{name: "marked strings", format: "gemma4", in: "<|tool_call>call:note{text:<|\"|>a\"} \\n<|\"x<|\"|>,n:{k:[True,w]}}<tool_call|>", calls: []answerCall{call("note", `{"text":"a\"} \\n<|\"x","n":{"k":[true,"w"]}}`)}},
	{name: "marked strings, cut in the mark", format: "gemma4", cut: true, in: "<|tool_call>call:note{text:<|\"|>a<|\"", calls: []answerCall{cutCall("note", `{"text":"a`)}},
}

// long is a string that is given out while it is read.
var long = strings.Repeat("long ", longString/4)

// tagsCall is a call of add in the tags of qwen3_coder.
func tagsCall(params string) string {
	return "<tool_call>\n<function=add>\n" + params + "</function>\n</tool_call>"
}

// xtml is a call of note by Kimi K3.
func xtml(arguments string) string {
	return `<|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="note" index="1"<|sep|>` +
		arguments + "<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>"
}

// elements is a call of note by MiniMax M3.
func elements(arguments string) string {
	return strings.ReplaceAll("~<tool_call>\n~<invoke name=\"note\">"+arguments+"~</invoke>\n~</tool_call>", "~", "]<]minimax[>[")
}

func dsmlCall(params string) string {
	return "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"note\">\n" + params + "</｜DSML｜invoke>\n</｜DSML｜tool_calls>"
}

func (c *lexCase) setup() (*Format, Options) {
	f := row(orElse(c.format, "hermes"))
	o := c.opt
	if o.Tools == nil {
		o.Tools = testTools
	}
	return &f, o
}

func TestLexer(t *testing.T) {
	for _, c := range lexCases {
		t.Run(c.name, func(t *testing.T) {
			f, o := c.setup()
			got := lex(f, o, tokens(f, c.in, nil, true), c.cut)
			require.Equal(t, c.text, got.Text)
			require.Equal(t, c.reasoning, got.Reasoning)
			require.Equal(t, c.calls, got.Calls)
			require.Len(t, got.Malformed, c.malformed, "%v", got.Malformed)
		})
	}
}

// probe runs a lexer over pieces and checks that nothing is lost: the bytes
// it took, in order, are the input, and those it took as text and as thoughts
// are exactly what it gave out.
func probe(t testing.TB, f *Format, o Options, pieces []string, cut bool) answer {
	t.Helper()
	l := NewLexer(f, o)
	var all, text, thoughts, gotText, gotThoughts strings.Builder
	l.span = func(c class, b []byte) {
		all.Write(b)
		switch c {
		case asText:
			text.Write(b)
		case asReasoning:
			thoughts.Write(b)
		}
	}
	var a answer
	open := false
	note := func(events []Event) {
		a.add(events)
		for _, e := range events {
			switch e.Kind {
			case TextDelta:
				gotText.Write(e.Text)
			case ReasoningDelta:
				gotThoughts.Write(e.Text)
			case CallStart:
				require.False(t, open, "a call begins inside a call")
				open = true
			case ArgsDelta:
				require.True(t, open, "arguments outside of a call")
			case CallEnd:
				require.True(t, open, "a call ends twice")
				open = false
			}
			if e.Kind == TextDelta || e.Kind == ReasoningDelta || e.Kind == ArgsDelta {
				require.NotEmpty(t, e.Text)
			}
		}
	}
	in := ""
	for _, p := range pieces {
		in += p
		note(l.Push(-1, []byte(p)))
	}
	note(l.Flush(cut))
	require.False(t, open, "a call without an end")
	require.Equal(t, in, all.String(), "bytes taken")
	require.Equal(t, text.String(), gotText.String(), "text taken and given")
	require.Equal(t, thoughts.String(), gotThoughts.String(), "thoughts taken and given")
	names := map[string]bool{}
	for _, tool := range o.Tools {
		names[tool.Name] = true
	}
	for _, c := range a.Calls {
		require.True(t, names[c.Name], c.Name)
		require.True(t, c.Cut || json.Valid([]byte(c.Args)) && c.Args[0] == '{', "arguments %q", c.Args)
	}
	return a
}

// Streamed equals collected, however the text is cut.
func TestSplitsDoNotMatter(t *testing.T) {
	cases := append([]lexCase(nil), lexCases...)
	for i := range cases {
		c := &cases[i]
		f, o := c.setup()
		checkSplits(t, f, o, c.in, c.cut)
	}
}

func TestSplitsDoNotMatterCorpus(t *testing.T) {
	for format, cases := range loadCorpus(t) {
		f, err := ByName(format)
		if err != nil {
			continue
		}
		for i := range cases {
			c := &cases[i]
			if len(c.Raw) < 2000 {
				checkSplits(t, &f, c.options(&f, false), c.Raw, c.Finish == "length")
			}
		}
	}
}

func checkSplits(t *testing.T, f *Format, o Options, in string, cut bool) {
	t.Helper()
	want := probe(t, f, o, []string{in}, cut)
	for i := range len(in) + 1 {
		require.Equal(t, want, probe(t, f, o, []string{in[:i], in[i:]}, cut), "%q split at %d", in, i)
	}
	require.Equal(t, want, probe(t, f, o, strings.Split(in, ""), cut), "%q in characters", in)
	rng := rand.New(rand.NewPCG(1, uint64(len(in))))
	for range 10 {
		require.Equal(t, want, probe(t, f, o, randomSplit(rng, in), cut), in)
	}
}

func randomSplit(rng *rand.Rand, in string) []string {
	var out []string
	for len(in) > 0 {
		n := min(1+rng.IntN(9), len(in))
		out = append(out, in[:n])
		in = in[n:]
	}
	return out
}

// Text comes out with the token that brings it, except what may be a marker;
// arguments do so once the name and the first value are known.
func TestNothingIsHeldBackInVain(t *testing.T) {
	f := row("hermes")
	l := NewLexer(&f, Options{Tools: testTools})
	var a answer
	at := func(text string) answer {
		a = answer{}
		a.add(l.Push(-1, []byte(text)))
		return a
	}
	require.Equal(t, "Hello", at("Hello").Text)
	require.Empty(t, at(" ").Text)
	require.Equal(t, " you", at("you").Text)
	require.Equal(t, " a", at(" a <too").Text)
	require.Equal(t, " <too much", at(" much").Text)
	require.Empty(t, at("\n<tool_call>\n{\"name\": \"note\", \"arguments\": {\"te"))
	require.Equal(t, []answerCall{{Name: "note", Args: `{"text": "`}}, at(`xt": "`).Calls)
	b := append([]Event(nil), l.Push(-1, []byte("abc"))...)
	require.Len(t, b, 1)
	require.Equal(t, "abc", string(b[0].Text))
	require.Empty(t, l.Push(-1, []byte(`\`)))
	require.Equal(t, `\n`, string(l.Push(-1, []byte(`n`))[0].Text))
}

// Markers that a vocabulary has no single token for are made of special tokens and
// text. The decoder gives no text for the former.
func TestSpecialTokensInsideMarkers(t *testing.T) {
	for format, pieces := range map[string][]piece{
		"gemma4":      {{1, ""}, {-1, "call:ping{}"}, {2, ""}},
		"deepseek_v3": {{3, ""}, {4, ""}, {-1, "function"}, {5, ""}, {-1, "ping\n```json\n{}\n```"}, {6, ""}, {7, ""}},
		"deepseek_v4": {{-1, "<"}, {8, ""}, {-1, "invoke name=\"ping\"></"}, {8, ""}, {-1, "invoke>"}},
	} {
		tokens := []string{"", "<|tool_call>", "<tool_call|>", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", "｜DSML｜"}
		f := row(format)
		got := lex(&f, Options{Tools: testTools, Lookup: func(text string) (int32, bool) {
			i := slices.Index(tokens, text)
			return int32(i), i > 0
		}}, pieces, false)
		require.Equal(t, []answerCall{call("ping", "{}")}, got.Calls, format)
		require.Empty(t, got.Text, format)
	}
}

func TestDone(t *testing.T) {
	f := row("hermes")
	l := NewLexer(&f, Options{Tools: testTools, MaxCalls: 1})
	l.Push(-1, []byte(`<tool_call>{"name":"ping","arguments":{}`))
	require.False(t, l.Done())
	l.Push(-1, []byte(`}`))
	require.True(t, l.Done())
	require.Equal(t, 1, l.Calls())
	require.Empty(t, l.Push(-1, []byte(`</tool_call> more`)))
	require.Empty(t, l.Flush(false))
}

func TestReasoningTokens(t *testing.T) {
	f := row("hermes")
	l := NewLexer(&f, Options{})
	for _, s := range []string{"<think>", "\n", "a", " b", "\n", "</think>", "\n\n", "Hi", "."} {
		l.Push(-1, []byte(s))
	}
	require.Equal(t, 6, l.ReasoningTokens())
	require.False(t, l.InReasoning())
}

func TestStartsInReasoning(t *testing.T) {
	f := row("hermes")
	require.True(t, f.StartsInReasoning("<|im_start|>assistant\n<think>\n"))
	require.False(t, f.StartsInReasoning("<|im_start|>assistant\n<think>\n\n</think>\n\n"))
	require.False(t, f.StartsInReasoning("say <think> please<|im_start|>assistant\n"))
	plain := row("plain")
	require.False(t, plain.StartsInReasoning("<think>"))
	require.Equal(t, NoThoughts, f.Thoughts("<think>\n\n</think>\n\n"))
	require.Equal(t, MayThink, f.Thoughts("<|im_start|>assistant\n"))
	require.Equal(t, NoThoughts, plain.Thoughts("x"))
}

// A string between tags comes out with the token that brings it; other values at
// their end.
func TestTagsAreNotHeldBackInVain(t *testing.T) {
	f := row("qwen3_coder")
	l := NewLexer(&f, Options{Tools: testTools})
	at := func(text string) (out string) {
		for _, e := range l.Push(-1, []byte(text)) {
			out += e.Name + string(e.Text)
		}
		return out
	}
	require.Empty(t, at("<tool_call>\n<function=note>\n<parameter=text"))
	require.Equal(t, `note{"text":"`, at(">\n"))
	require.Equal(t, "abc", at("abc\n</param"))
	require.Equal(t, `\n</param \"x`, at(` "x`))
	require.Equal(t, `"`, at("\n</parameter>\n"))
	require.Empty(t, at("<parameter=other>\n[1"))
	require.Equal(t, `,"other":[1]`, at("]\n</parameter>\n"))
	require.Equal(t, "}", at("</function>"))
}

// A long string in an expression comes out with the token that brings it.
func TestExpressionsAreNotHeldBackInVain(t *testing.T) {
	f := row("pythonic")
	l := NewLexer(&f, Options{Tools: testTools, Bare: true})
	at := func(text string) (out string) {
		for _, e := range l.Push(-1, []byte(text)) {
			out += e.Name + string(e.Text)
		}
		return out
	}
	require.Empty(t, at("[note(n=2, text='"))
	require.Equal(t, `note{"n":2,"text":"`+long, at(long))
	require.Equal(t, `a\"`, at(`a"`))
	require.Empty(t, at(`\`))
	require.Equal(t, `\n`, at(`n`))
	require.Equal(t, `"}`, at("')"))
}

// The delta path makes no garbage.
func TestPushDoesNotAllocate(t *testing.T) {
	word := []byte(" word")
	for name, prefix := range map[string]string{
		"text": "Hi.", "thoughts": "<think>Hm.", "arguments": `<tool_call>{"name":"note","arguments":{"text":"`,
		"tags": "<tool_call><function=note><parameter=text>", "message": "<|channel|>final<|message|>Hi.",
		"message to a tool": `<|channel|>commentary to=functions.note <|constrain|>json<|message|>{"text":"`,
		"Python":            `<|tool_calls|>[{'name': 'note', 'arguments': {'text': '`,
		"expression":        `<|tool_call_start|>[note(text='` + long,
	} {
		f := row(orElse(map[string]string{
			"tags": "qwen3_coder", "message": "harmony", "message to a tool": "harmony", "Python": "sarashina", "expression": "lfm2",
		}[name], "hermes"))
		l := NewLexer(&f, Options{Tools: testTools, Lookup: lookupIn(&f)})
		l.Push(-1, []byte(prefix))
		for range 8 {
			l.Push(-1, word)
		}
		require.Zero(t, testing.AllocsPerRun(1000, func() { l.Push(7, word) }), name)
	}
}

func BenchmarkPushText(b *testing.B) {
	for name, prefix := range map[string]string{"hermes": "Hi.", "harmony": "<|channel|>final<|message|>Hi."} {
		b.Run(name, func(b *testing.B) {
			f := row(name)
			l := NewLexer(&f, Options{Tools: testTools})
			l.Push(-1, []byte(prefix))
			word := []byte(" word")
			b.ReportAllocs()
			for b.Loop() {
				l.Push(-1, word)
			}
		})
	}
}

func FuzzLexer(f *testing.F) {
	cases := slices.Concat(lexCases, messageCases)
	for i, c := range lexCases {
		f.Add([]byte(c.in), byte(i), byte(i*7), uint64(i))
	}
	names := Names()
	for i, c := range cases { // each on its own row, too
		f.Add([]byte(c.in), byte(slices.Index(names, orElse(c.format, "hermes"))), byte(0), uint64(i))
	}
	f.Fuzz(func(t *testing.T, in []byte, which, flags byte, seed uint64) {
		if len(in) > 4000 {
			return
		}
		format := row(names[int(which)%len(names)])
		o := Options{
			Tools: testTools, StartInReasoning: flags&1 != 0, Bare: flags&2 != 0, JSON: flags&4 != 0,
			Forced: flags&8 != 0, Constrained: flags&16 != 0,
		}
		if flags&32 != 0 {
			o.MaxCalls = 1
		}
		if o.Forced && len(format.Blocks) > 0 && !o.StartInReasoning {
			o.Opening = format.Blocks[0].Start
		}
		cut := flags&64 != 0
		want := probe(t, &format, o, []string{string(in)}, cut)
		rng := rand.New(rand.NewPCG(seed, 2))
		require.Equal(t, want, probe(t, &format, o, randomSplit(rng, string(in)), cut))
	})
}
