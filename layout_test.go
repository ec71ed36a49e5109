package main

import (
	"bytes"
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mayImport says which of our own packages a package and everything that it
// imports may come from. The longest prefix that fits a package is its rule;
// a package with none may import all.
var mayImport = map[string][]string{
	"quern/cgo":          {"quern/cgo"},
	"quern/tokenizer":    {"quern/tokenizer"},
	"quern/engine":       {"quern/engine"},
	"quern/engine/llama": {"quern/engine", "quern/cgo"},
	"quern/models":       {"quern/models", "quern/tokenizer"},
	"quern/server":       {"quern/server", "quern/models", "quern/tokenizer", "quern/engine"},
}

// goList prints a line a package of this module, with a template of go list.
func goList(t *testing.T, form string) []string {
	t.Helper()
	// -e: a package that does not build is the compiler's to report.
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-f", form, "./...")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, errs.String())
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func TestImportDirections(t *testing.T) {
	for _, line := range goList(t, `{{.ImportPath}} {{join .Deps " "}}`) {
		fields := strings.Fields(line)
		rule := longestPrefix(fields[0])
		if rule == "" {
			continue
		}
		for _, dep := range fields[1:] {
			if !within(dep, "quern") {
				continue
			}
			allowed := false
			for _, prefix := range mayImport[rule] {
				allowed = allowed || within(dep, prefix) && longestPrefix(dep) == prefix
			}
			require.True(t, allowed, "%s must not depend on %s", fields[0], dep)
		}
	}
}

func longestPrefix(pkg string) string {
	best := ""
	for prefix := range mayImport {
		if within(pkg, prefix) && len(prefix) > len(best) {
			best = prefix
		}
	}
	return best
}

func within(pkg, prefix string) bool {
	return pkg == prefix || strings.HasPrefix(pkg, prefix+"/")
}

func TestOnlyCgoImportsC(t *testing.T) {
	for _, line := range goList(t, `{{.ImportPath}} {{len .CgoFiles}}`) {
		pkg, files, _ := strings.Cut(line, " ")
		if pkg != "quern/cgo" {
			require.Equal(t, "0", files, "%s imports C", pkg)
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, line := range goList(t, `{{.ImportPath}} {{len .GoFiles}} {{.Doc}}`) {
		fields := strings.Fields(line)
		if fields[1] != "0" {
			require.Greater(t, len(fields), 2, "%s has no package comment", fields[0])
		}
	}
}

// The sources are formatted, and know nothing of the machine they were written on.
func TestSources(t *testing.T) {
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	here, err := os.Getwd()
	require.NoError(t, err)
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if !d.Type().IsRegular() || !isSource(path) {
			return nil
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, own := range []string{home, here} {
			if len(own) < len("/x/y") {
				continue // too short to tell a path from other text
			}
			require.NotContains(t, string(text), own+"/", "%s names a path of this machine", path)
		}
		if strings.HasSuffix(path, ".go") {
			formatted, err := format.Source(text)
			require.NoError(t, err, path)
			require.True(t, bytes.Equal(text, formatted), "%s is not formatted: make fmt", path)
		}
		return nil
	})
	require.NoError(t, err)
}

func isSource(path string) bool {
	switch filepath.Ext(path) {
	case ".go", ".h", ".cpp", ".py", ".md", ".yml", ".yaml", ".mod":
		return true
	}
	return filepath.Base(path) == "Makefile" || path == filepath.Join(".ci", "run")
}
