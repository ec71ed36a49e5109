package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"quern/cgo"
)

// Set by the linker; empty in a build without make or git.
var version, commit, llamaCommit string

const llamaModule = "github.com/ollama/ollama"

// provenance is what this program was built from and for.
type provenance struct {
	Version  string   `json:"version"`
	Commit   string   `json:"commit"`
	Go       string   `json:"go"`
	Platform string   `json:"platform"`
	Engine   string   `json:"engine"` // whose llama.cpp it is: module or current
	Llama    string   `json:"llama_cpp"`
	CPU      string   `json:"cpu"`      // what the C compiler was told to build for
	Features []string `json:"features"` // what it could use there, and this CPU has
	AMX      string   `json:"amx"`      // on, off or none
}

func readProvenance() provenance {
	v := provenance{
		Version: version, Commit: commit,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Engine: cgo.Engine, Llama: cgo.EngineBuild(),
		Features: cgo.CPUFeatures(), AMX: cgo.AMX(),
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			if v.Commit == "" {
				v.Commit = s.Value
			}
		case "CGO_CFLAGS":
			v.CPU = cpuOf(s.Value)
		}
	}
	for _, d := range build.Deps {
		if d.Path == llamaModule {
			v.Llama = strings.TrimSpace(llamaCommit + " (" + d.Path + " " + d.Version + ")")
		}
	}
	if v.Version == "" {
		v.Version = "dev"
	}
	return v
}

// cpuOf finds the processor's name in the flags of the C compiler.
func cpuOf(flags string) string {
	for f := range strings.FieldsSeq(flags) {
		for _, prefix := range []string{"-march=", "-mcpu="} {
			if name, ok := strings.CutPrefix(f, prefix); ok {
				return name
			}
		}
	}
	return ""
}

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show what this program was built from and for",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, out := readProvenance(), cmd.OutOrStdout()
			if asJSON {
				return printJSON(out, v)
			}
			fmt.Fprintf(out, "quern %s\n", v.Version)
			for _, line := range [][2]string{
				{"commit", v.Commit}, {"go", v.Go + " " + v.Platform}, {"engine", v.Engine}, {"llama.cpp", v.Llama},
				{"built for", v.CPU}, {"features", strings.Join(v.Features, " ")}, {"amx", v.AMX},
			} {
				if line[1] != "" {
					fmt.Fprintf(out, "%-10s %s\n", line[0], line[1])
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return cmd
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no arguments, and got %q", cmd.CommandPath(), args)}
	}
	return nil
}
