package suite

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// profile is what GET /debug/steps tells: seconds since the start of the server.
// What it says of idle time is not read: a server that is idle does not count.
type profile struct {
	Steps   float64 `json:"steps"`
	Seconds struct {
		Decode   float64 `json:"decode"`
		Sample   float64 `json:"sample"`
		Schedule float64 `json:"schedule"`
	} `json:"seconds"`

	took float64 // seconds of the work
}

// readProfile is false for servers that have none.
func readProfile(ctx context.Context, url string) (p profile, ok bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/debug/steps", http.NoBody)
	if err != nil {
		return p, false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return p, false
	}
	defer res.Body.Close()
	return p, res.StatusCode == http.StatusOK && json.NewDecoder(res.Body).Decode(&p) == nil
}

// add puts what lies between two profiles on top, and how long that was.
func (p *profile) add(before, after profile, took time.Duration) {
	p.Steps += after.Steps - before.Steps
	p.Seconds.Decode += after.Seconds.Decode - before.Seconds.Decode
	p.Seconds.Sample += after.Seconds.Sample - before.Seconds.Sample
	p.Seconds.Schedule += after.Seconds.Schedule - before.Seconds.Schedule
	p.took += took.Seconds()
}

func (p *profile) busy() float64 { return p.Seconds.Decode + p.Seconds.Sample + p.Seconds.Schedule }
