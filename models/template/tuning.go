package template

import "strings"

// tuning is what a model needs beyond its own template.
type tuning struct {
	// afterResults follows anchor once the results of a run of tools are
	// written. It stands behind every run, not only the last, so that a later
	// turn's prompt begins with the earlier one.
	afterResults string
	anchor       string
}

// tunings are keyed by what identifies a model: its template, its name and its
// size.
var tunings = []struct {
	fingerprint   string
	name          string // part of the model's name, in lower case
	maxParameters uint64
	tuning
}{
	{
		// Qwen2.5-Coder-0.5B-Instruct repeats the call when it sees a result,
		// unless it is told what to do with it.
		fingerprint: "55b2f4a26ac9ee71", name: "coder", maxParameters: 1e9,
		tuning: tuning{anchor: "</tool_response>", afterResults: "\nAnswer in plain words using this result."},
	},
}

func tuningFor(fingerprint string, o Options) tuning {
	for _, t := range tunings {
		if t.fingerprint == fingerprint && o.Parameters > 0 && o.Parameters <= t.maxParameters &&
			strings.Contains(strings.ToLower(o.Name), t.name) {
			return t.tuning
		}
	}
	return tuning{}
}
