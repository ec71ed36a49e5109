package toolcall

import (
	"fmt"
	"slices"
	"strings"
)

var (
	think     = []Span{{"<think>", "</think>"}}
	toolCalls = Block{Start: "<tool_calls>", End: "</tool_calls>", List: true}

	functionTags = Tags{KeyStart: "<parameter=", KeyEnd: ">", ValueEnd: "</parameter>", Trim: true, Lead: "\n", Trail: "\n", After: "\n"}
	inlineTags   = Tags{KeyStart: "<parameter=", KeyEnd: ">", ValueEnd: "</parameter>", Trim: true, After: "\n"}
)

// namedTags are tags with the key in an attribute.
func namedTags(prefix, after string) Tags {
	return Tags{
		KeyStart: "<" + prefix + `parameter name="`, KeyEnd: `"`, ValueStart: ">", ValueEnd: "</" + prefix + "parameter>",
		Attributes: true, After: after,
	}
}

// invokeTags are those of MiniMax M2.
var invokeTags = func() Tags {
	t := namedTags("", "\n")
	t.Trim = true
	return t
}()

// dsml are the tags of DeepSeek since V3.2; its versions name the section apart.
func dsml(section string) Block {
	tags := namedTags("｜DSML｜", "\n")
	tags.Typed = "string"
	return Block{
		Style: Tagged, Section: "<｜DSML｜" + section + ">", SectionEnd: "</｜DSML｜" + section + ">", Inner: "\n",
		Start: `<｜DSML｜invoke name="`, NameEnd: `">`, End: "</｜DSML｜invoke>", Lead: "\n", Between: "\n", Tags: tags,
	}
}

// argTags are the tags of GLM and Hunyuan 3, which put a suffix into each.
func argTags(suffix string) Tags {
	return Tags{
		KeyStart: "<arg_key" + suffix + ">", KeyEnd: "</arg_key" + suffix + ">",
		ValueStart: "<arg_value" + suffix + ">", ValueEnd: "</arg_value" + suffix + ">",
		Gap: "\n", After: "\n",
	}
}

func hunyuan3(suffix string) Block {
	return Block{
		Style: Tagged, Section: "<tool_calls" + suffix + ">", SectionEnd: "</tool_calls" + suffix + ">", Inner: "\n",
		Start: "<tool_call" + suffix + ">", NameEnd: "<tool_sep" + suffix + ">", End: "</tool_call" + suffix + ">",
		Lead: "\n", Between: "\n", Tags: argTags(suffix),
	}
}

// rows are the known formats. Later families are further rows.
var rows = slices.Concat(blockRows, messageRows)

// blockRows are the formats whose calls stand between markers in the text.
var blockRows = []Format{
	{
		// Qwen2.5, Qwen3, QwQ, SmolLM3, Hermes, Granite 4, MiMo-VL; also what
		// models without a tool section in their template are told to write.
		Name:      "hermes",
		Blocks:    []Block{{Start: "<tool_call>", End: "</tool_call>", Lead: "\n", Trail: "\n", Between: "\n"}},
		Reasoning: think, Bare: BareObject,
	},
	{
		// No markers at all: a bare object, fenced or not.
		Name:   "json",
		Blocks: []Block{{}},
		Bare:   BareObject,
	},
	{Name: "plain"},
	{
		Name:      "nemotron_v2",
		Blocks:    []Block{{Start: "<TOOLCALL>", End: "</TOOLCALL>", List: true}},
		Reasoning: think,
	},
	{
		Name: "hunyuan_a13b", Blocks: []Block{toolCalls},
		Reasoning: think, Frames: []Span{{"<answer>", "</answer>"}},
	},
	{
		Name:   "jamba",
		Blocks: []Block{{Start: "<tool_calls>", End: "</tool_calls>", Lead: "\n    ", Trail: "\n", List: true}},
	},
	{
		Name: "apriel", Blocks: []Block{toolCalls},
		Reasoning: []Span{{"Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"}}, Frames: []Span{{"", "[END FINAL RESPONSE]"}},
	},
	{
		Name:      "minimax_m1",
		Blocks:    []Block{{Start: "<tool_calls>", End: "</tool_calls>", Lead: "\n", Trail: "\n", Between: "\n", Shared: true}},
		Reasoning: think,
	},
	{
		Name:   "granite3",
		Blocks: []Block{{Start: "<|tool_call|>", List: true}, {Start: "<tool_call>", End: "</tool_call>"}},
		Reasoning: []Span{
			{"<think>", "</think>"},
			{"Here is my thought process:", "Here is my response:"},
			{"Here's my thought process:", "Here's my response:"},
		},
		Frames: []Span{{"<response>", "</response>"}},
	},
	{
		Name:   "phi4_mini",
		Blocks: []Block{{Start: "functools[", List: true}, {Start: "<|tool_call|>", End: "<|/tool_call|>"}},
	},
	{
		Name: "internlm2",
		Blocks: []Block{
			{Start: "<|action_start|><|plugin|>", End: "<|action_end|>", ArgsKey: "parameters", Lead: "\n", Between: "\n"},
			{Start: "<|action_start|> <|plugin|>", End: "<|action_end|>", ArgsKey: "parameters"},
		},
		Reasoning: think,
	},
	{
		Name:      "ernie45",
		Blocks:    []Block{{Start: "<tool_call>", End: "</tool_call>", Lead: "\n", Trail: "\n", Between: "\n"}},
		Reasoning: think, Frames: []Span{{"<response>", "</response>"}},
	},
	{
		Name:   "longcat",
		Blocks: []Block{{Start: "<longcat_tool_call>", End: "</longcat_tool_call>", Between: "\n"}},
	},
	{
		Name: "gigachat3",
		Blocks: []Block{
			{Start: "<|message_sep|>\n\nfunction call<|role_sep|>", Lead: "\n"},
			{Start: "<|function_call|>"},
			{Start: "function call<|role_sep|>", Lead: "\n"},
		},
	},
	{
		Name:      "apertus",
		Blocks:    []Block{{Style: NameIsKey, Start: "<|tools_prefix|>", End: "<|tools_suffix|>", List: true}},
		Reasoning: []Span{{"<|inner_prefix|>", "<|inner_suffix|>"}},
	},
	{
		Name: "cohere",
		Blocks: []Block{{
			Start: "<|START_ACTION|>", End: "<|END_ACTION|>", NameKey: "tool_name", ArgsKey: "parameters",
			IDKey: "tool_call_id", Lead: "\n    ", Trail: "\n", Between: ",\n    ", List: true,
		}},
		Reasoning: []Span{{"<|START_THINKING|>", "<|END_THINKING|>"}},
		Frames: []Span{
			{"<|START_RESPONSE|>", "<|END_RESPONSE|>"}, {"<|START_TEXT|>", "<|END_TEXT|>"}, {"", "<|END_OF_TURN_TOKEN|>"},
		},
	},
	{
		// The list form before v11 and the name[ARGS] form since: a model's
		// template may ask for one while the model writes the other.
		Name:      "mistral",
		Blocks:    []Block{{Style: ArgsAfterName, Start: "[TOOL_CALLS]", NameEnd: "[ARGS]", IDStart: "[CALL_ID]"}},
		Reasoning: []Span{{"[THINK]", "[/THINK]"}},
	},
	{
		Name:   "mistral_v7",
		Blocks: []Block{{Start: "[TOOL_CALLS]", NameEnd: "[ARGS]", IDStart: "[CALL_ID]", List: true, LastIDKey: "id", Inner: " ", Loose: true}},
	},
	{
		Name: "deepseek_v3",
		Blocks: []Block{{
			Style: ArgsAfterName, Section: "<｜tool▁calls▁begin｜>", SectionEnd: "<｜tool▁calls▁end｜>",
			Start: "<｜tool▁call▁begin｜>function<｜tool▁sep｜>", NameEnd: "\n```json\n", Trail: "\n", End: "```<｜tool▁call▁end｜>", Between: "\n",
		}},
		Reasoning: think,
	},
	{
		Name: "deepseek_v31",
		Blocks: []Block{{
			Style: ArgsAfterName, Section: "<｜tool▁calls▁begin｜>", SectionEnd: "<｜tool▁calls▁end｜>",
			Start: "<｜tool▁call▁begin｜>", NameEnd: "<｜tool▁sep｜>", End: "<｜tool▁call▁end｜>",
		}},
		Reasoning: think,
	},
	{
		Name: "kimi_k2",
		Blocks: []Block{{
			Style: ArgsAfterName, Section: "<|tool_calls_section_begin|>", SectionEnd: "<|tool_calls_section_end|>",
			Start: "<|tool_call_begin|>", NameEnd: "<|tool_call_argument_begin|>", End: "<|tool_call_end|>", Indexed: true,
		}},
		Reasoning: think,
	},
	{
		Name:   "functionary_v31",
		Blocks: []Block{{Style: ArgsAfterName, Start: "<function=", NameEnd: ">", End: "</function>"}},
	},
	{Name: "xlam", Blocks: []Block{{List: true}, {Start: "<tool_call>", End: "</tool_call>"}, {Start: "[TOOL_CALLS]"}}, Reasoning: think, Bare: BareList},
	{
		Name:   "llama3",
		Blocks: []Block{{ArgsKey: "parameters"}, {Start: "<|python_tag|>", NameEnd: ".call(", End: "<|eom_id|>", ArgsKey: "parameters"}},
		Bare:   BareNative,
	},
	{
		Name: "command_r_plus",
		Blocks: []Block{
			{
				Start: "Action:\n```json", End: "```", NameKey: "tool_name", ArgsKey: "parameters",
				Inner: "\n", Lead: "\n    ", Trail: "\n", Between: ",\n    ", List: true,
			},
			{Start: "Action: ```json", End: "```", NameKey: "tool_name", ArgsKey: "parameters", List: true},
		},
	},
	{
		// Qwen3-Coder, Qwen3.5 and later, Nemotron 3, Step 3.5.
		Name: "qwen3_coder",
		Blocks: []Block{{
			Style: Tagged, Section: "<tool_call>", SectionEnd: "</tool_call>", Inner: "\n", Single: true,
			Start: "<function=", NameEnd: ">", End: "</function>", Lead: "\n", Between: "\n", Tags: functionTags,
		}},
		Reasoning: think,
	},
	{
		Name: "seed_oss",
		Blocks: []Block{{
			Style: Tagged, Section: "<seed:tool_call>", SectionEnd: "</seed:tool_call>", Inner: "\n", Single: true,
			Start: "<function=", NameEnd: ">", End: "</function>", Lead: "\n", Between: "\n", Tags: inlineTags,
		}},
		Reasoning: []Span{{"<seed:think>", "</seed:think>"}},
	},
	{
		// GLM 4.5 and later, with line breaks between the tags or without.
		Name: "glm45",
		Blocks: []Block{{
			Style: Tagged, Start: "<tool_call>", End: "</tool_call>", Lead: "\n", Between: "\n", Loose: true, Tags: argTags(""),
		}},
		Reasoning: think,
	},
	{
		Name: "hy3", Blocks: []Block{hunyuan3(":opensource"), hunyuan3("")},
		Reasoning: []Span{{"<think:opensource>", "</think:opensource>"}},
	},
	{
		Name: "minimax_m2",
		Blocks: []Block{{
			Style: Tagged, Section: "<minimax:tool_call>", SectionEnd: "</minimax:tool_call>", Inner: "\n",
			Start: `<invoke name="`, NameEnd: `">`, End: "</invoke>", Lead: "\n", Between: "\n", Tags: invokeTags,
		}},
		Reasoning: think,
	},
	{Name: "deepseek_v32", Blocks: []Block{dsml("function_calls"), dsml("tool_calls")}, Reasoning: think},
	{Name: "deepseek_v4", Blocks: []Block{dsml("tool_calls"), dsml("function_calls")}, Reasoning: think},
	{
		Name: "step3",
		Blocks: []Block{{
			Style: Tagged, Section: "<｜tool_calls_begin｜>", SectionEnd: "<｜tool_calls_end｜>",
			Start: `<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="`, NameEnd: `">`,
			End: "</steptml:invoke><｜tool_call_end｜>", Tags: namedTags("steptml:", ""),
		}},
		Reasoning: think,
	},
	{
		Name:      "lfm2",
		Blocks:    []Block{{Style: Expression, Start: "<|tool_call_start|>", NameEnd: "(", End: "<|tool_call_end|>", List: true}},
		Reasoning: think,
	},
	{
		// Llama 4 and others: the whole answer is a list of calls.
		Name: "pythonic",
		Blocks: []Block{
			{Style: Expression, NameEnd: "(", List: true},
			{Style: Expression, Start: "<|python_start|>", NameEnd: "(", End: "<|python_end|>", List: true},
		},
		Bare: BareList,
	},
	{
		Name:      "olmo3",
		Blocks:    []Block{{Style: Expression, Start: "<function_calls>", NameEnd: "(", End: "</function_calls>", Between: "\n", Shared: true}},
		Reasoning: think,
	},
	{
		Name:      "gemma4",
		Blocks:    []Block{{Style: Expression, Start: "<|tool_call>call:", NameEnd: "{", End: "<tool_call|>", Quote: `<|"|>`}},
		Reasoning: []Span{{"<|channel>thought", "<channel|>"}},
	},
	{
		Name:   "functiongemma",
		Blocks: []Block{{Style: Expression, Start: "<start_function_call>call:", NameEnd: "{", End: "<end_function_call>", Quote: "<escape>"}},
	},
	{
		// XTML: each tag has three special tokens.
		Name: "kimi_k3",
		Blocks: []Block{{
			Style: Tagged, Section: "<|open|>tools<|sep|>", SectionEnd: "<|close|>tools<|sep|>",
			Start: `<|open|>call tool="`, NameEnd: `"`, HeadEnd: "<|sep|>", Head: ` index="#"`, End: "<|close|>call<|sep|>",
			Preface: "<|open|>response<|sep|><|close|>response<|sep|>", Epilogue: "<|close|>message<|sep|>",
			Tags: Tags{
				KeyStart: `<|open|>argument key="`, KeyEnd: `"`, ValueStart: "<|sep|>", ValueEnd: "<|close|>argument<|sep|>",
				Attributes: true, Typed: "type", Entities: true, Whole: Span{"<|open|>json", "<|close|>json<|sep|>"},
			},
		}},
		Reasoning: []Span{{"<|open|>think<|sep|>", "<|close|>think<|sep|>"}},
		// Without thoughts, the prompt has opened the response.
		Frames: []Span{{"<|open|>response<|sep|>", "<|close|>response<|sep|>"}, {"", "<|close|>response<|sep|>"}, {"", "<|close|>message<|sep|>"}},
	},
	{
		Name: "minimax_m3",
		Blocks: []Block{{
			Style: Tagged, Section: "]<]minimax[>[<tool_call>", SectionEnd: "]<]minimax[>[</tool_call>",
			Start: `]<]minimax[>[<invoke name="`, NameEnd: `">`, End: "]<]minimax[>[</invoke>",
			Tags: Tags{KeyStart: "]<]minimax[>[<", KeyEnd: ">", ValueEnd: "]<]minimax[>[</", Nested: true},
		}},
		Reasoning: []Span{{"<mm:think>", "</mm:think>"}},
	},
	{
		Name:   "sarashina",
		Blocks: []Block{{Start: "<|tool_calls|>", List: true, Literals: true}},
		Bare:   BareList,
	},
	{Name: "kimi_vl", Reasoning: []Span{{"◁think▷", "◁/think▷"}}},
}

// synonyms are names of families that share a row with another.
var synonyms = map[string]string{"mistral_v11": "mistral", "mistral_small32": "mistral", "glm47": "glm45"}

// ByName finds a row.
func ByName(name string) (Format, error) {
	name = orElse(synonyms[name], name)
	i := slices.IndexFunc(rows, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return Format{}, fmt.Errorf("no tool format %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return rows[i], nil
}

// Names lists the rows.
func Names() []string {
	out := make([]string, len(rows))
	for i := range rows {
		out[i] = rows[i].Name
	}
	return out
}

func row(name string) Format {
	f, err := ByName(name)
	if err != nil {
		panic(err) // a name that this package spells wrong
	}
	return f
}
