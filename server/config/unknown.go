package config

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// unknown is the error for a key that no flag has, with the one that it may
// have been meant to be.
func (c *Config) unknown(key, source string) error {
	shown, near := key, c.nearest(key)
	fromEnv := strings.HasPrefix(source, envPrefix)
	if fromEnv {
		shown = source
	}
	hint := ""
	if near != "" {
		if fromEnv {
			near = variable(near)
		}
		hint = "; is it meant to be " + near + "?"
	}
	if fromEnv {
		return fmt.Errorf("unknown variable %s%s", shown, hint)
	}
	return fmt.Errorf("%s: unknown key %q%s", source, shown, hint)
}

// nearest is the key at most a third of the letters away, or "".
func (c *Config) nearest(key string) string {
	best, bound := "", len(key)/3+1
	c.flags.VisitAll(func(f *pflag.Flag) {
		if d := distance(squeeze(key), squeeze(f.Name)); d < bound {
			best, bound = f.Name, d
		}
	})
	return best
}

// squeeze drops what people get wrong most: dashes, underlines and capitals.
func squeeze(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(s))
}

// distance is how many letters must be put in, taken out or changed.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
