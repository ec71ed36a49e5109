package servertest

import (
	"sync"
	"testing"

	"quern/engine"
	"quern/engine/enginetest"
	"quern/tokenizer"
)

// Template is a small chat template of the Hermes kind, for a ByteVocab.
const Template = `{%- if tools %}{{- '<|im_start|>system\n# Tools\n<tools>' }}{%- for tool in tools %}{{- '\n' }}{{- tool | tojson }}{%- endfor %}{{- '\n</tools>\n<tool_call> </tool_call><|im_end|>\n' }}{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}{{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' }}
{%- else %}{{- '<|im_start|>' + message.role + '\n' + message.content }}
{%- for call in message.tool_calls or [] %}{{- '\n<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}{{- call.function.arguments | tojson }}{{- '}\n</tool_call>' }}{%- endfor %}
{{- '<|im_end|>\n' }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}`

// Script is a backend whose answers a test writes as text. Any goroutine.
type Script struct {
	Fake      *enginetest.Fake
	Tokenizer *tokenizer.Tokenizer

	mu      sync.Mutex
	answer  string
	then    []string // what follows inserted tokens, each time
	prompts []string
	params  []engine.SamplerParams
	begun   map[*enginetest.Sampler][]engine.Token
}

// NewScript makes a backend that answers every prompt with answer.
func NewScript(tb testing.TB, answer string) *Script {
	s := &Script{
		Fake: enginetest.New(tb, enginetest.Small), Tokenizer: tokenizer.New(NewByteVocab()),
		answer: answer, begun: map[*enginetest.Sampler][]engine.Token{},
	}
	s.Fake.Vocab, s.Fake.EOG, s.Fake.Next = 300, EOG, s.next
	s.Fake.FailSampler = func(p engine.SamplerParams) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.params = append(s.params, p)
		return nil
	}
	return s
}

// Say changes the answer to the requests that follow.
func (s *Script) Say(answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// SayThen is what the model goes on with behind tokens that were inserted, the
// first time and so on; the last text stands for all that follow.
func (s *Script) SayThen(texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.then = texts
}

// LastPrompt is what the engine saw last; "" before the first.
func (s *Script) LastPrompt() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.prompts) == 0 {
		return ""
	}
	return s.prompts[len(s.prompts)-1]
}

// LastParams are those of the sampler made last.
func (s *Script) LastParams() engine.SamplerParams {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.params) == 0 {
		return engine.SamplerParams{}
	}
	return s.params[len(s.params)-1]
}

// next is the token after a history: the next one of the answer to its prompt.
func (s *Script) next(history []engine.Token, sampler *enginetest.Sampler) engine.Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer, known := s.begun[sampler]
	if !known {
		s.prompts = append(s.prompts, s.Tokenizer.Detokenize(sampler.Prompt))
		answer = s.encode(s.answer)
		s.begun[sampler] = answer
	}
	from := len(sampler.Prompt)
	if n := len(sampler.Inserted); n > 0 {
		answer, from = nil, from+sampler.Inserted[n-1]+1
		if times := runs(sampler.Inserted); len(s.then) > 0 {
			answer = s.encode(s.then[min(times, len(s.then))-1])
		}
	}
	if i := len(history) - from; i < len(answer) {
		return answer[i]
	}
	return EOG
}

// runs counts the runs of consecutive numbers.
func runs(list []int) int {
	n := 0
	for i := range list {
		if i == 0 || list[i] != list[i-1]+1 {
			n++
		}
	}
	return n
}

func (s *Script) encode(text string) []engine.Token {
	tokens, _ := s.Tokenizer.EncodeText(text, tokenizer.TextOptions{ParseSpecial: true}) // a ByteVocab knows every text
	return tokens
}
