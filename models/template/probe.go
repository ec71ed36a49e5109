package template

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"quern/models/chat"
	"quern/models/template/dialect"
)

// Words that no template writes of its own accord.
const (
	wordSystem = "zqsystem"
	wordUser   = "zquser"
	wordMore   = "zqmore"
	wordAnswer = "zqanswer"
	wordAgain  = "zqagain"
	wordThink  = "zqthink"
	wordTool   = "zqtool"
	wordOther  = "zqother"
	wordKey    = "zqkey"
	wordValue  = "zqvalue"
	wordSecond = "zqsecond"
	wordResult = "zqresult"
	wordLast   = "zqlast"
	longID     = "call_zq0123456789abcdef"
	otherID    = "call_zqfedcba9876543210"
)

// probeTime is what strftime_now gives while a template is tried.
var probeTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

var (
	saySystem = turn{role: system, content: wordSystem}
	sayUser   = turn{role: user, content: wordUser}
	sayMore   = turn{role: user, content: wordMore}
	sayAnswer = turn{role: assistant, content: wordAnswer}
	sayAgain  = turn{role: assistant, content: wordAgain}

	oneCall  = call{longID, wordTool, `{"` + wordKey + `": "` + wordValue + `"}`}
	twoCall  = call{otherID, wordOther, `{"` + wordKey + `": "` + wordSecond + `"}`}
	sayCall  = turn{role: assistant, calls: []call{oneCall}}
	sayBoth  = turn{role: assistant, calls: []call{oneCall, twoCall}}
	gotOne   = turn{role: tool, content: wordResult, callID: longID, name: wordTool}
	gotOther = turn{role: tool, content: wordLast, callID: otherID, name: wordOther}

	probeTools = []chat.Tool{
		{
			Name: wordTool, Description: "zqdescription",
			Parameters: json.RawMessage(`{"type": "object", "properties": {"zqkey": {"type": "string", "description": "zqproperty"}}, "required": ["zqkey"]}`),
		},
		{Name: wordOther, Description: "zqother", Parameters: json.RawMessage(`{"type": "object", "properties": {"zqkey": {"type": "string"}}}`)},
	}
)

var errUnseen = errors.New("the message does not show up in the prompt")

// try renders turns as they are.
func (v *variant) try(open bool, tools []chat.Tool, ts ...turn) (string, error) {
	r := newRendering(v, &chat.Conversation{Tools: tools}, nil, probeTime)
	return r.run(ts, true, open)
}

// tryWith renders turns with one more variable.
func (v *variant) tryWith(ts []turn, name string, value dialect.Value) (string, error) {
	r := newRendering(v, &chat.Conversation{}, nil, probeTime)
	vars, err := r.variables(ts, false, true)
	if err != nil {
		return "", err
	}
	vars[name] = value
	return v.prog.Render(vars, r.env())
}

// mentions tells whether the source quotes a word.
func (v *variant) mentions(word string) bool {
	return strings.Contains(v.source, "'"+word+"'") || strings.Contains(v.source, `"`+word+`"`)
}

// shows tells whether all words stand in the prompt in this order.
func (v *variant) shows(tools []chat.Tool, ts []turn, words ...string) bool {
	text, err := v.try(true, tools, ts...)
	return err == nil && inOrder(text, words...)
}

func inOrder(text string, words ...string) bool {
	for _, w := range words {
		i := strings.Index(text, w)
		if i < 0 {
			return false
		}
		text = text[i+len(w):]
	}
	return true
}

// probe fills in caps and traits. Only a template that can't render a single
// user message is an error.
func (v *variant) probe() error {
	v.traits.toolsVar = "tools"
	if err := v.probeUser(); err != nil {
		return err
	}
	v.probeRoles()
	v.probeTools()
	v.findReasoning()
	v.findSwitches()
	open, err1 := v.try(true, nil, sayUser)
	shut, err2 := v.try(false, nil, sayUser)
	v.caps.GenerationPrompt = err1 == nil && err2 == nil && open != shut
	return nil
}

func (v *variant) probeUser() error {
	text, err := v.try(true, nil, sayUser)
	if err == nil && strings.Contains(text, wordUser) {
		return nil
	}
	v.traits.typedContent = true
	if v.shows(nil, []turn{sayUser}, wordUser) {
		return nil
	}
	v.traits.typedContent = false
	if err == nil {
		err = errUnseen
	}
	return err
}

func (v *variant) probeRoles() {
	c := &v.caps
	c.SystemRole = v.shows(nil, []turn{saySystem, sayUser}, wordSystem, wordUser) &&
		v.shows(nil, []turn{saySystem, sayUser, sayAnswer, sayMore}, wordSystem, wordMore)
	c.DeveloperRole = v.mentions("developer") &&
		v.shows(nil, []turn{{role: developer, content: wordSystem}, sayUser}, wordSystem, wordUser)
	c.MidSystem = v.shows(nil, []turn{sayUser, sayAnswer, saySystem, sayMore}, wordUser, wordAnswer, wordSystem, wordMore)
	c.RepeatedUser = v.shows(nil, []turn{sayUser, sayMore}, wordUser, wordMore)
	c.RepeatedAssistant = v.shows(nil, []turn{sayUser, sayAnswer, sayAgain, sayMore}, wordUser, wordAnswer, wordAgain, wordMore)
	c.AssistantFirst = v.shows(nil, []turn{sayAnswer, sayUser}, wordAnswer, wordUser)
	_, err := v.try(true, nil, sayAnswer)
	v.traits.needsUser = err != nil
}

func (v *variant) probeTools() {
	c := &v.caps
	for _, name := range []string{"tools", "xml_tools", functionsVar} {
		v.traits.toolsVar = name
		if c.Tools = v.prog.Reads(name) && v.shows(probeTools, []turn{sayUser}, wordTool); c.Tools {
			break
		}
		v.traits.toolsVar = "tools"
	}
	offered := probeTools
	if !c.Tools {
		offered = nil
	}
	chain := []turn{sayUser, sayCall, gotOne}
	c.ToolCalls, c.ToolRole = v.probeCalls(offered, chain)
	if !c.ToolCalls && !v.mentions("tool") {
		c.ToolRole = false // it writes whatever role it is given; the model knows none of that name
	}
	if !c.ToolCalls {
		c.UserAfterResult = v.shows(offered, []turn{sayUser, sayAnswer, gotOne, sayMore}, wordResult, wordMore)
		return
	}
	v.traits.mappingArgs = !v.callsInText(offered)
	// Some write the system message before a last user message only.
	c.SystemRole = c.SystemRole && (!c.ToolRole || v.shows(offered, []turn{saySystem, sayUser, sayCall, gotOne}, wordSystem))
	c.ParallelCalls = v.shows(offered, []turn{sayUser, sayBoth, gotOne, gotOther},
		wordUser, wordTool, wordValue, wordOther, wordSecond) &&
		v.shows(offered, []turn{sayUser, sayBoth, gotOne, gotOther}, wordResult, wordLast)
	withText := sayCall
	withText.content = wordAnswer
	// Some show the text only as long as no answer has followed, as thoughts.
	c.TextWithCalls = v.shows(offered, []turn{sayUser, withText, gotOne}, wordAnswer, wordValue) &&
		v.shows(offered, []turn{sayUser, withText, gotOne, sayAgain, sayMore}, wordAnswer, wordValue, wordAgain)
	c.UserAfterResult = v.shows(offered, []turn{sayUser, sayCall, gotOne, sayMore}, wordResult, wordMore)
}

// probeCalls looks for a way to hand calls over: ids long or short, arguments
// a mapping or text. A mapping whose keys come out in Python's quotes was meant
// to be text, and text with escaped quotes a mapping.
func (v *variant) probeCalls(offered []chat.Tool, chain []turn) (calls, results bool) {
	for _, way := range []traits{{}, {textArgs: true}, {shortIDs: true}, {shortIDs: true, textArgs: true}} {
		v.traits.textArgs, v.traits.shortIDs = way.textArgs, way.shortIDs
		text, err := v.try(true, offered, chain...)
		_, said, _ := strings.Cut(text, wordUser) // before it, tools may be listed in Python's spelling
		if err != nil || !inOrder(said, wordTool, wordValue) ||
			strings.Contains(said, "'"+wordKey+"'") || strings.Contains(said, `\"`+wordValue) {
			continue
		}
		return true, inOrder(text, wordValue, wordResult)
	}
	v.traits.textArgs, v.traits.shortIDs = false, false
	return false, v.shows(offered, []turn{sayUser, sayAnswer, gotOne}, wordAnswer, wordResult)
}

// callsInText tells whether arguments that are no JSON object can be shown.
func (v *variant) callsInText(offered []chat.Tool) bool {
	odd := sayCall
	odd.calls = []call{{longID, wordTool, wordSecond}}
	return v.shows(offered, []turn{sayUser, odd, gotOne}, wordTool, wordSecond)
}

// reasoningKeys are the keys under which templates look for thoughts.
var reasoningKeys = []string{"reasoning_content", "reasoning", "thinking", "thought"}

// findReasoning takes the first key whose text shows up, in an answer or in a
// tool chain that is still open.
func (v *variant) findReasoning() {
	for _, key := range reasoningKeys {
		if !strings.Contains(v.source, key) {
			continue
		}
		v.traits.reasoningKey = key
		answer := turn{role: assistant, content: wordAnswer, reasoning: wordThink}
		if v.shows(nil, []turn{sayUser, answer}, wordThink) {
			v.caps.Reasoning = true
			return
		}
		chain := sayCall
		chain.reasoning = wordThink
		if v.shows(probeTools, []turn{sayUser, chain, gotOne}, wordThink) {
			v.caps.Reasoning, v.traits.thoughtsOfCalls = true, true
			return
		}
	}
	v.traits.reasoningKey = ""
}
