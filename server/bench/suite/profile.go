package suite

import (
	"context"
	"encoding/json"
	"net/http"
)

// profile is what GET /debug/steps tells: seconds since the start of the server.
type profile struct {
	Steps   float64 `json:"steps"`
	Seconds struct {
		Decode   float64 `json:"decode"`
		Sample   float64 `json:"sample"`
		Schedule float64 `json:"schedule"`
		Idle     float64 `json:"idle"`
	} `json:"seconds"`
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

// add puts what lies between two profiles on top.
func (p *profile) add(before, after profile) {
	p.Steps += after.Steps - before.Steps
	p.Seconds.Decode += after.Seconds.Decode - before.Seconds.Decode
	p.Seconds.Sample += after.Seconds.Sample - before.Seconds.Sample
	p.Seconds.Schedule += after.Seconds.Schedule - before.Seconds.Schedule
	p.Seconds.Idle += after.Seconds.Idle - before.Seconds.Idle
}

func (p *profile) total() float64 {
	return p.Seconds.Decode + p.Seconds.Sample + p.Seconds.Schedule + p.Seconds.Idle
}
