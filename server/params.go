package server

import (
	"cmp"
	"strings"

	"quern/models/chat"
	"quern/server/jsonvalue"
)

// sampling reads the parameters of sampling, which both endpoints spell alike.
// Beyond OpenAI's it takes those of other engines, which routers add: top_k,
// min_p, seed, repetition_penalty (vLLM) and repeat_penalty (llama.cpp).
func (f *fields) sampling(body jsonvalue.Members, d Sampling) sampling {
	s := sampling{
		Temperature: f.number(body.Get("temperature"), 0, 2, d.Temperature),
		TopP:        f.number(body.Get("top_p"), 0, 1, d.TopP),
		TopK:        f.count(body.Get("top_k"), -1, anyCount, d.TopK),
		MinP:        f.number(body.Get("min_p"), 0, 1, d.MinP),
		Presence:    f.number(body.Get("presence_penalty"), -2, 2, d.PresencePenalty),
		Frequency:   f.number(body.Get("frequency_penalty"), -2, 2, d.FrequencyPenalty),
		Repeat:      f.number(body.Get("repeat_penalty"), 0.01, 10, d.RepeatPenalty),
	}
	if v := body.Get("top_p"); f.rules().topPAboveZero && !v.Empty() && s.TopP == 0 {
		f.fail(invalid(v.Path(), codeInvalidValue, "%s must be greater than 0", v.Path()))
	}
	s.Repeat = f.number(body.Get("repetition_penalty"), 0.01, 10, s.Repeat)
	s.TopK = max(s.TopK, 0)
	if s.Repeat == 0 {
		s.Repeat = 1
	}
	s.Seed = f.seed(body.Get("seed"))
	return s
}

// seed reads a seed; absent, null and the -1 of llama.cpp ask for a random one.
func (f *fields) seed(v jsonvalue.Value) *int64 {
	if v.Empty() {
		return nil
	}
	n, ok := v.Int()
	if !ok {
		f.wrongType(v, "a 64-bit integer")
		return nil
	}
	if n == -1 {
		return nil
	}
	return &n
}

// stops reads stop: a string or a list of strings.
func (f *fields) stops(v jsonvalue.Value) []string {
	var list []jsonvalue.Value
	switch v.Kind() {
	case jsonvalue.Absent, jsonvalue.Null:
		return nil
	case jsonvalue.String:
		list = []jsonvalue.Value{v}
	case jsonvalue.Array:
		list = f.array(v, cmp.Or(f.rules().maxStops, maxStops))
	default:
		f.wrongType(v, "a string or an array of strings")
	}
	var out []string
	for _, e := range list {
		if e.Kind() != jsonvalue.String {
			f.wrongType(e, "a string")
			return nil
		}
		s := f.short(e, maxStopLength)
		if *s == "" {
			f.fail(invalid(e.Path(), codeInvalidValue, "%s is empty: an empty string can't end a text", e.Path()))
			return nil
		}
		out = append(out, *s)
	}
	return out
}

// reasoning is what a request says about thinking.
type reasoning struct {
	Effort    *string
	Summary   *string
	MaxTokens *int
}

var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"}

// effort reads a reasoning effort, and what it means for a template.
func (f *fields) effort(v jsonvalue.Value, t *task) *string {
	if v.Empty() {
		return nil
	}
	e := f.choice(v, "", efforts...)
	thinking := e != "none"
	t.thinking, t.effort = &thinking, e
	return &e
}

// thoughtLimit reads how many tokens the model may think. Negative is the -1 of
// llama.cpp, which sets no limit.
func (f *fields) thoughtLimit(v jsonvalue.Value, t *task) *int {
	if v.Empty() {
		return nil
	}
	n := f.count(v, -1, anyCount, -1)
	t.thoughtLimit = &n
	return &n
}

// kwargs reads chat_template_kwargs, variables handed to the template.
func (f *fields) kwargs(v jsonvalue.Value) []chat.KV {
	var out []chat.KV
	for _, m := range f.object(v) {
		out = append(out, chat.KV{Key: m.Key(), Value: m.Raw()})
	}
	return out
}

// pair is one entry of metadata, in the order it came.
type pair struct{ Key, Value string }

func (f *fields) metadata(v jsonvalue.Value) []pair {
	members := f.object(v)
	if len(members) > maxMetadata {
		f.fail(invalid(v.Path(), codeTooLarge, "%s has %d entries, the limit is %d", v.Path(), len(members), maxMetadata))
		return nil
	}
	var out []pair
	for _, m := range members {
		if len([]rune(m.Key())) > maxMetadataKey {
			f.fail(invalid(v.Path(), codeTooLarge, "a key of %s has more than %d characters", v.Path(), maxMetadataKey))
			return nil
		}
		if m.Kind() != jsonvalue.String {
			f.wrongType(m, "a string")
			return nil
		}
		out = append(out, pair{m.Key(), *f.short(m, maxMetadataText)})
	}
	return out
}

// includes reads include and says whether it names the wanted entry. Entries
// that mean nothing here are passed over.
func (f *fields) includes(v jsonvalue.Value, wanted string) bool {
	found := false
	for _, e := range f.array(v, maxObjectFields) {
		if s := f.text(e); strings.EqualFold(s, wanted) {
			found = true
		}
	}
	return found
}
