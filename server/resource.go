package server

import "time"

// Status values of a response and of its items.
const (
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
	statusQueued     = "queued"    // of a background response that has not begun
	statusCancelled  = "cancelled" // of one that its client gave up
)

// resource is the response object of the contract: all 31 keys, always.
type resource struct {
	ID          string
	CreatedAt   time.Time
	CompletedAt time.Time // zero is null, as of a response that failed
	Model       string
	Status      string
	Incomplete  string // reason; "" is null
	Error       *requestError
	Output      []byte // encoded items, comma between them
	Usage       *usage // nil is null

	head, tail []byte // the keys that never change, encoded once
}

// newResource encodes what a request makes constant in its response.
func newResource(model string, e *echo, now time.Time) *resource {
	r := &resource{ID: newID(prefixResponse), CreatedAt: now, Model: model, Status: statusInProgress}
	r.head = append(r.head, `{"id":`...)
	r.head = appendString(r.head, r.ID)
	r.head = append(r.head, `,"object":"response","created_at":`...)
	r.head = appendInt(r.head, now.Unix())
	size := 1024 // of all but the tools, mostly
	for _, t := range e.Tools.echo {
		size += len(t) + 1
	}
	r.tail = make([]byte, 0, size)
	r.repeat(e)
	return r
}

// repeat encodes what the request makes constant, once more where that changes.
func (r *resource) repeat(e *echo) { r.tail = e.append(append(r.tail[:0], `,"model":`...), r.Model) }

// append writes the resource as it is now.
func (r *resource) append(dst []byte) []byte {
	dst = append(dst, r.head...)
	dst = append(dst, `,"status":"`...)
	dst = append(dst, r.Status...)
	dst = append(dst, `","completed_at":`...)
	if r.CompletedAt.IsZero() {
		dst = append(dst, "null"...)
	} else {
		dst = appendInt(dst, r.CompletedAt.Unix())
	}
	dst = append(dst, `,"error":`...)
	if r.Error == nil {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, `{"code":`...)
		dst = appendString(dst, r.Error.Code)
		dst = append(dst, `,"message":`...)
		dst = append(appendString(dst, r.Error.Message), '}')
	}
	dst = append(dst, `,"incomplete_details":`...)
	if r.Incomplete == "" {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, `{"reason":`...)
		dst = append(appendString(dst, r.Incomplete), '}')
	}
	dst = append(dst, `,"output":[`...)
	dst = append(dst, r.Output...)
	dst = append(dst, `],"usage":`...)
	if r.Usage == nil {
		dst = append(dst, "null"...)
	} else {
		dst = r.Usage.append(dst)
	}
	return append(dst, r.tail...)
}

// append writes the keys that repeat the request, up to the closing brace.
func (e *echo) append(dst []byte, model string) []byte {
	dst = appendString(dst, model)
	dst = append(dst, `,"previous_response_id":`...)
	dst = appendPointer(dst, e.Previous)
	dst = append(dst, `,"instructions":`...)
	dst = appendPointer(dst, e.Instructions)
	dst = append(dst, `,"max_output_tokens":`...)
	dst = appendCountOrNull(dst, e.MaxOutputTokens)
	dst = append(dst, `,"max_tool_calls":`...)
	dst = appendCountOrNull(dst, e.MaxToolCalls)
	dst = append(dst, `,"tools":[`...)
	for i, t := range e.Tools.echo {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, t...)
	}
	dst = append(dst, `],"tool_choice":`...)
	dst = append(dst, e.ToolChoice.echo...)
	dst = append(dst, `,"parallel_tool_calls":`...)
	dst = appendBool(dst, e.ParallelCalls)
	dst = append(dst, `,"text":{"format":`...)
	dst = e.Format.append(dst)
	if e.Verbosity != nil {
		dst = append(dst, `,"verbosity":`...)
		dst = appendString(dst, *e.Verbosity)
	}
	dst = append(dst, `},"truncation":`...)
	dst = appendString(dst, e.Truncation)
	dst = e.appendNumbers(dst)
	return e.appendLabels(dst)
}

func (e *echo) appendNumbers(dst []byte) []byte {
	dst = append(dst, `,"temperature":`...)
	dst = appendFloat(dst, e.Sampling.Temperature)
	dst = append(dst, `,"top_p":`...)
	dst = appendFloat(dst, e.Sampling.TopP)
	dst = append(dst, `,"presence_penalty":`...)
	dst = appendFloat(dst, e.Sampling.Presence)
	dst = append(dst, `,"frequency_penalty":`...)
	dst = appendFloat(dst, e.Sampling.Frequency)
	dst = append(dst, `,"top_logprobs":`...)
	dst = appendInt(dst, e.TopLogprobs)
	dst = append(dst, `,"reasoning":{"effort":`...)
	dst = appendPointer(dst, echoedEffort(e.Reasoning.Effort))
	dst = append(dst, `,"summary":`...)
	dst = appendPointer(dst, e.Reasoning.Summary)
	if e.Reasoning.MaxTokens != nil {
		dst = appendInt(append(dst, `,"max_tokens":`...), *e.Reasoning.MaxTokens)
	}
	return append(dst, '}')
}

func (e *echo) appendLabels(dst []byte) []byte {
	dst = append(dst, `,"store":`...)
	dst = appendBool(dst, e.Store)
	dst = append(dst, `,"background":`...)
	dst = appendBool(dst, e.Background)
	dst = append(dst, `,"service_tier":"default","metadata":{`...)
	for i, p := range e.Metadata {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, p.Key), ':')
		dst = appendString(dst, p.Value)
	}
	dst = append(dst, `},"user":`...)
	dst = appendPointer(dst, e.User)
	dst = append(dst, `,"safety_identifier":`...)
	dst = appendPointer(dst, e.SafetyIdentifier)
	dst = append(dst, `,"prompt_cache_key":`...)
	return append(appendPointer(dst, e.PromptCacheKey), '}')
}

// echoedEffort keeps to the words that the contract lets a response use.
func echoedEffort(effort *string) *string {
	if effort == nil {
		return nil
	}
	low, xhigh := "low", "xhigh"
	switch *effort {
	case "minimal":
		return &low
	case "max", "ultra":
		return &xhigh
	}
	return effort
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, "true"...)
	}
	return append(dst, "false"...)
}
