package testmodel

import "strings"

// What the model says.
const (
	// Plain is the answer to a prompt without tools: 17 tokens and the end.
	Plain = "Hello! I am a tiny scripted model for tests, and this sentence never changes."
	// ToolAnswer is the answer to a prompt that holds a tool's result.
	ToolAnswer = "The tool answered; thanks?"
	// CallName and CallArguments are the call that it makes of its own accord
	// when tools are offered, whatever they are.
	CallName      = "get_weather"
	CallArguments = `{"city": "value"}`
)

// The scripted sentences, a token each. No token occurs twice among them: the
// model knows only the one it wrote last.
var (
	plain  = []string{"Hello", "!", " I", " am", " a", " tiny", " scripted", " model", " for", " tests", ",", " and", " this", " sentence", " never", " changes", "."}
	answer = []string{"The", " tool", " answered", ";", " thanks", "?"}
	// call continues <tool_call>. Its tokens stand outside the merges, so no
	// text of a prompt is tokenised to them.
	call = []string{"\n{\"name\": \"", "get_weather", "\", \"arguments\": {", "\"city\": ", "\"value\"", "}}\n"}
)

// corpus is what the byte-pair merges are learnt from: every word in it
// becomes one token.
var corpus = strings.Join(plain, "") + "\n" + strings.Join(answer, "") + "\n" +
	` "value" name arguments city days object string number type function description parameters properties required` +
	` system user assistant tool You are a helpful assistant. What is the weather in Paris? The functions may be called` +
	// A long within words must not count as the mark.
	` long along belong` +
	"\n/notool\nnotool /\n/long\nlong\n" +
	`42 : { } [ ] ( ) < > "`

// Control tokens give no text; marks are found in any text of the template.
var (
	controls = []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}
	marks    = []string{"<tools>", "</tools>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"}
)

const (
	newline   = "\n"
	quote     = `"`
	eos       = "<|im_end|>"
	openCall  = "<tool_call>"
	closeCall = "</tool_call>"
)

// follow says that after one token another gets that logit. Where the first
// choice is ruled out by a grammar the next one counts, so the JSON part is a
// ranking.
type follow struct {
	after, next string
	logit       float64
}

// anyOther stands for every token without an entry of its own: the newline
// after the generation prompt above all.
const anyOther = newline

func script() []follow {
	s := []follow{
		// The first token of an answer; lean moves it to the other two.
		{anyOther, plain[0], 26}, {anyOther, openCall, 14}, {anyOther, answer[0], 14}, {anyOther, closeCall, 9},
		{".", eos, 30}, {".", plain[0], 8},
		{"?", eos, 30},
		{openCall, call[0], 45}, {openCall, newline, 30}, {closeCall, eos, 30},
		{quote, "value", 32}, {quote, ":", 9}, {quote, "}", 8}, {quote, ",", 7}, {quote, "]", 7.5},
		{"value", quote, 30}, {"value", "value", 10},
		{"{", quote, 14}, {"[", quote, 10}, {":", "4", 6}, {" ", "4", 6},
		{"4", "2", 18}, {"2", "}", 18}, {"2", ",", 17}, {"2", "]", 16},
		{"}", "}", 12}, {"}", eos, 9}, {"}", newline, 14}, {"}", "]", 4},
		{">", eos, 15},
	}
	for _, chain := range [][]string{plain, answer, append(call, closeCall)} {
		for i, t := range chain[1:] {
			s = append(s, follow{chain[i], t, 45})
		}
	}
	return s
}

// lean moves a token's logit by the flags that attention sets.
type lean struct {
	token string
	flag  int
	logit float64
}

var leans = []lean{
	{openCall, flagTools, 20}, {answer[0], flagTools, -20},
	{plain[0], flagSlash, 15}, {plain[0], flagLong, 15}, // both are needed to pass the end after "."
}

// bias is the logit that a token has after any other.
func bias(v vocab, id int) float64 {
	t := v.texts[id]
	switch {
	case v.types[id] == typeUnused:
		return -30
	case t == eos || t == openCall || t == closeCall:
		return 0
	case v.types[id] != typeNormal, id >= v.scripted:
		return -12
	case t == newline:
		return -9
	case t == " ":
		return -6
	case len(t) == 1 && (t[0] >= 128 || t[0] < 32):
		return -12
	}
	return 0
}
