package suite

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Quern is a program of ours, with further flags of its serve.
func Quern(name, path string, log io.Writer, flags ...string) Peer {
	return Peer{Name: name, Start: func(ctx context.Context, s Setup) (*Server, error) {
		addr, err := freeAddr(ctx)
		if err != nil {
			return nil, err
		}
		args := []string{
			"serve", s.Model, "--addr", addr, "--threads", strconv.Itoa(s.Threads),
			"--parallel", strconv.Itoa(s.Slots), "--ctx-size", strconv.Itoa(s.Cells), "--log-level", "warn",
		}
		if s.CacheDir != "" {
			args = append(args, "--cache-dir", s.CacheDir)
		}
		return process{path: path, args: append(args, flags...), ready: "/health", log: log}.start(ctx, addr)
	}}
}

// LlamaServer is the server of llama.cpp. It divides its cells among its places.
func LlamaServer(path string, log io.Writer) Peer {
	return Peer{Name: "llama-server", Start: func(ctx context.Context, s Setup) (*Server, error) {
		addr, err := freeAddr(ctx)
		if err != nil {
			return nil, err
		}
		host, port, _ := strings.Cut(addr, ":")
		return process{path: path, args: []string{
			"-m", s.Model, "--jinja", "--host", host, "--port", port, "-t", strconv.Itoa(s.Threads),
			"-np", strconv.Itoa(s.Slots), "-c", strconv.Itoa(s.Cells), "--no-ui",
		}, ready: "/health", log: log}.start(ctx, addr)
	}}
}

// Ollama is a program that is started, with its models below dir. It gives each
// place a context of its own.
func Ollama(path, dir string, log io.Writer) Peer {
	return Peer{Name: "Ollama", Start: func(ctx context.Context, s Setup) (*Server, error) {
		addr, err := freeAddr(ctx)
		if err != nil {
			return nil, err
		}
		env := []string{
			"HOME=" + dir, "OLLAMA_HOST=" + addr, "OLLAMA_MODELS=" + filepath.Join(dir, "models"), "OLLAMA_KEEP_ALIVE=-1",
			"OLLAMA_NUM_PARALLEL=" + strconv.Itoa(s.Slots), "OLLAMA_CONTEXT_LENGTH=" + strconv.Itoa(s.Cells/s.Slots),
		}
		server, err := process{path: path, args: []string{"serve"}, env: env, ready: "/api/version", log: log}.start(ctx, addr)
		if err != nil {
			return nil, err
		}
		if err := createOllama(ctx, path, dir, env, s, log); err != nil {
			_ = server.Stop()
			return nil, err
		}
		return server, nil
	}}
}

// createOllama makes the file known to a server that runs.
func createOllama(ctx context.Context, path, dir string, env []string, s Setup, log io.Writer) error {
	model, err := filepath.Abs(s.Model)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "Modelfile")
	text := fmt.Sprintf("FROM %s\nPARAMETER num_thread %d\n", model, s.Threads)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, "create", "measured", "-f", file)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("make the model known to it: %w", err)
	}
	return nil
}

// At is a server that runs already, whatever its settings are.
func At(name, url string) Peer {
	return Peer{Name: name, Start: func(context.Context, Setup) (*Server, error) {
		return &Server{URL: strings.TrimSuffix(url, "/"), Shared: true, Stop: func() error { return nil }}, nil
	}}
}
