package toolcall

import "strings"

// fingerprint is a set of texts that a family's chat template contains.
type fingerprint struct {
	all []string
	row string // "" where no row reads the family yet
	why string
}

// fingerprints are tried in order: those that contain another's texts come
// first.
var fingerprints = []fingerprint{
	{[]string{"<|channel|>", "<|message|>"}, "", "harmony frames"},
	{[]string{"<function=", "<|python_tag|>"}, "functionary_v31", "<function=…> with JSON"},
	{[]string{"<seed:tool_call>"}, "", "Seed-OSS tags"},
	{[]string{"<function="}, "", "<function=…> with tagged parameters"},
	{[]string{"<arg_key>"}, "", "<arg_key> tags"},
	{[]string{"<minimax:tool_call>"}, "", "MiniMax M2 tags"},
	{[]string{"<invoke"}, "", "<invoke> tags"},
	{[]string{"DSML"}, "", "DSML tags"},
	{[]string{"<|tool_call>"}, "", "Gemma 4 call expressions"},
	{[]string{"<|tool_call_start|>"}, "", "LFM2 call expressions"},
	{[]string{"<function_calls>"}, "", "Olmo 3 call expressions"},
	{[]string{">>>"}, "", ">>> recipients"},
	{[]string{"[TOOL_CALLS]", "[ARGS]"}, "mistral", "[TOOL_CALLS]name[ARGS]"},
	{[]string{"[TOOL_CALLS]"}, "mistral_v7", "[TOOL_CALLS] list"},
	{[]string{"<｜tool▁calls▁begin｜>", "```json"}, "deepseek_v3", "<｜tool▁calls▁begin｜> with json fences"},
	{[]string{"<｜tool▁calls▁begin｜>"}, "deepseek_v31", "<｜tool▁calls▁begin｜>"},
	{[]string{"<|tool_calls_section_begin|>"}, "kimi_k2", "<|tool_calls_section_begin|>"},
	{[]string{"<|START_ACTION|>"}, "cohere", "<|START_ACTION|>"},
	{[]string{"<TOOLCALL>"}, "nemotron_v2", "<TOOLCALL>"},
	{[]string{"<|tools_prefix|>"}, "apertus", "<|tools_prefix|>"},
	{[]string{"<longcat_tool_call>"}, "longcat", "<longcat_tool_call>"},
	{[]string{"<tool_calls>", "[BEGIN FINAL RESPONSE]"}, "apriel", "<tool_calls> and [BEGIN FINAL RESPONSE]"},
	{[]string{"<tool_calls>", "<answer>"}, "hunyuan_a13b", "<tool_calls> and <answer>"},
	{[]string{"<tool_calls>", "beginning_of_sentence"}, "minimax_m1", "<tool_calls> with a call a line"},
	{[]string{"<tool_calls>"}, "jamba", "<tool_calls>"},
	{[]string{"functools"}, "phi4_mini", "functools list"},
	{[]string{"<|/tool_call|>"}, "phi4_mini", "<|tool_call|>…<|/tool_call|>"},
	{[]string{"<|tool_call|>"}, "granite3", "<|tool_call|> list"},
	{[]string{"<|action_start|>"}, "internlm2", "<|action_start|>"},
	{[]string{"<|role_sep|>", "function call"}, "gigachat3", "function call<|role_sep|>"},
	{[]string{"<tool_call>", "<response>"}, "ernie45", "<tool_call> and <response>"},
	{[]string{"<tool_call>"}, "hermes", "<tool_call> with JSON"},
	{[]string{"directly-answer", "tool_name"}, "command_r_plus", "Action: and a json fence"},
	{[]string{`"parameters"`, "<|eot_id|>"}, "llama3", `bare {"name", "parameters"}`},
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
			found = found && strings.Contains(src, s)
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
