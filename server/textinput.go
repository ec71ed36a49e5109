package server

import (
	"context"

	"quern/engine"
	"quern/models/toolcall"
	"quern/server/jsonvalue"
	"quern/tokenizer"
)

// textRequest is the body of POST /v1/completions: a prompt that goes to the
// model as it is, without a template.
type textRequest struct {
	task
	chunking
	model   string
	prompt  string
	tokens  []tokenizer.Token // the prompt where it came as tokens
	suffix  string            // text behind the gap to be filled
	echo    bool              // the answer begins with the prompt
	ignored []string
}

// defaultTextTokens is what OpenAI's endpoint takes where max_tokens is absent.
const defaultTextTokens = 16

// maxTextLogprobs is the largest logprobs of the endpoint.
const maxTextLogprobs = 5

// decodeText reads the body of POST /v1/completions. vocabulary is the number
// of tokens that there are.
func decodeText(body jsonvalue.Value, defaults Sampling, vocabulary int) (*textRequest, *requestError) {
	f := &fields{}
	m, err := f.body(body)
	if err != nil {
		return nil, err
	}
	r := &textRequest{model: f.text(m.Get("model")), chunking: f.chunking(m)}
	f.oneAnswer(m)
	r.readPrompt(f, body, m.Get("prompt"), vocabulary)
	r.suffix = f.text(m.Get("suffix"))
	r.echo = f.flag(m.Get("echo"), false)

	r.format, r.choice = textFormat{Kind: formatText}, toolChoice{mode: choiceNone}
	r.sampling = f.sampling(m, defaults)
	if r.maxOutput = f.count(m.Get("max_tokens"), 0, anyCount, defaultTextTokens); r.maxOutput == 0 {
		r.beSilent()
	}
	r.stops = f.stops(m.Get("stop"))
	r.logprobs = f.count(m.Get("logprobs"), 0, maxTextLogprobs, -1)
	r.cacheSalt = f.text(m.Get("cache_salt"))
	switch {
	case r.echo && r.logprobs >= 0:
		f.fail(invalid("echo", codeUnsupported, "echo can't be combined with logprobs: the prompt's log probabilities are not computed"))
	case r.suffix != "" && r.tokens != nil:
		f.fail(invalid("suffix", codeUnsupported, "suffix needs a prompt of text, not of tokens"))
	}
	r.ignored = f.ignored
	if f.err != nil {
		return nil, f.err
	}
	return r, nil
}

// readPrompt takes a text or a list of tokens, or a list of exactly one of them.
func (r *textRequest) readPrompt(f *fields, body, v jsonvalue.Value, vocabulary int) {
	if v.Empty() {
		f.missing(body, "prompt")
		return
	}
	if v.Kind() == jsonvalue.String {
		r.prompt = f.text(v)
		return
	}
	if v.Kind() != jsonvalue.Array {
		f.wrongType(v, "a string or an array of tokens")
		return
	}
	list := f.array(v, maxDetokenize)
	switch {
	case len(list) == 0:
		f.fail(invalid(v.Path(), codeInvalidValue, "%s is empty", v.Path()))
	case list[0].Kind() == jsonvalue.Number:
		r.tokens = f.tokens(list, vocabulary)
	case len(list) > 1:
		f.fail(invalid(v.Path(), codeUnsupported, "%s holds %d prompts: this node answers one a request", v.Path(), len(list)))
	case list[0].Kind() == jsonvalue.Array:
		r.tokens = f.tokens(f.array(list[0], maxDetokenize), vocabulary)
	case list[0].Kind() == jsonvalue.String:
		r.prompt = f.text(list[0])
	default:
		f.wrongType(list[0], "a string or an array of tokens")
	}
}

// tokens reads a list of tokens of a vocabulary.
func (f *fields) tokens(list []jsonvalue.Value, vocabulary int) []tokenizer.Token {
	out := make([]tokenizer.Token, 0, len(list))
	for _, v := range list {
		out = append(out, tokenizer.Token(f.count(v, 0, vocabulary-1, 0)))
		if f.err != nil {
			return nil
		}
	}
	return out
}

// prepareText makes a job of a prompt that no template has touched. Spellings of
// special tokens in it are those tokens: editors write their own templates, for
// filling gaps above all.
func (m *Model) prepareText(ctx context.Context, r *textRequest) (*job, *requestError) {
	j := &job{task: &r.task, text: r.prompt, tokens: r.tokens, params: r.samplerParams(), format: &toolcall.Format{}, stops: r.stops}
	if r.tokens != nil {
		j.text = m.Tokenizer.Detokenize(r.tokens)
	} else {
		segments := []tokenizer.Segment{{Text: r.prompt}}
		if r.suffix != "" {
			var refused *requestError
			if segments, refused = m.gap(r.prompt, r.suffix); refused != nil {
				return nil, refused
			}
		}
		room := m.Engine.MaxLength()
		if fewest := m.fewestOf(len(r.prompt) + len(r.suffix)); fewest > room {
			return nil, tooLongRefusal(&engine.TooLongError{Prompt: fewest, Max: r.maxOutput, Limit: room})
		}
		tokens, err := m.encode(ctx, segments)
		if err != nil {
			return nil, notEncoded(ctx, err)
		}
		j.tokens = tokens
	}
	if len(j.tokens) == 0 {
		return nil, invalid("prompt", codeInvalidValue, "prompt is empty: there is nothing to go on from")
	}
	if room := m.Engine.MaxLength(); len(j.tokens)+r.maxOutput > room {
		return nil, tooLongRefusal(&engine.TooLongError{Prompt: len(j.tokens), Max: r.maxOutput, Limit: room})
	}
	return j, nil
}

// gapMarks are the tokens around a gap in a text, by family.
var gapMarks = []struct{ prefix, suffix, middle string }{
	{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},    // Qwen2.5-Coder, CodeGemma
	{"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},          // StarCoder, Granite
	{"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},          // SantaCoder, Refact
	{"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"}, // GLM
	{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},          // DeepSeek-Coder
}

// gap asks for the text between prefix and suffix, where the vocabulary has the
// tokens for it.
func (m *Model) gap(prefix, suffix string) ([]tokenizer.Segment, *requestError) {
	for _, marks := range gapMarks {
		if _, known := m.Tokenizer.Lookup(marks.middle); known {
			return []tokenizer.Segment{
				{Text: marks.prefix}, {Text: prefix, Literal: m.Tokenizer.ContainsSpecial(prefix)},
				{Text: marks.suffix}, {Text: suffix, Literal: m.Tokenizer.ContainsSpecial(suffix)},
				{Text: marks.middle},
			}, nil
		}
	}
	return nil, invalid("suffix", codeUnsupported, "suffix is not supported: the vocabulary of the model has no tokens for filling gaps")
}
