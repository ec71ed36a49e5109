package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"quern/models"
	"quern/models/template"
	"quern/server"
)

// templateModel is a model of which nothing is known but its template. It has
// the marks of the Llama family for the ends of a text.
func templateModel(path string) (*server.Model, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	t, err := template.New(string(src), template.Options{BOS: "<s>", EOS: "</s>"})
	if err != nil {
		return nil, fmt.Errorf("chat template %s: %w", path, err)
	}
	format, _, err := models.FormatOf(t)
	return &server.Model{Template: t, Format: format}, err
}

func renderTemplate(in io.Reader, out io.Writer, path string) error {
	m, err := templateModel(path)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	prompt, err := m.RenderText(body)
	if err != nil {
		return fmt.Errorf("the request: %w", err)
	}
	_, err = fmt.Fprintln(out, prompt)
	return err
}

// renderLine is a line that quern render writes.
type renderLine struct {
	ID     string  `json:"id"`
	Prompt *string `json:"prompt,omitempty"`
	Status int     `json:"status,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// renderLines answers each line of requests with the prompt that its template
// makes of it.
func renderLines(in io.Reader, out io.Writer, dir string) error {
	lines, e := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	e.SetEscapeHTML(false)
	known := map[string]*server.Model{}
	var missing []string
	for n := 1; ; n++ {
		var c struct {
			ID       string          `json:"id"`
			Template string          `json:"template"`
			Request  json.RawMessage `json:"request"`
		}
		if err := lines.Decode(&c); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("request %d: %w", n, err)
		}
		m := known[c.Template]
		if m == nil {
			var err error
			m, err = templateModel(filepath.Join(dir, c.Template))
			if errors.Is(err, fs.ErrNotExist) {
				missing = append(missing, c.ID)
				continue
			}
			if err != nil {
				return fmt.Errorf("request %d: %w", n, err)
			}
			known[c.Template] = m
		}
		line := renderLine{ID: c.ID}
		if prompt, err := m.RenderText(c.Request); err == nil {
			line.Prompt = &prompt
		} else {
			line.Status, line.Error = server.StatusOf(err), err.Error()
		}
		if err := e.Encode(line); err != nil {
			return fmt.Errorf("write line %d: %w", n, err)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("requests left out, their templates are not in %s: %s", dir, strings.Join(missing, ", "))
	}
	return nil
}
