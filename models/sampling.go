package models

import "quern/models/gguf"

// Sampling is how tokens are chosen where a request does not say.
type Sampling struct {
	Temperature   float64
	TopP          float64
	TopK          int // 0: all
	MinP          float64
	RepeatPenalty float64 // 1: off
}

// plain is for a model of which nothing is known. The small MinP drops the long
// tail of a quantized model's distribution, which at temperature 1 would spoil
// one answer in a few.
var plain = Sampling{Temperature: 0.7, TopP: 1, MinP: 0.05, RepeatPenalty: 1}

// small models wander off at the temperatures that suit large ones; above all
// their tool calls come with chatter around them.
const (
	smallParameters  = 1e9
	smallTemperature = 0.2
)

// samplingFor chooses by what the file recommends (general.sampling.*, written
// by its authors), then by size.
func samplingFor(info gguf.Info) Sampling {
	s := plain
	if info.Parameters > 0 && info.Parameters < smallParameters {
		s.Temperature = smallTemperature
	}
	for _, kv := range info.Sampling {
		v, ok := kv.Value.Float()
		if !ok {
			continue
		}
		switch kv.Key {
		case "temp":
			s.Temperature = min(max(v, 0), 2)
		case "top_p":
			s.TopP = min(max(v, 0), 1)
		case "top_k":
			s.TopK = int(max(v, 0))
		case "min_p":
			s.MinP = min(max(v, 0), 1)
		case "penalty_repeat":
			s.RepeatPenalty = max(v, 0)
		}
	}
	return s
}
