package server

// plainSink gives one message and after it the calls, and leaves reasoning out.
// A call is held back to the end, since text may follow it, and the message that
// it belongs to stands in front of all calls.
type plainSink struct {
	sink
	seam
	calls []heldCall
}

type heldCall struct {
	tool      *tool
	arguments []byte
	ended     bool
	cut       bool
}

var _ sink = (*plainSink)(nil)

func (s *plainSink) thought([]byte) {}
func (s *plainSink) thoughtEnd()    {}
func (s *plainSink) messageEnd()    { s.seam.messageEnd() }

func (s *plainSink) text(delta []byte, logprobs []tokenLogprob) {
	s.sink.text(s.join(delta), logprobs)
}

func (s *plainSink) call(t *tool) { s.calls = append(s.calls, heldCall{tool: t}) }

func (s *plainSink) arguments(delta []byte) {
	c := &s.calls[len(s.calls)-1]
	c.arguments = append(c.arguments, delta...)
}

func (s *plainSink) callEnd(cut bool) {
	c := &s.calls[len(s.calls)-1]
	c.ended, c.cut = true, cut
}

func (s *plainSink) finish(o outcome) {
	for i := range s.calls {
		c := &s.calls[i]
		s.sink.call(c.tool)
		s.sink.arguments(c.arguments)
		if c.ended {
			s.sink.callEnd(c.cut)
		}
	}
	s.sink.finish(o)
}
