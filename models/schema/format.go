package schema

import "sync"

const (
	octet    = `(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])`
	ipv4     = octet + `(\.` + octet + `){3}`
	h16      = `[0-9a-fA-F]{1,4}`
	year     = `[0-9]{4}`
	leapYear = `([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)`
	monthDay = `((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))`
	date     = `(` + year + `-` + monthDay + `|` + leapYear + `-02-29)`
	clock    = `([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])`
	label    = `[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?`
	atom     = `[a-zA-Z0-9!#$%&'*+/=?^_{|}~-]+`
)

// formats are the formats that a grammar enforces, as patterns. They take
// what every checker takes: less than the RFCs allow, never more. All other
// formats are annotations.
var formats = map[string]string{
	"date":      date,
	"time":      clock,
	"date-time": date + `T` + clock,
	"duration":  `P([0-9]{1,4}W|[0-9]{1,4}D(T` + durationTime + `)?|[0-9]{1,4}Y([0-9]{1,2}M([0-9]{1,2}D)?)?(T` + durationTime + `)?|[0-9]{1,4}M([0-9]{1,2}D)?(T` + durationTime + `)?|T` + durationTime + `)`,
	"uuid":      `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`,
	"email":     atom + `(\.` + atom + `)*@` + label + `(\.` + label + `)+`,
	"hostname":  label + `(\.` + label + `)*`,
	"ipv4":      ipv4,
	"ipv6": `((` + h16 + `:){7}` + h16 + `|(` + h16 + `:){1,6}:` + h16 + `|(` + h16 + `:){1,5}(:` + h16 + `){2}|` +
		`(` + h16 + `:){1,4}(:` + h16 + `){3}|:(:` + h16 + `){1,7}|::)`,
	"uri": `[a-zA-Z][a-zA-Z0-9+.-]{0,30}://[a-zA-Z0-9][a-zA-Z0-9.-]*(:[1-9][0-9]{0,3})?(/[a-zA-Z0-9._~!$&'()*+,;=:@/-]*)?` +
		`(\?[a-zA-Z0-9._~!$&'()*+,;=:@/?-]*)?(#[a-zA-Z0-9._~-]*)?`,
}

const durationTime = `([0-9]{1,4}H([0-9]{1,2}M([0-9]{1,2}S)?)?|[0-9]{1,4}M([0-9]{1,2}S)?|[0-9]{1,4}S)`

// compiledFormats makes each automaton once.
var compiledFormats sync.Map

// formatAutomaton returns nil for a format that is only an annotation. The
// automaton is shared and must not be changed.
func formatAutomaton(name string) *dfa {
	pattern, ok := formats[name]
	if !ok {
		return nil
	}
	if d, ok := compiledFormats.Load(name); ok {
		return d.(*dfa)
	}
	d, err := compilePattern("^(" + pattern + ")$")
	if err != nil {
		return nil // excluded by a test over the table
	}
	reduced, _ := d.reduce()
	compiledFormats.Store(name, reduced)
	return reduced
}
