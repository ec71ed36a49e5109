package server

import "quern/models/chat"

// conversation builds what the template renders: items that belong to one turn
// of the assistant become one message, and every output stands behind its call.
func (t *task) conversation() (chat.Conversation, *requestError) {
	b := conversationBuilder{tools: &t.tools, open: map[string]int{}, names: map[string]string{}}
	if t.instructions != "" {
		b.messages = append(b.messages, chat.Message{Role: chat.System, Content: t.instructions})
	}
	for i := range t.items {
		if err := b.add(&t.items[i]); err != nil {
			return chat.Conversation{}, err
		}
	}
	b.flushThoughts()
	c := chat.Conversation{
		Messages: b.messages, Kwargs: t.kwargs, Thinking: t.thinking, Effort: t.effort,
	}
	for _, tool := range t.choice.offered(t.tools) {
		c.Tools = append(c.Tools, tool.Tool)
	}
	return c, nil
}

type conversationBuilder struct {
	tools    *toolset
	messages []chat.Message
	thoughts string            // reasoning that waits for its message or call
	open     map[string]int    // calls of an id that have no output yet
	names    map[string]string // flat name of the tool that an id called
}

func (b *conversationBuilder) add(item *inputItem) *requestError {
	switch item.kind {
	case itemReasoning:
		if b.thoughts != "" && item.text != "" {
			b.thoughts += "\n"
		}
		b.thoughts += item.text
	case itemMessage:
		if item.role == chat.Assistant {
			b.assistant(item.text)
			return nil
		}
		b.flushThoughts()
		b.messages = append(b.messages, chat.Message{Role: item.role, Content: item.text})
	case itemCall:
		b.call(item)
	case itemOutput:
		return b.output(item)
	}
	return nil
}

// assistant adds a text of the assistant, with the thoughts that led to it. The
// texts of two items stay two messages.
func (b *conversationBuilder) assistant(text string) {
	b.messages = append(b.messages, chat.Message{Role: chat.Assistant, Content: text, Reasoning: b.thoughts})
	b.thoughts = ""
}

// call adds a call to the assistant's message that it follows. After thoughts
// of its own, or after anything else, it opens a message.
func (b *conversationBuilder) call(item *inputItem) {
	name := b.tools.flatten(item.namespace, item.name)
	b.open[item.callID]++
	b.names[item.callID] = name
	if n := len(b.messages); n == 0 || b.messages[n-1].Role != chat.Assistant || b.thoughts != "" {
		b.assistant("")
	}
	last := &b.messages[len(b.messages)-1]
	last.Calls = append(last.Calls, chat.Call{ID: item.callID, Name: name, Arguments: item.arguments})
}

// output adds the result of a call. One without a call before it, or one more
// than there are calls of its id, is refused: a template would show the model an
// answer to nothing.
func (b *conversationBuilder) output(item *inputItem) *requestError {
	if b.open[item.callID] == 0 {
		why := "has no function call before it in the input"
		if b.names[item.callID] != "" {
			why = "has an output already"
		}
		return invalid(item.idPath, codeInvalidValue, "%s %q %s", item.idPath, clip(item.callID), why)
	}
	b.open[item.callID]--
	b.flushThoughts()
	b.messages = append(b.messages, chat.Message{
		Role: chat.ToolRole, Content: item.text, CallID: item.callID, Name: b.names[item.callID],
	})
	return nil
}

// flushThoughts keeps thoughts that no message followed, as a message of their own.
func (b *conversationBuilder) flushThoughts() {
	if b.thoughts != "" {
		b.assistant("")
	}
}
