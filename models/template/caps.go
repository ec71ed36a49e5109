package template

// Caps is what a template can express, found out by trying.
type Caps struct {
	SystemRole    bool // a system message at the head
	DeveloperRole bool // knows developer messages by that name
	MidSystem     bool // system messages between other turns
	Tools         bool // writes the tools that are offered
	ToolCalls     bool // writes the calls of an assistant
	ToolRole      bool // writes the results of tools
	ParallelCalls bool // writes more than one call of a message
	TextWithCalls bool // writes the text of a message that also calls

	RepeatedUser      bool // two user messages in a row
	RepeatedAssistant bool // two assistant messages in a row
	AssistantFirst    bool // a conversation that an assistant begins
	UserAfterResult   bool // a user message right after a tool's result

	Thinking         bool // has a switch or an effort for thinking
	Reasoning        bool // writes the thoughts of earlier answers, at least in an open tool chain
	GenerationPrompt bool // opens the assistant's turn
}

// RequiresAlternation tells whether user and assistant have to take turns.
func (c Caps) RequiresAlternation() bool { return !c.RepeatedUser }

// plainest is what every template can do that can do anything.
var plainest = Caps{}

// traits are details of how a template wants its input.
type traits struct {
	toolsVar        string   // the variable that holds the tools
	typedContent    bool     // content is a list of parts, never a string
	textArgs        bool     // arguments are JSON text, not a mapping
	mappingArgs     bool     // arguments have to be a mapping
	shortIDs        bool     // call ids have nine letters and digits
	reasoningKey    string   // the key of an assistant's thoughts
	thoughtsOfCalls bool     // it only writes those before calls
	switches        []string // variables that turn thinking on and off
	onByDefault     string   // the one of them that is true where nobody says
	efforts         []effort
	needsUser       bool // refuses a conversation without a user message
	filler          string
}

// effort is a variable for the reasoning effort and the levels it takes.
type effort struct {
	variable string
	levels   []string
}
