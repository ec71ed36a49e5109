package server

import (
	"slices"

	"quern/server/jsonvalue"
)

// createRequest is the body of POST /v1/responses: the task, and what is only
// echoed or decides how the answer is sent.
type createRequest struct {
	task
	model     string // "" takes the node's
	stream    bool
	store     bool // keep the response
	input     jsonvalue.Value
	obfuscate bool // pad the events of deltas
	ignored   []string
	echo      echo
}

// echo is what a response repeats of its request.
type echo struct {
	Previous         *string // id of the response that is continued
	Instructions     *string
	MaxOutputTokens  int // 0 is null
	MaxToolCalls     int
	ParallelCalls    bool
	Tools            toolset
	ToolChoice       toolChoice
	Sampling         sampling
	TopLogprobs      int
	Format           textFormat
	Verbosity        *string
	Reasoning        reasoning
	Truncation       string
	Metadata         []pair
	User             *string
	SafetyIdentifier *string
	PromptCacheKey   *string
	Store            bool
	Background       bool
}

// decodeCreate reads the body of POST /v1/responses. Top-level fields that mean
// nothing to a node are passed over; what it can't do is refused by name.
func decodeCreate(k *contract, model *Model, body jsonvalue.Value, find recall, earlier history) (*createRequest, *requestError) {
	f := &fields{contract: k, schemas: model.schemas, model: model.ID}
	m, err := f.body(body)
	if err != nil {
		return nil, err
	}
	m = f.keepTo(body, m)
	r := &createRequest{model: f.text(m.Get("model")), stream: f.flag(m.Get("stream"), false), input: m.Get("input")}
	f.keeping(m, r)
	before := f.continued(m, earlier, &r.echo)
	r.obfuscate = f.flag(f.object(m.Get("stream_options")).Get("include_obfuscation"), false)
	f.text(m.Get("service_tier")) // a node has one, whatever it is called
	f.ignore(m, "conversation", "prompt", "context_management", "moderation")

	f.prompting(m, r, before, find)
	f.answering(m, r, model.Defaults)
	f.labels(m, &r.echo)
	r.plain = k.plainOutput
	if k.provider {
		r.requirements = f.requirements(m.Get("provider"))
	}
	r.ignored = f.ignored
	if refused := f.fault(); refused != nil {
		return nil, refused
	}
	return r, nil
}

// body takes the top level apart.
func (f *fields) body(v jsonvalue.Value) (jsonvalue.Members, *requestError) {
	if v.Kind() != jsonvalue.Object {
		return nil, invalid("", codeInvalidType, "the body must be a JSON object, got %s", v.Kind())
	}
	m := f.object(v)
	return m, f.err
}

// history finds the conversation that a response ended, its own output
// included; nil if it is not known. A nil history knows none.
type history func(id string) ([]inputItem, *requestError)

// continued reads the conversation that the request goes on with.
func (f *fields) continued(m jsonvalue.Members, earlier history, e *echo) []inputItem {
	id := f.text(m.Get("previous_response_id"))
	if id == "" || f.err != nil {
		return nil
	}
	e.Previous = &id
	if earlier == nil {
		f.fail(unknownPrevious(f.rules(), id))
		return nil
	}
	before, refused := earlier(id)
	switch {
	case refused != nil:
		f.fail(refused)
	case before == nil:
		f.fail(unknownPrevious(f.rules(), id))
	}
	return before
}

func unknownPrevious(k *contract, id string) *requestError {
	why := "this node stores no responses (--store), and a socket remembers its latest one"
	if k.storing {
		why = "it was not stored, is not this key's, has been deleted, or has expired"
	}
	return invalid("previous_response_id", codePreviousResponse,
		"previous_response_id %q is not found: %s. Send the whole conversation as input", clip(id), why)
}

// keeping reads what is to become of the response. Where nothing is stored,
// store is false, whatever was asked for, and echoed so.
func (f *fields) keeping(m jsonvalue.Members, r *createRequest) {
	storing := f.rules().storing
	r.store = f.flag(m.Get("store"), true) && storing
	r.echo.Store = r.store
	r.echo.Background = f.flag(m.Get("background"), false)
	switch {
	case !r.echo.Background:
	case !storing:
		f.fail(invalid("background", codeUnsupported, "background is not supported: this node stores no responses that could be fetched later (--store)"))
	case !r.store:
		f.fail(invalid("background", codeInvalidValue, "background needs store to be true: the response could not be fetched otherwise"))
	}
}

// prompting reads what decides the prompt.
func (f *fields) prompting(m jsonvalue.Members, r *createRequest, before []inputItem, find recall) {
	r.items = append(slices.Clip(before), f.items(m.Get("input"), find)...)
	r.echo.Instructions = f.optional(m.Get("instructions"))
	if r.echo.Instructions != nil {
		r.instructions = *r.echo.Instructions
	}
	if len(r.items) == 0 && r.instructions == "" {
		f.nothingToRead(m.Get("input"))
	}
	r.tools = f.tools(m.Get("tools"))
	r.choice = f.toolChoice(m.Get("tool_choice"), &r.tools)
	r.parallel = f.flag(m.Get("parallel_tool_calls"), true)
	r.echo.Tools, r.echo.ToolChoice, r.echo.ParallelCalls = r.tools, r.choice, r.parallel

	think := f.object(m.Get("reasoning"))
	r.echo.Reasoning.Effort = f.effort(think.Get("effort"), &r.task)
	r.echo.Reasoning.MaxTokens = f.thoughtLimit(think.Get("max_tokens"), &r.task)
	r.echo.Reasoning.Summary = f.oneOf(think.Get("summary"), "auto", "concise", "detailed")
	r.kwargs = f.kwargs(m.Get("chat_template_kwargs"))

	r.echo.Truncation = f.choice(m.Get("truncation"), "disabled", "auto", "disabled")
	r.truncate = r.echo.Truncation == "auto"
	r.cacheSalt = f.text(m.Get("cache_salt"))
	r.pinned = !m.Get("prompt_cache_key").Empty()
}

// nothingToRead refuses an input without items. An empty text is one item: some
// clients send it to see whether a node answers at all.
func (f *fields) nothingToRead(input jsonvalue.Value) {
	if input.Empty() {
		f.fail(invalid("input", codeMissing, "input is required"))
		return
	}
	f.fail(invalid("input", codeInvalidValue, "input holds no item for the model: send a text, or at least one message"))
}

// answering reads what decides how the answer is generated.
func (f *fields) answering(m jsonvalue.Members, r *createRequest, defaults Sampling) {
	r.sampling = f.sampling(m, defaults)
	r.maxOutput = f.count(m.Get("max_output_tokens"), 1, anyCount, 0)
	r.stops = f.stops(m.Get("stop"))

	text := f.object(m.Get("text"))
	r.format = f.format(text.Get("format"))
	r.echo.Verbosity = f.oneOf(text.Get("verbosity"), "low", "medium", "high")

	r.echo.TopLogprobs = f.count(m.Get("top_logprobs"), 0, maxTopLogprobs, 0)
	r.logprobs = -1
	if f.includes(m.Get("include"), "message.output_text.logprobs") || r.echo.TopLogprobs > 0 {
		r.logprobs = r.echo.TopLogprobs
	}
	r.echo.Sampling, r.echo.Format, r.echo.MaxOutputTokens = r.sampling, r.format, r.maxOutput
	r.maxCalls = f.count(m.Get("max_tool_calls"), 1, anyCount, 0)
	r.echo.MaxToolCalls = r.maxCalls
}

// labels reads what a client attaches for itself.
func (f *fields) labels(m jsonvalue.Members, e *echo) {
	e.Metadata = f.metadata(m.Get("metadata"))
	e.User = f.optional(m.Get("user"))
	e.SafetyIdentifier = f.short(m.Get("safety_identifier"), maxKeyLength)
	e.PromptCacheKey = f.short(m.Get("prompt_cache_key"), maxKeyLength)
}
