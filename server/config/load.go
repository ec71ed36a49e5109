package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"quern/server/keys"
)

const envPrefix = "QUERN_"

// otherVariables carry the prefix but are read by other parts of the project.
var otherVariables = []string{
	"QUERN_MODELS", // where `make` and the tests keep model files
}

// Load completes the Config after the flags are parsed: it fills in what the
// environment and the file give, checks the key files, and validates the whole.
// The error names every key that is wrong.
func (c *Config) Load(environ []string) error {
	c.sources = map[string]string{}
	// The flags were parsed by a set that shares them, so this one's Visit sees none.
	c.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			c.sources[f.Name] = "--" + f.Name
		}
	})
	if err := errors.Join(c.fill(environ)...); err != nil {
		return err
	}
	if err := c.readKeyFile(); err != nil {
		return err
	}
	c.UBatch = min(c.UBatch, c.Batch)
	return c.Validate()
}

// fill sets the keys that the command line leaves open.
func (c *Config) fill(environ []string) (problems []error) {
	variables, err := c.readEnv(environ)
	if err != nil {
		return []error{err}
	}
	// The file's name is looked up first, since the file comes below it.
	if f := c.flags.Lookup(fileFlag); !f.Changed && variables.Exists(fileFlag) {
		problems = append(problems, c.set(f, variables.Get(fileFlag), variable(fileFlag)))
	}
	path, _ := c.flags.GetString(fileFlag)
	values, err := readFile(path)
	if err != nil {
		return append(problems, err)
	}
	source := map[string]string{}
	for key := range values.Raw() {
		source[key] = path
	}
	if values.Exists(fileFlag) {
		problems = append(problems, fmt.Errorf("%s: a file cannot name another file with %q", path, fileFlag))
	}
	for key := range variables.Raw() {
		source[key] = variable(key)
	}
	if err := values.Merge(variables); err != nil {
		return append(problems, err)
	}
	raw := values.Raw()
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		f := c.flags.Lookup(key)
		switch {
		case f == nil:
			problems = append(problems, c.unknown(key, source[key]))
		case key != fileFlag && !f.Changed:
			problems = append(problems, c.set(f, raw[key], source[key]))
		}
	}
	return problems
}

// set gives a flag the value that a source holds, by the flag's own parser.
func (c *Config) set(f *pflag.Flag, value any, source string) error {
	if m, ok := value.(map[string]any); ok && f.Value.Type() == factType {
		value = factsOf("", m)
	}
	texts, isList, err := textsOf(value)
	if err != nil {
		return fmt.Errorf("%s (from %s): %w", f.Name, source, err)
	}
	c.sources[f.Name] = source
	if list, ok := f.Value.(pflag.SliceValue); ok {
		if err := list.Replace(texts); err != nil {
			return fmt.Errorf("%s (from %s): %w", f.Name, source, err)
		}
		return nil
	}
	if isList {
		return fmt.Errorf("%s (from %s): takes one value, not a list", f.Name, source)
	}
	if err := f.Value.Set(texts[0]); err != nil {
		return fmt.Errorf("%s (from %s): %q: %w", f.Name, source, texts[0], wanted(f, err))
	}
	return nil
}

// wanted replaces the words of strconv by ones for people.
func wanted(f *pflag.Flag, err error) error {
	switch f.Value.Type() {
	case "int":
		return errors.New("want a whole number")
	case "float64":
		return errors.New("want a number")
	case "bool":
		return errors.New("want true or false")
	case "duration":
		return errors.New("want a duration such as 90s, 5m or 1h30m")
	}
	return err
}

// textsOf spells a value of the file as it would stand on the command line.
func textsOf(value any) (texts []string, isList bool, err error) {
	switch v := value.(type) {
	case nil:
		return nil, false, errors.New("has no value")
	case map[string]any:
		return nil, false, errors.New("takes a value, not further keys")
	case []string:
		return v, true, nil
	case []any:
		for _, e := range v {
			t, nested, err := textsOf(e)
			if err != nil || nested {
				return nil, true, errors.New("takes a list of plain values")
			}
			texts = append(texts, t...)
		}
		return texts, true, nil
	default:
		return []string{fmt.Sprint(v)}, false, nil
	}
}

func readFile(path string) (*koanf.Koanf, error) {
	k := koanf.New(".")
	if path == "" {
		return k, nil
	}
	if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
		return nil, fmt.Errorf("%s %s: %w", fileFlag, path, err)
	}
	return k, nil
}

// readEnv takes the variables that begin with the prefix, under their key.
// Lists are separated by commas there.
func (c *Config) readEnv(environ []string) (*koanf.Koanf, error) {
	k := koanf.New(".")
	return k, k.Load(env.Provider("", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			if slices.Contains(otherVariables, name) {
				return "", nil
			}
			key := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, envPrefix)), "_", "-")
			if f := c.flags.Lookup(key); f != nil {
				if _, ok := f.Value.(pflag.SliceValue); ok {
					return key, strings.Split(value, ",")
				}
			}
			return key, value
		},
	}), nil)
}

// variable is the name of the environment variable of a key.
func variable(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

func (c *Config) readKeyFile() error {
	if c.APIKeyFile != "" {
		list, err := keys.ReadPlain(c.APIKeyFile)
		if err != nil {
			return fmt.Errorf("api-key-file: %w", err)
		}
		for i, key := range list {
			if why := Secret(key).check(); why != "" {
				return fmt.Errorf("api-key-file %s: key %d %s", c.APIKeyFile, i+1, why)
			}
		}
	}
	if c.KeysFile != "" {
		if _, err := keys.ReadFile(c.KeysFile); err != nil {
			return fmt.Errorf("keys-file: %w", err)
		}
	}
	return nil
}
