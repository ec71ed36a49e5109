package server

// admit says whether this node does the task: it has the model of that name and
// lets the key use it, the task is no larger than it takes, and it is what the
// request wants of a worker.
func (s *Server) admit(m *Model, ex *exchange, name string, t *task) *requestError {
	if s.find(m, name) == nil {
		return s.unknownModel(name)
	}
	if !m.allowedTo(ex.key) {
		return notFound("model", codeModelNotFound, "the model %q is not available to this key", clip(m.ID))
	}
	if refused := s.cfg.Limits.check(t); refused != nil {
		return refused
	}
	return s.meets(m, t.requirements)
}

// find returns the model that a request may call by this name, or nil.
func (s *Server) find(m *Model, name string) *Model {
	if m != nil && (m.named(name) || m.named(s.contract.modelName(name))) {
		return m
	}
	return nil
}
