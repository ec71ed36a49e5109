package config

import (
	"log/slog"

	"github.com/spf13/pflag"
)

// Setting is one key as it is in force.
type Setting struct {
	Key, Value string
	Source     string // a flag, a variable or a file; empty: the default
}

// Settings lists every key in the order of the help. Keys of clients are
// counted, not shown.
func (c *Config) Settings() []Setting {
	var all []Setting
	c.flags.VisitAll(func(f *pflag.Flag) {
		all = append(all, Setting{Key: f.Name, Value: f.Value.String(), Source: c.sources[f.Name]})
	})
	return all
}

// IsSet tells a key that somebody has set from one that is at its default.
func (c *Config) IsSet(key string) bool { return c.sources[key] != "" }

// LogValue makes a Config one group of a log line, all keys in it.
func (c *Config) LogValue() slog.Value {
	settings := c.Settings()
	attrs := make([]slog.Attr, len(settings))
	for i, s := range settings {
		attrs[i] = slog.String(s.Key, s.Value)
	}
	return slog.GroupValue(attrs...)
}
