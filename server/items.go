package server

// appendItem writes the open item as output_item.added (in progress, its
// content still empty) or as output_item.done and the response tell it.
func (o *responseOutput) appendItem(dst []byte, status string) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendString(dst, o.at.itemID)
	dst = append(dst, itemTypes[o.open]...)
	dst = append(dst, `,"status":"`...)
	dst = append(dst, status...)
	dst = append(dst, '"')
	switch o.open {
	case openMessage:
		dst = o.appendMessage(dst, status)
	case openThought:
		dst = o.appendThought(dst, status)
	default:
		dst = o.appendCall(dst)
	}
	return append(dst, '}')
}

var itemTypes = [...]string{
	openMessage:  `,"type":"message"`,
	openThought:  `,"type":"reasoning"`,
	openFunction: `,"type":"function_call"`,
	openCustom:   `,"type":"custom_tool_call"`,
}

func (o *responseOutput) appendMessage(dst []byte, status string) []byte {
	dst = append(dst, `,"role":"assistant","content":[`...)
	if status != statusInProgress {
		dst = o.appendTextPart(dst)
	}
	return append(dst, ']')
}

// appendThought writes the reasoning as summary, which every client shows, and
// as raw text, for those that send it back.
func (o *responseOutput) appendThought(dst []byte, status string) []byte {
	if status == statusInProgress {
		return append(dst, `,"summary":[]`...)
	}
	dst = append(dst, `,"summary":[`...)
	dst = o.appendSummaryPart(dst)
	dst = append(dst, `],"content":[{"type":"reasoning_text","text":`...)
	dst = appendString(dst, o.body)
	return append(dst, `}]`...)
}

func (o *responseOutput) appendCall(dst []byte) []byte {
	dst = append(dst, `,"call_id":`...)
	dst = appendString(dst, o.callID)
	dst = append(dst, `,"name":`...)
	dst = appendString(dst, o.tool.name)
	if o.tool.namespace != "" {
		dst = append(dst, `,"namespace":`...)
		dst = appendString(dst, o.tool.namespace)
	}
	if o.open == openCustom {
		dst = append(dst, `,"input":`...)
	} else {
		dst = append(dst, `,"arguments":`...)
	}
	return appendString(dst, o.body)
}

func (o *responseOutput) appendTextPart(dst []byte) []byte {
	dst = append(dst, `{"type":"output_text","text":`...)
	dst = appendString(dst, o.body)
	dst = append(dst, `,"annotations":[],"logprobs":[`...)
	dst = append(dst, o.logprobs...)
	return append(dst, `]}`...)
}

func (o *responseOutput) appendSummaryPart(dst []byte) []byte {
	dst = append(dst, `{"type":"summary_text","text":`...)
	return append(appendString(dst, o.body), '}')
}
