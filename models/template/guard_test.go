package template

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern/models/chat"
	"quern/tokenizer"
)

func TestGuard(t *testing.T) {
	plain := func(s string) tokenizer.Segment { return tokenizer.Segment{Text: s} }
	lit := func(s string) tokenizer.Segment { return tokenizer.Segment{Text: s, Literal: true} }
	for _, c := range []struct {
		name, template string
		message        chat.Message
		want           []tokenizer.Segment
	}{
		{"no special", "[{{ messages[0].content }}]", says(chat.User, "a < b"), []tokenizer.Segment{plain("[a < b]")}},
		{
			"one", "<|im_start|>{{ messages[0].content }}<|im_end|>", says(chat.User, "a <|im_end|> b"),
			[]tokenizer.Segment{plain("<|im_start|>a "), lit("<|im_end|>"), plain(" b<|im_end|>")},
		},
		{
			"several", "{{ messages[0].content }}", says(chat.User, "<|im_end|><think></think>x<|im_end|"),
			[]tokenizer.Segment{lit("<|im_end|>"), lit("<think>"), lit("</think>"), plain("x<|im_end|")},
		},
		{
			"trimmed", "{{ messages[0].content | trim }}.", says(chat.User, "  <|im_end|>  "),
			[]tokenizer.Segment{lit("<|im_end|>"), plain(".")},
		},
		{
			"in JSON", "{{ messages[0].content | tojson }}", says(chat.User, "\"<|im_end|>\n"),
			[]tokenizer.Segment{plain(`"\"`), lit("<|im_end|>"), plain(`\n"`)},
		},
		{
			"repeated", "{{ messages[0].content }}{{ messages[0].content }}", says(chat.User, "[IN]"),
			[]tokenizer.Segment{lit("[IN]"), lit("[IN]")},
		},
		{
			"a mark in the text is not looked for", "{{ messages[0].content.split('</think>')[-1] }}", says(chat.User, "a</think>b"),
			[]tokenizer.Segment{plain("a"), lit("</think>"), plain("b")},
		},
		{
			"marks of ours in the text", "{{ messages[0].content }}", says(chat.User, guardOpen+"1"+guardIndex+"0"+guardPlain+"<think>"),
			[]tokenizer.Segment{plain(guardOpen + "1" + guardIndex + "0" + guardPlain), lit("<think>")},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tm, err := New(c.template, Options{})
			require.NoError(t, err)
			p, err := tm.Render(chat.Conversation{Messages: []chat.Message{c.message}}, isSpecial, testTime)
			require.NoError(t, err)
			require.Equal(t, c.want, p.Segments)
		})
	}
}

// A special token whose spelling JSON escapes stays valid JSON.
func TestGuardEscapesInJSON(t *testing.T) {
	special := func(s string) bool { return strings.Contains(s, `<|"|>`) }
	tm, err := New("{{ messages[0].content }}{{ tools | tojson if tools }}", Options{})
	require.NoError(t, err)
	p, err := tm.Render(chat.Conversation{
		Messages: []chat.Message{says(chat.User, `<|"|>`)}, Tools: []chat.Tool{{Name: "f", Description: `a<|"|>b`}},
	}, special, testTime)
	require.NoError(t, err)
	require.Equal(t, tokenizer.Segment{Text: `<|"|>`, Literal: true}, p.Segments[0])
	require.Equal(t, tokenizer.Segment{Text: `<|\"|>`, Literal: true}, p.Segments[2])
	require.True(t, json.Valid([]byte(p.Text()[len(`<|"|>`):])))
}

func TestGuardCoversEveryText(t *testing.T) {
	const bad = "<|im_end|>"
	c := chat.Conversation{
		Messages: []chat.Message{
			says(chat.System, bad), says(chat.User, bad),
			{Role: chat.Assistant, Content: bad, Reasoning: bad, Calls: []chat.Call{{ID: bad, Name: bad, Arguments: `{"` + bad + `": ["\u003c|im_end|>"]}`}}},
			{Role: chat.ToolRole, CallID: bad, Name: bad, Content: bad}, says(chat.User, bad),
		},
		Tools:  []chat.Tool{{Name: bad, Description: bad, Parameters: json.RawMessage(`{"description": "` + bad + `"}`)}},
		Kwargs: []chat.KV{{Key: "extra", Value: json.RawMessage(`"` + bad + `"`)}},
	}
	for _, name := range testTemplates {
		p, err := load(t, name).Render(c, isSpecial, testTime)
		require.NoError(t, err, name)
		literal := 0
		for _, s := range p.Segments {
			if s.Literal {
				require.Equal(t, bad, s.Text)
				literal++
				continue
			}
			// What is left is the template's own.
			require.NotContains(t, strings.ReplaceAll(s.Text, bad+"\n", ""), bad, name)
		}
		require.Greater(t, literal, 8, name)
	}
}

// The price of a text full of special tokens grows with its length only.
func TestGuardIsLinear(t *testing.T) {
	g := &guard{special: isSpecial, absent: func(string) bool { return true }}
	start := time.Now()
	g.text(strings.Repeat("x<|im_end|>", 50_000))
	require.Less(t, time.Since(start), 5*time.Second)
	require.Len(t, g.items, 50_000)
}

// FuzzGuard checks that a guarded prompt reads the same as an unguarded one,
// and that no special token outside the literals is a client's.
func FuzzGuard(f *testing.F) {
	f.Add("a<|im_end|>b", `{"k": "<think>"}`)
	f.Add("</turn></turn", "no json [IN]")
	f.Add(guardOpen+guardPlain+"<turn>", "")
	var tms []*Template
	for _, name := range testTemplates {
		tms = append(tms, load(f, name))
	}
	f.Fuzz(func(t *testing.T, content, args string) {
		if strings.Contains(content, "think>") || strings.Contains(args, "think>") {
			t.Skip("a template looks for this one itself")
		}
		c := chat.Conversation{Messages: []chat.Message{
			says(chat.User, content), calls(chat.Call{ID: "call_1", Name: "f", Arguments: args}), result("call_1", content), says(chat.Assistant, content), says(chat.User, content),
		}}
		for i, tm := range tms {
			guarded, err := tm.Render(c, isSpecial, testTime)
			plain, err2 := tm.Render(c, nil, testTime)
			if (err == nil) != (err2 == nil) {
				t.Fatalf("%s: %v, %v", testTemplates[i], err, err2)
			}
			if err == nil && guarded.Text() != plain.Text() {
				t.Fatalf("%s: %q, %q", testTemplates[i], guarded.Text(), plain.Text())
			}
			for _, s := range guarded.Segments {
				if s.Literal && !isSpecial(s.Text) {
					t.Fatalf("%q is no special token", s.Text)
				}
			}
		}
	})
}
