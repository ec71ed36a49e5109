package server

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"quern/engine"
)

// stepProfile says where the time of the engine's loop went, since the start.
// Two of them, subtracted, are the profile of what lies between.
type stepProfile struct {
	UptimeS     float64 `json:"uptime_s"`
	Steps       uint64  `json:"steps"`
	FailedSteps uint64  `json:"failed_steps"`
	DecodeRows  uint64  `json:"decode_rows"`  // rows that sampled a token or guessed one
	PrefillRows uint64  `json:"prefill_rows"` // prompt tokens computed
	Seconds     parts   `json:"seconds"`
	Busy        parts   `json:"share_of_busy"` // of all but idle
}

// parts are what an engine's loop does.
type parts struct {
	Decode   float64 `json:"decode"`   // llama.cpp: the model itself
	Sample   float64 `json:"sample"`   // choosing tokens, grammars included
	Schedule float64 `json:"schedule"` // everything in Go
	Idle     float64 `json:"idle"`     // nothing to do
}

func profileOf(s engine.Stats) stepProfile {
	decode, schedule := s.StepSum-s.SampleSum, max(0, s.Uptime-s.IdleSum-s.StepSum)
	p := stepProfile{
		UptimeS: s.Uptime.Seconds(), Steps: s.Steps, FailedSteps: s.FailedSteps,
		DecodeRows: s.DecodeRows, PrefillRows: s.PrefillRows,
		Seconds: parts{decode.Seconds(), s.SampleSum.Seconds(), schedule.Seconds(), s.IdleSum.Seconds()},
	}
	if busy := decode + s.SampleSum + schedule; busy > 0 {
		share := func(d time.Duration) float64 { return float64(d) / float64(busy) }
		p.Busy = parts{Decode: share(decode), Sample: share(s.SampleSum), Schedule: share(schedule)}
	}
	return p
}

// showProfile is GET /debug/steps. It also answers while the node drains.
func (s *Server) showProfile(c *gin.Context) *requestError {
	m := s.model.Load()
	if m == nil {
		return unavailable(codeLoading, "the model is still loading", retryLoading)
	}
	c.JSON(http.StatusOK, profileOf(m.Engine.Stats()))
	return nil
}
