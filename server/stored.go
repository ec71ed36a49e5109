package server

import (
	"errors"
	"slices"

	"quern/server/jsonvalue"
	"quern/server/store"
)

// maxChain bounds the responses that one conversation runs over.
const maxChain = 10_000

// keepResponse stores a response that has ended. One that can't be stored is
// told with store false; that is no reason to lose the answer.
func (s *Server) keepResponse(req *createRequest, out *responseOutput, ex *exchange) {
	if out.res.Error != nil && out.res.Error.Status == statusClientGone {
		return // nobody knows its id
	}
	if err := s.cfg.Store.Put(s.recordOf(req, out, ex)); err != nil {
		s.log.Error("a response could not be stored", "request_id", ex.requestID, "response_id", out.res.ID, "error", err)
		req.echo.Store = false
		out.res.repeat(&req.echo)
	}
}

// recordOf is a response as it is now.
func (s *Server) recordOf(req *createRequest, out *responseOutput, ex *exchange) *store.Record {
	r := &store.Record{
		Owner: ex.owner, ID: out.res.ID, Response: out.res.append(nil), Output: out.res.Output,
		Input: appendInputItems(nil, req.input, s.recallFor(ex)),
	}
	if req.echo.Previous != nil {
		r.Previous = *req.echo.Previous
	}
	return r
}

// storedHistory finds the conversation that a stored response ended; nil where
// nothing is stored. Instructions are not part of it: each request brings its own.
func (s *Server) storedHistory(ex *exchange) history {
	if !s.contract.storing {
		return nil
	}
	return func(id string) ([]inputItem, *requestError) {
		if s.jobs.find(ex.owner, id) != nil {
			return nil, invalid("previous_response_id", codeInvalidValue, "previous_response_id %q is still in progress", clip(id))
		}
		chain, refused := s.chain(ex.owner, id)
		if refused != nil || chain == nil {
			return nil, refused
		}
		var items []inputItem
		for i := range chain {
			turn, refused := conversationOf(s.recallFor(ex), chain[i].Input, chain[i].Output)
			if refused != nil {
				return nil, refused
			}
			items = append(items, turn...)
		}
		return items, nil
	}
}

// conversationOf reads the items of one stored turn.
func conversationOf(find recall, input, output []byte) ([]inputItem, *requestError) {
	doc := slices.Concat([]byte{'['}, input, []byte{']'})
	if len(input) > 0 && len(output) > 0 {
		doc[len(doc)-1] = ','
		doc = append(append(doc, output...), ']')
	} else if len(output) > 0 {
		doc = slices.Concat([]byte{'['}, output, []byte{']'})
	}
	v, err := jsonvalue.Parse(doc, maxDepth+1) // what came nested one level less deep
	if err != nil {
		return nil, internal("a stored response can't be read: " + err.Error())
	}
	f := &fields{contract: contracts[0]}
	items := f.items(v, find)
	if f.err != nil {
		return nil, invalid("previous_response_id", codePreviousResponse, "the conversation that previous_response_id goes on with can't be read again: %s", f.err.Message)
	}
	for i := range items {
		items[i].path, items[i].idPath = "previous_response_id", "previous_response_id"
	}
	return items, nil
}

// chain fetches a response and all that it continues, the first one first; nil
// where the response is not known. The whole chain is in use then, and kept as
// long as its last part.
func (s *Server) chain(owner, last string) ([]store.Record, *requestError) {
	var chain []store.Record
	var ids []string
	for id := last; id != ""; {
		r, err := s.cfg.Store.Get(owner, id)
		switch {
		case errors.Is(err, store.ErrNotFound) && id == last:
			return nil, nil
		case errors.Is(err, store.ErrNotFound):
			return nil, invalid("previous_response_id", codePreviousResponse,
				"previous_response_id %q continues %q, which is no longer stored. Send the whole conversation as input", clip(last), clip(id))
		case err != nil:
			s.log.Error("a stored response can't be fetched", "response_id", id, "error", err)
			return nil, internal("a stored response can't be fetched")
		case len(chain) == maxChain:
			return nil, invalid("previous_response_id", codeTooLarge, "previous_response_id %q is the end of more than %d responses", clip(last), maxChain)
		}
		chain, ids, id = append(chain, r), append(ids, id), r.Previous
	}
	if err := s.cfg.Store.Touch(owner, ids...); err != nil {
		s.log.Error("the last use of a response could not be noted", "response_id", last, "error", err)
	}
	slices.Reverse(chain)
	return chain, nil
}

// parseStored reads JSON that this package has written itself.
func parseStored(doc []byte) jsonvalue.Value {
	v, _ := jsonvalue.Parse(doc, maxDepth+2) // what can't be read is absent
	return v
}
