package server

import (
	"cmp"
	"time"
)

// sink takes the parsed output of a generation, in order, on the goroutine of
// its request. Calls are opened and closed; texts and thoughts end when
// something else begins. The bytes are valid during the call.
type sink interface {
	// text takes visible text; logprobs are those of exactly this text.
	text(delta []byte, logprobs []tokenLogprob)
	// thought takes text of the reasoning.
	thought(delta []byte)
	// thoughtEnd says that the reasoning is over, messageEnd that the text is:
	// what follows is another item of the kind.
	thoughtEnd()
	messageEnd()
	// call begins a call of the tool; its arguments follow.
	call(t *tool)
	arguments(delta []byte)
	// callEnd ends it; cut says that the arguments are not whole.
	callEnd(cut bool)
	// finish ends the output.
	finish(o outcome)
}

// outcome is how a generation ended.
type outcome struct {
	cut   bool          // the budget of tokens ran out
	err   *requestError // it failed
	usage usage
}

// responseOutput makes the items of a response and tells them as events.
type responseOutput struct {
	res      *resource
	events   eventWriter
	remember func(id string, item []byte)
	now      func() time.Time
	keep     func() // stores the response before its end is told; nil stores none
	cutEvent string // ends a response that was cut; "" is response.incomplete

	open     openItem
	last     openItem // kind of the item before, for the rules of finish
	at       place    // of the open item
	callID   string
	tool     *tool
	input    *inputScanner // of an open custom call
	body     []byte        // text, thoughts, arguments or input of the open item
	logprobs []byte        // encoded, of the open message
	scratch  []byte
}

// openItem is the kind of the item that is being written.
type openItem int

const (
	openNone openItem = iota
	openMessage
	openThought
	openFunction
	openCustom
)

var _ sink = (*responseOutput)(nil)

// start tells that the response exists.
func (o *responseOutput) start() {
	o.events.snapshot("response.created", o.res)
	o.events.snapshot("response.in_progress", o.res)
}

// inProgress repeats that the response is being made. It tells no output, as
// the contract wants it of events before the terminal one.
func (o *responseOutput) inProgress(p progress) {
	output := o.res.Output
	o.res.Output = nil
	o.events.progressing(o.res, p)
	o.res.Output = output
}

func (o *responseOutput) text(delta []byte, logprobs []tokenLogprob) {
	if o.open != openMessage {
		o.begin(openMessage)
	}
	o.body = append(o.body, delta...)
	from := len(o.logprobs)
	if from > 0 && len(logprobs) > 0 {
		o.logprobs = append(o.logprobs, ',')
		from++
	}
	o.logprobs = appendLogprobs(o.logprobs, logprobs)
	o.events.delta("response.output_text.delta", o.at, delta, o.logprobs[from:], true)
}

func (o *responseOutput) thought(delta []byte) {
	if o.open != openThought {
		o.begin(openThought)
	}
	o.body = append(o.body, delta...)
	o.events.delta("response.reasoning_summary_text.delta", o.at, delta, nil, false)
}

func (o *responseOutput) thoughtEnd() {
	if o.open == openThought {
		o.end(statusCompleted)
	}
}

func (o *responseOutput) messageEnd() {
	if o.open == openMessage {
		o.end(statusCompleted)
	}
}

func (o *responseOutput) call(t *tool) {
	o.tool = t
	if t.custom {
		o.begin(openCustom)
		o.input = &inputScanner{}
		return
	}
	o.begin(openFunction)
}

func (o *responseOutput) arguments(delta []byte) {
	if o.open == openFunction {
		o.body = append(o.body, delta...)
		o.events.delta("response.function_call_arguments.delta", o.at, delta, nil, false)
		return
	}
	o.inputDelta(o.input.push(delta))
}

func (o *responseOutput) inputDelta(text []byte) {
	if len(text) > 0 {
		o.body = append(o.body, text...)
		o.events.delta("response.custom_tool_call_input.delta", o.at, text, nil, false)
	}
}

// callEnd closes a call; one that was cut is closed by finish, as incomplete.
func (o *responseOutput) callEnd(cut bool) {
	if !cut && (o.open == openFunction || o.open == openCustom) {
		o.end(statusCompleted)
	}
}

// finish closes what is open and tells the end. A response always has an item:
// where the model said nothing after its thoughts, an empty message stands.
func (o *responseOutput) finish(end outcome) {
	status := statusCompleted
	switch {
	case end.err != nil && end.err.Code == codeCancelled:
		status = statusCancelled
	case end.err != nil:
		status = statusFailed
	case end.cut:
		status = statusIncomplete
	}
	if o.open == openNone && end.err == nil && (o.last == openNone || o.last == openThought) {
		o.begin(openMessage)
	}
	if o.open != openNone {
		itemStatus := status
		if end.err != nil {
			itemStatus = statusIncomplete
		}
		o.end(itemStatus)
	}
	o.terminal(status, end)
}

func (o *responseOutput) terminal(status string, end outcome) {
	o.res.Status = status
	o.res.Usage = &end.usage
	switch status {
	case statusIncomplete:
		o.res.Incomplete = "max_output_tokens"
	case statusFailed:
		o.res.Error = end.err
		o.events.failure(end.err)
	}
	if status != statusFailed {
		o.res.CompletedAt = o.now()
	}
	event := "response." + status
	switch status {
	case statusIncomplete:
		event = cmp.Or(o.cutEvent, event)
	case statusCancelled:
		event = "response.failed" // clients know no event of its own
	}
	if o.keep != nil {
		o.keep()
	}
	o.events.snapshot(event, o.res)
	o.events.done()
}

// begin opens an item, after the one that is open.
func (o *responseOutput) begin(kind openItem) {
	if o.open != openNone {
		o.end(statusCompleted)
	}
	o.open, o.body, o.logprobs = kind, o.body[:0], o.logprobs[:0]
	switch kind {
	case openMessage:
		o.at.itemID, o.at.field = newID(prefixMessage), "content_index"
	case openThought:
		o.at.itemID, o.at.field = newID(prefixReasoning), "summary_index"
	case openFunction:
		o.at.itemID, o.at.field, o.callID = newID(prefixFunction), "", newID(prefixCall)
	case openCustom:
		o.at.itemID, o.at.field, o.callID = newID(prefixCustom), "", newID(prefixCall)
	}
	o.scratch = o.appendItem(o.scratch[:0], statusInProgress)
	o.events.item("response.output_item.added", o.at.index, o.scratch)
	switch kind {
	case openMessage:
		o.events.part("response.content_part.added", o.at, o.appendTextPart(o.scratch[:0]))
	case openThought:
		o.events.part("response.reasoning_summary_part.added", o.at, o.appendSummaryPart(o.scratch[:0]))
	}
}

// end closes the open item.
func (o *responseOutput) end(status string) {
	switch o.open {
	case openMessage:
		o.events.whole("response.output_text.done", o.at, "text", o.body, o.logprobs, true)
		o.events.part("response.content_part.done", o.at, o.appendTextPart(o.scratch[:0]))
	case openThought:
		o.events.whole("response.reasoning_summary_text.done", o.at, "text", o.body, nil, false)
		o.events.part("response.reasoning_summary_part.done", o.at, o.appendSummaryPart(o.scratch[:0]))
	case openFunction:
		o.events.arguments(o.at, o.tool.name, o.body)
	case openCustom:
		o.inputDelta(o.input.flush())
		o.events.whole("response.custom_tool_call_input.done", o.at, "input", o.body, nil, false)
	}
	o.scratch = o.appendItem(o.scratch[:0], status)
	o.events.item("response.output_item.done", o.at.index, o.scratch)
	if o.at.index > 0 {
		o.res.Output = append(o.res.Output, ',')
	}
	o.res.Output = append(o.res.Output, o.scratch...)
	if o.remember != nil {
		o.remember(o.at.itemID, o.scratch)
	}
	o.last, o.open = o.open, openNone
	o.at.index++
}

// said is the output so far, for the log.
func (o *responseOutput) said() string { return string(o.res.Output) }
