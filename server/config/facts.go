package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// facts is a list of name=value. Values of one name add up, and commas separate
// values.
type facts struct{ list *[]string }

var _ pflag.SliceValue = (*facts)(nil)

// factType stands for the value in the help, and lets the file have a map.
const factType = "name=value"

func (f *facts) String() string {
	if f.list == nil {
		return ""
	}
	return strings.Join(*f.list, " ")
}

func (f *facts) Set(text string) error { return f.Append(text) }

func (f *facts) Append(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || value == "" {
		return errors.New("want name=value, such as region=eu")
	}
	*f.list = append(*f.list, text)
	return nil
}

func (f *facts) Replace(texts []string) error {
	*f.list = nil
	for _, t := range texts {
		if err := f.Append(t); err != nil {
			return err
		}
	}
	return nil
}

func (f *facts) GetSlice() []string { return *f.list }
func (f *facts) Type() string       { return factType }

// factsOf spells a map of the file; maps within it get dotted names.
func factsOf(prefix string, m map[string]any) []any {
	var out []any
	for _, name := range slices.Sorted(maps.Keys(m)) {
		switch v := m[name].(type) {
		case map[string]any:
			out = append(out, factsOf(prefix+name+".", v)...)
		case []any:
			for _, e := range v {
				out = append(out, fmt.Sprintf("%s%s=%v", prefix, name, e))
			}
		default:
			out = append(out, fmt.Sprintf("%s%s=%v", prefix, name, v))
		}
	}
	return out
}

// Facts are the names of Node with all their values, in the order of their
// first.
func (c *Config) Facts() (names []string, values map[string][]string) {
	values = map[string][]string{}
	for _, text := range c.Node {
		name, list, _ := strings.Cut(text, "=")
		if values[name] == nil {
			names = append(names, name)
		}
		values[name] = append(values[name], strings.Split(list, ",")...)
	}
	return names, values
}
