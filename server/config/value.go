package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// The flag values of our own, beside those that pflag has.
var (
	_ pflag.Value      = (*Size)(nil)
	_ pflag.Value      = autoSize{}
	_ pflag.Value      = (*level)(nil)
	_ pflag.Value      = (*choice)(nil)
	_ pflag.SliceValue = (*secrets)(nil)
)

// Size is a number of bytes.
type Size int64

// The units a Size is written in, the longest names first.
var units = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1},
}

// String is the size as a whole number of the unit that makes it shortest.
func (s *Size) String() string {
	best := strconv.FormatInt(int64(*s), 10) + "B"
	for _, u := range units {
		if *s > 0 && int64(*s)%u.bytes == 0 {
			if t := strconv.FormatInt(int64(*s)/u.bytes, 10) + u.name; len(t) <= len(best) {
				best = t
			}
		}
	}
	return best
}

// Set reads a whole number with a unit, as "64MiB"; without one it is bytes.
func (s *Size) Set(text string) error {
	number, factor := strings.TrimSpace(text), int64(1)
	for _, u := range units {
		if n, ok := cutSuffixFold(number, u.name); ok {
			number, factor = strings.TrimSpace(n), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 {
		return errors.New("want a size such as 64MiB, 500kB or 1048576")
	}
	if n > math.MaxInt64/factor {
		return errors.New("too large")
	}
	*s = Size(n * factor)
	return nil
}

// Type is the word that stands for the value in the help.
func (*Size) Type() string { return "size" }

func cutSuffixFold(s, suffix string) (string, bool) {
	if len(s) < len(suffix) || !strings.EqualFold(s[len(s)-len(suffix):], suffix) {
		return s, false
	}
	return s[:len(s)-len(suffix)], true
}

// AutoSize is a Size that the machine decides.
const AutoSize Size = -1

// autoSize is a Size or the word auto.
type autoSize struct{ *Size }

func (a autoSize) String() string {
	if a.Size == nil {
		return ""
	}
	if *a.Size == AutoSize {
		return "auto"
	}
	return a.Size.String()
}

func (a autoSize) Set(text string) error {
	if text == "auto" {
		*a.Size = AutoSize
		return nil
	}
	if err := a.Size.Set(text); err != nil {
		return fmt.Errorf("%w, or auto", err)
	}
	return nil
}

// choice is one of a few words.
type choice struct {
	value   *string
	allowed []string
}

func newChoice(p *string, value string, allowed ...string) *choice {
	*p = value
	return &choice{value: p, allowed: allowed}
}

func (c *choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

func (c *choice) Set(text string) error {
	if !slices.Contains(c.allowed, text) {
		return fmt.Errorf("want %s", oneOf(c.allowed))
	}
	*c.value = text
	return nil
}

func (c *choice) Type() string { return strings.Join(c.allowed, "|") }

func oneOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// level is a log level by its name.
type level struct{ *slog.Level }

func (l level) String() string {
	if l.Level == nil {
		return ""
	}
	return strings.ToLower(l.Level.String())
}

func (l level) Set(text string) error {
	if err := l.UnmarshalText([]byte(text)); err != nil {
		return errors.New("want debug, info, warn or error")
	}
	return nil
}

func (level) Type() string { return "debug|info|warn|error" }

// secrets is a list that never shows what it holds.
type secrets struct{ list *[]Secret }

func (s secrets) String() string {
	if s.list == nil || len(*s.list) == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", len(*s.list), redacted)
}

// Set takes any text: pflag puts a refused value into its error, and a key must
// not end up there. Validate judges the keys.
func (s secrets) Set(text string) error { return s.Append(text) }

func (s secrets) Append(text string) error {
	*s.list = append(*s.list, Secret(text))
	return nil
}

func (s secrets) Replace(texts []string) error {
	*s.list = nil
	for _, t := range texts {
		*s.list = append(*s.list, Secret(t))
	}
	return nil
}

func (s secrets) GetSlice() []string {
	shown := make([]string, len(*s.list))
	for i := range shown {
		shown[i] = redacted
	}
	return shown
}

func (secrets) Type() string { return "key" }
