package chat

import (
	"encoding/json"

	"quern/models/schema"
)

// Role says who speaks in a message.
type Role string

// The roles of a conversation. Tool is the result of a call.
const (
	System    Role = "system"
	Developer Role = "developer"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Call is one tool call of an assistant message.
type Call struct {
	ID   string
	Name string
	// Arguments is JSON text as it came; it need not be valid.
	Arguments string
}

// Message is one turn, or a part of one: an assistant's answer and its calls
// may come as one message or as several in a row.
type Message struct {
	Role      Role
	Content   string
	Reasoning string
	Calls     []Call
	// CallID and Name belong to a tool result: which call it answers and
	// which tool was called. Either may be empty.
	CallID string
	Name   string
}

// Tool is one function that the model may call.
type Tool struct {
	Name        string
	Description string
	// Parameters is the JSON Schema as it was sent; nil where absent.
	Parameters json.RawMessage
	Strict     bool
	// Grammar is what the arguments are held to whatever the choice of tools, in
	// place of Parameters; nil where those decide.
	Grammar *schema.Compiled
}

// KV is one entry of chat_template_kwargs.
type KV struct {
	Key   string
	Value json.RawMessage
}

// Conversation is all that decides a prompt.
type Conversation struct {
	Messages []Message
	Tools    []Tool
	// Kwargs are extra template variables in the order of the request.
	Kwargs []KV
	// Thinking switches reasoning on or off for templates that have a
	// switch; nil leaves the template's default.
	Thinking *bool
	// Effort is the reasoning effort (none, minimal, low, medium, high, ...);
	// empty leaves the template's default.
	Effort string
	// ThoughtLimit is how many tokens the model may think, for templates that tell
	// it; 0 leaves it open.
	ThoughtLimit int
	// ContinueLast lets the model go on writing the last message, which is
	// then an assistant's, instead of opening a new turn.
	ContinueLast bool
}
