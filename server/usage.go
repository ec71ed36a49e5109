package server

// usage counts the tokens of one generation.
type usage struct {
	Input     int
	Cached    int // of Input, those whose computation was reused
	Output    int // all that were sampled, the end token included
	Reasoning int // of Output
}

func (u usage) append(dst []byte) []byte {
	dst = append(dst, `{"input_tokens":`...)
	dst = appendInt(dst, u.Input)
	dst = append(dst, `,"input_tokens_details":{"cached_tokens":`...)
	dst = appendInt(dst, u.Cached)
	dst = append(dst, `,"cache_write_tokens":0},"output_tokens":`...)
	dst = appendInt(dst, u.Output)
	dst = append(dst, `,"output_tokens_details":{"reasoning_tokens":`...)
	dst = appendInt(dst, u.Reasoning)
	dst = append(dst, `},"total_tokens":`...)
	return append(appendInt(dst, u.Input+u.Output), '}')
}

// appendChat writes the counts under the names of chat completions.
func (u usage) appendChat(dst []byte) []byte {
	dst = append(dst, `{"prompt_tokens":`...)
	dst = appendInt(dst, u.Input)
	dst = append(dst, `,"completion_tokens":`...)
	dst = appendInt(dst, u.Output)
	dst = append(dst, `,"total_tokens":`...)
	dst = appendInt(dst, u.Input+u.Output)
	dst = append(dst, `,"prompt_tokens_details":{"cached_tokens":`...)
	dst = appendInt(dst, u.Cached)
	dst = append(dst, `},"completion_tokens_details":{"reasoning_tokens":`...)
	dst = appendInt(dst, u.Reasoning)
	return append(dst, `}}`...)
}
