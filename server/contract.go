package server

import (
	"net/http"
	"slices"
	"strings"

	"quern/server/jsonvalue"
)

// contract is a profile of the wire contract. Profiles differ in this data
// alone: each field is read at one place, and its zero value is what the open
// profile does there.
type contract struct {
	name   string
	limits Limits // of the node, whatever the profile

	storing bool // the node keeps responses, which the open profile alone can ask for

	// Top-level fields of POST /v1/responses.
	required []string                  // must be there
	refused  []string                  // must not, whatever their value
	inert    map[string]jsonvalue.Kind // taken, of this type, and without effect
	provider bool                      // requirements of a worker are read

	// What stands in the fields.
	ignoredItems     []string // types of input items that are passed over
	ignoredParts     []string // the same of content parts
	functionsOnly    bool     // tools of other types are not offered
	refuseOtherTools bool     // and are refused by name
	choices          []string // kinds of tool_choice; nil takes all
	noChoices        []string // those that are understood and not implemented: 422
	maxStops         int      // stop strings of a request
	topPAboveZero    bool

	// vendorPrefix lets a model be named vendor/model, whatever the vendor.
	vendorPrefix bool
	// plainOutput gives one message and then the calls, and no reasoning.
	plainOutput bool
	// noSockets has no WebSocket, over which a field without effect or a refused
	// stream would pass unseen.
	noSockets bool
	// cutEvent ends the stream of a response that was cut by its limit.
	cutEvent string

	// Refusals.
	overload     int         // status of one for want of a place
	overloadCode string      // and its code
	statuses     map[int]int // by the status of the open profile
	hideWaiting  bool        // a 429 has no Retry-After
	errorCode    bool        // the body has errorCode and status
	// tellRemaining puts X-RateLimit-Remaining-Requests on every success.
	tellRemaining bool
}

// contracts are the profiles, by the names that --contract takes.
var contracts = []*contract{
	{name: "open"},
	{
		// An endpoint of the kind that Codex speaks with, stateless.
		name:     "lenient",
		required: []string{"model", "input"},
		inert: map[string]jsonvalue.Kind{
			"store": jsonvalue.Bool, "previous_response_id": jsonvalue.String, "reasoning": jsonvalue.Object,
			"text": jsonvalue.Object, "prompt_cache_key": jsonvalue.String,
		},
		provider:      true,
		ignoredItems:  []string{"reasoning", "item_reference"},
		ignoredParts:  []string{"input_image", "image_url", "image"},
		functionsOnly: true,
		choices:       []string{choiceAuto, choiceNone, choiceRequired, "function"},
		vendorPrefix:  true,
		plainOutput:   true,
		noSockets:     true,
		cutEvent:      "response.completed",
		overload:      http.StatusTooManyRequests,
	},
	{
		// A subset that names every field it refuses.
		name:             "strict",
		required:         []string{"model", "input"},
		refused:          []string{"store", "background", "conversation", "previous_response_id", "stream"},
		functionsOnly:    true,
		noSockets:        true,
		refuseOtherTools: true,
		noChoices:        []string{choiceRequired, "function", "custom", "allowed_tools"},
		maxStops:         4,
		topPAboveZero:    true,
		overload:         statusOverloaded,
		overloadCode:     "overloaded",
		statuses:         map[int]int{503: statusOverloaded, 504: 500},
		hideWaiting:      true,
		errorCode:        true,
		tellRemaining:    true,
	},
}

// statusOverloaded is what some services answer while they shed load.
const statusOverloaded = 529

// contractNamed finds a profile; no name is open.
func contractNamed(name string, limits Limits) *contract {
	found := *contracts[0]
	for _, k := range contracts {
		if k.name == name {
			found = *k
		}
	}
	found.limits = limits
	return &found
}

// rules is the profile that a request is read by.
func (f *fields) rules() *contract {
	if f.contract == nil {
		return contracts[0]
	}
	return f.contract
}

// keepTo holds the top level of a body to the profile. What has no effect is
// taken out, so that no reader behind it needs to know.
func (f *fields) keepTo(body jsonvalue.Value, m jsonvalue.Members) jsonvalue.Members {
	k := f.rules()
	for _, name := range k.refused {
		if v := m.Get(name); !v.Empty() {
			f.fail(invalid(name, codeUnsupported, "%s is not supported under the %s contract: leave it out", name, k.name))
		}
	}
	for _, name := range k.required {
		if v := m.Get(name); v.Empty() || name == "model" && string(v.Raw()) == `""` {
			f.missing(body, name)
		}
	}
	if len(k.inert) == 0 {
		return m
	}
	var kept jsonvalue.Members
	for _, v := range m {
		kind, inert := k.inert[v.Key()]
		switch {
		case !inert:
			kept = append(kept, v)
		case !v.Empty() && v.Kind() != kind:
			f.wrongType(v, kind.String())
		case !v.Empty():
			f.pass(v.Key(), "no effect")
		}
	}
	return kept
}

// offers says whether the profile has tools of this type; f is told where it
// refuses them.
func (f *fields) offers(v jsonvalue.Value, kind string) bool {
	k := f.rules()
	if !k.functionsOnly || kind == "function" {
		return true
	}
	if k.refuseOtherTools {
		f.fail(invalid(v.At("type"), codeUnsupported,
			"%s %q is not available under the %s contract, which has function tools only", v.At("type"), clip(kind), k.name))
	}
	return false
}

// choosable holds a kind of tool_choice to the profile. A kind that is
// understood and not implemented becomes a refusal only if nothing else is wrong.
func (f *fields) choosable(v jsonvalue.Value, kind string) {
	k := f.rules()
	switch {
	case slices.Contains(k.noChoices, kind):
		f.unimplemented = invalid("tool_choice", "not_implemented",
			`tool_choice %q is not implemented under the %s contract: send "auto" or "none"`, kind, k.name)
		f.unimplemented.Status = 422
	case k.choices != nil && !slices.Contains(k.choices, kind):
		f.fail(invalid(v.Path(), codeUnsupported, "%s %q is not available under the %s contract", v.Path(), clip(kind), k.name))
	}
}

// modelName is the name to look a model up by, given that a model of the whole
// name does not exist.
func (k *contract) modelName(name string) string {
	if _, rest, _ := strings.Cut(name, "/"); rest != "" && k.vendorPrefix {
		return rest
	}
	return name // an empty rest would be any model
}
