package toolcall

// harmony is how gpt-oss writes. A prompt ends with <|start|>assistant.
var harmony = Messages{
	Start: "<|start|>", Marks: []string{"<|channel|>", "<|constrain|>"}, Bodies: []Body{{Marker: "<|message|>"}},
	Ends: []string{"<|end|>", "<|call|>", "<|return|>"}, Last: []string{"<|call|>", "<|return|>"},
	Opened: true, To: "to=",
	Thoughts: []string{"analysis"}, User: []string{"user", "assistant", "all"},
	Words: []string{"assistant", "commentary", "final", "json", "code"},
	Next:  "<|start|>assistant", Say: "<|channel|>final<|message|>", Preambles: []string{"<|channel|>commentary<|message|>"},
	Call: Span{"<|channel|>commentary to=functions.", " <|constrain|>json<|message|>"}, OneCall: true,
}

// muse is how Muse Glimmer writes; its calls are in tags besides.
var muse = Messages{
	Start: "<|start|>", Bodies: []Body{{Marker: "<|message|>"}},
	Ends: []string{"<|eom|>", "<|eot|>"}, Last: []string{"<|eot|>"},
	Opened: true, To: "to=",
	Thoughts: []string{"to=self"}, User: []string{"user"}, Words: []string{"assistant"},
	Next: "<|start|>assistant", Say: " to=user<|message|>", Call: Span{" to=", "<|message|>"},
}

// inkling says what a message is behind the name of a tool, if it is for one.
var inkling = Messages{
	Start: "<|message_model|>",
	Bodies: []Body{
		{"<|content_text|>", ForUser}, {"<|content_thinking|>", ForSelf},
		{"<|content_invoke_tool_json|>", ForTool}, {"<|content_invoke_tool_text|>", ForTool},
	},
	Ends: []string{"<|end_message|>", "<|content_model_end_sampling|>"}, Last: []string{"<|content_model_end_sampling|>"},
	Say: "<|message_model|><|content_text|>", Call: Span{"<|message_model|>", "<|content_invoke_tool_json|>"},
}

// functionary names a recipient on a line; a prompt ends with >>>.
var functionary = Messages{
	Start: ">>>", Bodies: []Body{{Marker: "\n"}}, Opened: true, User: []string{"all"},
	Next: ">>>", Say: "all\n", Call: Span{"", "\n"},
}

// messageRows are the formats with messages.
var messageRows = []Format{
	{
		Name: "harmony", Messages: &harmony,
		Blocks:    []Block{{Style: ArgsAfterName}},
		Reasoning: []Span{{"<|channel|>analysis<|message|>", "<|end|>"}},
	},
	{
		Name: "muse_glimmer", Messages: &muse,
		Blocks: []Block{{
			Style: Tagged, Section: "<atem:function_calls>", SectionEnd: "</atem:function_calls>", Inner: "\n",
			Start: `<atem:invoke name="`, NameEnd: `">`, End: "</atem:invoke>", Lead: "\n", Between: "\n", Tags: namedTags("atem:", "\n"),
		}},
		Reasoning: []Span{{" to=self<|message|>", "<|eom|>"}},
	},
	{
		Name: "inkling", Messages: &inkling,
		Blocks:    []Block{{ArgsKey: "args"}},
		Reasoning: []Span{{"<|message_model|><|content_thinking|>", "<|end_message|>"}},
	},
	{
		Name: "functionary_v32", Messages: &functionary,
		Blocks: []Block{{Style: ArgsAfterName}},
	},
}
