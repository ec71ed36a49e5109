package toolcall

import "strings"

// fingerprint is a set of texts that a family's chat template contains.
type fingerprint struct {
	all []string // behind a ! what it lacks
	row string   // "" where no row reads the family yet
	why string
	own bool // the template spells the thoughts' markers in parts: the row's hold
}

// fingerprints are tried in order: those that contain another's texts come
// first.
var fingerprints = []fingerprint{
	{[]string{"<|channel|>", "<|message|>"}, "harmony", "harmony messages", true},
	{[]string{"<atem:function_calls>"}, "muse_glimmer", "messages to tools with <atem:…> tags", true},
	{[]string{"<|content_invoke_tool_json|>"}, "inkling", "Inkling messages", true},
	{[]string{"<function=", "<|python_tag|>"}, "functionary_v31", "<function=…> with JSON", false},
	{[]string{"<seed:tool_call>"}, "seed_oss", "Seed-OSS tags", false},
	{[]string{"<function="}, "qwen3_coder", "<function=…> with tagged parameters", false},
	{[]string{"<arg_key{}>", ":opensource"}, "hy3", "Hunyuan 3 tags", true},
	{[]string{"<arg_key>"}, "glm45", "<arg_key> tags", false},
	{[]string{"<minimax:tool_call>"}, "minimax_m2", "MiniMax M2 tags", false},
	{[]string{"<steptml:invoke"}, "step3", "<steptml:invoke> tags", false},
	{[]string{"]<]minimax[>["}, "minimax_m3", "MiniMax M3 elements", true},
	{[]string{"<|open|>", "<|sep|>"}, "kimi_k3", "Kimi K3 tags", true},
	{[]string{"<|tool_calls|>", "!<|tool_call:"}, "sarashina", "<|tool_calls|> with Python literals", false},
	{[]string{"<invoke"}, "", "<invoke> tags", false},
	{[]string{"DSML", "function_calls"}, "deepseek_v32", "DSML tags in function_calls", false},
	{[]string{"DSML"}, "deepseek_v4", "DSML tags", false},
	{[]string{"<start_function_call>"}, "functiongemma", "FunctionGemma call expressions", false},
	{[]string{"<|tool_call>"}, "gemma4", "Gemma 4 call expressions", false},
	{[]string{"<|tool_call_start|>"}, "lfm2", "LFM2 call expressions", false},
	{[]string{"<|tool_list_start|>"}, "lfm2", "an LFM2 list of tools", false},
	{[]string{"List of tools: [", "keep_past_thinking"}, "lfm2", "an LFM2.5 list of tools", false},
	{[]string{"<function_calls>"}, "olmo3", "Olmo 3 call expressions", false},
	{[]string{">>>", "recipient"}, "functionary_v32", ">>> recipients", true},
	{[]string{"[TOOL_CALLS]", "[ARGS]"}, "mistral", "[TOOL_CALLS]name[ARGS]", false},
	{[]string{"[TOOL_CALLS]"}, "mistral_v7", "[TOOL_CALLS] list", false},
	{[]string{"<｜tool▁calls▁begin｜>", "```json"}, "deepseek_v3", "<｜tool▁calls▁begin｜> with json fences", false},
	{[]string{"<｜tool▁calls▁begin｜>"}, "deepseek_v31", "<｜tool▁calls▁begin｜>", false},
	{[]string{"<|tool_calls_section_begin|>"}, "kimi_k2", "<|tool_calls_section_begin|>", false},
	{[]string{"<|START_ACTION|>"}, "cohere", "<|START_ACTION|>", false},
	{[]string{"<TOOLCALL>"}, "nemotron_v2", "<TOOLCALL>", false},
	{[]string{"<|tools_prefix|>"}, "apertus", "<|tools_prefix|>", false},
	{[]string{"<longcat_tool_call>"}, "longcat", "<longcat_tool_call>", false},
	{[]string{"<tool_calls>", "[BEGIN FINAL RESPONSE]"}, "apriel", "<tool_calls> and [BEGIN FINAL RESPONSE]", false},
	{[]string{"<tool_calls>", "<answer>"}, "hunyuan_a13b", "<tool_calls> and <answer>", false},
	{[]string{"<tool_calls>", "beginning_of_sentence"}, "minimax_m1", "<tool_calls> with a call a line", false},
	{[]string{"<tool_calls>"}, "jamba", "<tool_calls>", false},
	{[]string{"functools"}, "phi4_mini", "functools list", false},
	{[]string{"<|/tool_call|>"}, "phi4_mini", "<|tool_call|>…<|/tool_call|>", false},
	{[]string{"<|tool_call|>"}, "granite3", "<|tool_call|> list", false},
	{[]string{"<|action_start|>"}, "internlm2", "<|action_start|>", false},
	{[]string{"<|role_sep|>", "function call"}, "gigachat3", "function call<|role_sep|>", false},
	{[]string{"<tool_call>", "<response>"}, "ernie45", "<tool_call> and <response>", false},
	{[]string{"<tool_call>"}, "hermes", "<tool_call> with JSON", false},
	{[]string{"directly-answer", "tool_name"}, "command_r_plus", "Action: and a json fence", false},
	{[]string{`"parameters"`, "<|eot_id|>"}, "llama3", `bare {"name", "parameters"}`, false},
}

// ForTemplate chooses the format for a chat template and says why. A template
// that offers no tools, or writes calls that no row reads, gets the Hermes
// form, which is also what the generic tool text asks for.
func ForTemplate(src string) (Format, string) {
	f, why := row("hermes"), "no known marker in the template; generic Hermes form"
	if !strings.Contains(src, "tools") {
		why = "the template offers no tools; generic Hermes form"
	} else if p := match(src); p != nil {
		if p.row != "" {
			f, why = row(p.row), "the template writes "+p.why
			if p.own {
				return f, why
			}
		} else {
			why = "the template writes " + p.why + ", which is not supported yet; generic Hermes form"
		}
	}
	f.Reasoning = spansIn(src, f.Reasoning)
	return f, why
}

func match(src string) *fingerprint {
	for i := range fingerprints {
		p := &fingerprints[i]
		found := true
		for _, s := range p.all {
			lacks, not := strings.CutPrefix(s, "!")
			found = found && strings.Contains(src, lacks) != not
		}
		if found {
			return p
		}
	}
	return nil
}

// spansIn keeps the reasoning markers that the template knows. A model whose
// template knows none writes <think> only when it is asked about it.
func spansIn(src string, own []Span) []Span {
	var out []Span
	for _, s := range own {
		if strings.Contains(src, s.End) || s.Start != "" && strings.Contains(src, s.Start) {
			out = append(out, s)
		}
	}
	if out != nil {
		return out
	}
	for i := range rows {
		for _, s := range rows[i].Reasoning {
			if s.Start != "" && strings.Contains(src, s.Start) && strings.Contains(src, s.End) {
				return []Span{s}
			}
		}
	}
	return nil
}
