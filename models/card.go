package models

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"quern/models/gguf"
	"quern/models/template"
	"quern/models/toolcall"
)

// Card is one model file, described.
type Card struct {
	ID           string // the file's name without its ending
	Path         string
	Info         gguf.Info
	Tensors      []gguf.Tensor
	Template     *template.Template
	Format       toolcall.Format
	FormatReason string
	Sampling     Sampling
}

// Options replace what a file says about itself.
type Options struct {
	TemplateFile string // path of a chat template in place of the file's own
	ToolFormat   string // name of a row of the format table
}

// Read makes the card of a file. It reads the header only.
func Read(path string, o Options) (*Card, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	c := &Card{ID: strings.TrimSuffix(filepath.Base(path), ".gguf"), Path: path, Info: f.Info(), Tensors: f.Tensors}
	c.Sampling = samplingFor(c.Info)
	source, err := templateSource(c.Info, o.TemplateFile)
	if err != nil {
		return nil, err
	}
	rendering := template.Options{
		Name: c.Info.Name, Parameters: c.Info.Parameters,
		BOS: special(c.Info, "bos"), EOS: special(c.Info, "eos"),
		ChatML: speaksChatML(c.Info),
	}
	if o.TemplateFile == "" {
		rendering.ToolUse = named(c.Info, "tool_use")
	}
	if c.Template, err = template.New(source, rendering); err != nil {
		return nil, fmt.Errorf("chat template of %s: %w", path, err)
	}
	return c, c.chooseFormat(o.ToolFormat)
}

// chooseFormat goes by the template, unless the configuration names a format.
func (c *Card) chooseFormat(name string) (err error) {
	if name != "" {
		c.FormatReason = "set by the configuration"
		c.Format, err = toolcall.ByName(name)
		return err
	}
	c.Format, c.FormatReason, err = FormatOf(c.Template)
	return err
}

func templateSource(info gguf.Info, file string) (string, error) {
	if file == "" {
		return info.ChatTemplate, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("chat template: %w", err)
	}
	return string(data), nil
}

func named(info gguf.Info, name string) string {
	for _, t := range info.ChatTemplates {
		if t.Name == name {
			return t.Source
		}
	}
	return ""
}

func special(info gguf.Info, name string) string {
	for _, s := range info.Specials {
		if s.Name == name {
			return s.Text
		}
	}
	return ""
}

// speaksChatML goes by the token that ends a turn: a vocabulary with <|im_end|>
// has its counterpart, too.
func speaksChatML(info gguf.Info) bool {
	for _, s := range info.Specials {
		if s.Text == "<|im_end|>" {
			return true
		}
	}
	return false
}
