package server

// seam joins the messages of an answer where there is room for one text only.
type seam struct{ spoke, due bool }

// paragraph stands between two messages that become one text.
const paragraph = "\n\n"

// messageEnd notes that the message is over.
func (s *seam) messageEnd() { s.due = s.spoke }

// join puts what belongs before the next piece of text in front of it.
func (s *seam) join(delta []byte) []byte {
	s.spoke = true
	if !s.due {
		return delta
	}
	s.due = false
	return append([]byte(paragraph), delta...)
}
