package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"quern/server/keys"
)

// enterKey begins a request of a key; what it returns ends it.
func (s *Server) enterKey(ex *exchange) (func(), *requestError) {
	lease, err := ex.key.Enter(time.Now())
	s.tellLimits(ex)
	if err != nil {
		return nil, limitRefusal(err)
	}
	ex.lease = lease
	return lease.Leave, nil
}

// reserve holds what the request may use against the limits of its key. One that
// does not fit into the window is the engine's to refuse.
func (s *Server) reserve(m *Model, j *job, limit int, ex *exchange) *requestError {
	room := m.Engine.MaxLength() - len(j.tokens)
	if ex.lease == nil || room <= 0 || limit > room {
		return nil
	}
	most := keys.Estimate{Input: len(j.tokens)}
	if !j.task.silent {
		most.Output, most.Asked = cmp.Or(limit, room), j.task.maxOutput
	}
	err := ex.lease.Reserve(most, time.Now())
	s.tellLimits(ex)
	if err != nil {
		return limitRefusal(err)
	}
	return nil
}

// settle counts what the request has used.
func (s *Server) settle(ex *exchange, u usage) {
	if ex.lease == nil {
		return
	}
	if err := ex.lease.Settle(keys.Usage{Input: u.Input, Cached: u.Cached, Output: u.Output}); err != nil {
		s.log.Error("the balance of a key could not be written", "request_id", ex.requestID, "key", ex.key.Name(), "error", err)
	}
}

// limitRefusal maps the errors of a lease. Codex waits as long as the message
// says, for this code.
func limitRefusal(err error) *requestError {
	var limit *keys.LimitError
	var balance *keys.BalanceError
	switch {
	case errors.Is(err, keys.ErrRevoked):
		return errBadKey("the API key is not valid any more")
	case errors.As(err, &limit):
		wait := max(limit.Wait, retryKey)
		return &requestError{
			Status: http.StatusTooManyRequests, Type: typeTooMany, Code: codeRateLimit, RetryAfter: wait,
			Message: fmt.Sprintf("Rate limit reached: %s. Please try again in %s.", limit, seconds(wait)),
		}
	case errors.As(err, &balance):
		return &requestError{
			Status: http.StatusPaymentRequired, Type: "insufficient_balance", Code: "insufficient_quota",
			Message: balance.Error() + ". Send a smaller max_output_tokens or have the balance topped up",
		}
	}
	return internal(err.Error())
}

// retryKey is how long to wait at least, and where only the end of another
// request can help.
const retryKey = time.Second

// seconds spells a time as the messages of OpenAI do, which clients parse.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Round(time.Millisecond).Seconds(), 'f', -1, 64) + "s"
}

// tellLimits sets OpenAI's headers to what is left of the limits a minute of the
// key, and where the contract wants one, what is left without such a limit.
func (s *Server) tellLimits(ex *exchange) {
	if ex.header == nil {
		return // of a background response, whose header is long out
	}
	requests, tokens := ex.key.Rates(time.Now())
	for _, l := range []struct {
		of   string
		rate keys.Rate
	}{{"Requests", requests}, {"Tokens", tokens}} {
		if l.rate.Limit == 0 {
			continue
		}
		ex.header.Set("X-Ratelimit-Limit-"+l.of, strconv.Itoa(l.rate.Limit))
		ex.header.Set("X-Ratelimit-Remaining-"+l.of, strconv.Itoa(l.rate.Remaining))
		ex.header.Set("X-Ratelimit-Reset-"+l.of, l.rate.Reset.Round(time.Millisecond).String())
	}
	if s.contract.tellRemaining && requests.Limit == 0 {
		ex.header.Set("X-Ratelimit-Remaining-Requests", strconv.Itoa(s.places()))
	}
}

// places is how many more requests the node would take now.
func (s *Server) places() int {
	m := s.model.Load()
	if m == nil {
		return 0
	}
	st := m.Engine.Stats()
	return max(0, m.Info.Parallel+m.Info.Queue-st.Running-st.Waiting)
}

// allowedTo says whether a key may use the model.
func (m *Model) allowedTo(key *keys.Holder) bool {
	return key.Allows(append([]string{m.ID}, m.Aliases...)...)
}

// usageByKey tells what the keys of the file have used, by their names.
func (p *page) usageByKey(holders []*keys.Holder) {
	if len(holders) == 0 {
		return
	}
	totals := make([]keys.Totals, len(holders))
	for i, h := range holders {
		totals[i] = h.Totals()
	}
	for _, family := range []struct {
		name, kind, help string
		value            func(keys.Totals) (float64, bool)
	}{
		{"quern:key_requests_total", "counter", "Requests of a key that were let in.", func(t keys.Totals) (float64, bool) { return float64(t.Requests), true }},
		{"quern:key_refused_total", "counter", "Requests of a key that its limits refused.", func(t keys.Totals) (float64, bool) { return float64(t.Refused), true }},
		{"quern:key_prompt_tokens_total", "counter", "Prompt tokens of a key.", func(t keys.Totals) (float64, bool) { return float64(t.Input), true }},
		{"quern:key_cached_tokens_total", "counter", "Of these, those from the prefix cache.", func(t keys.Totals) (float64, bool) { return float64(t.Cached), true }},
		{"quern:key_generation_tokens_total", "counter", "Tokens sampled for a key.", func(t keys.Totals) (float64, bool) { return float64(t.Output), true }},
		{"quern:key_balance_tokens", "gauge", "What is left of the balance of a key.", func(t keys.Totals) (float64, bool) { return float64(t.Balance), t.HasBalance }},
	} {
		p.head(family.name, family.kind, family.help)
		for i, h := range holders {
			if v, ok := family.value(totals[i]); ok {
				p.line(family.name, `,key="`+h.Name()+`"`, v)
			}
		}
	}
}
