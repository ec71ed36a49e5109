package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client speaks to one server.
type Client struct {
	URL   string // up to and including /v1
	Model string
	Key   string
	HTTP  *http.Client
}

// NewClient takes the address of a server with or without /v1.
func NewClient(address, model, key string) (*Client, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("server address: %w", err)
	}
	if u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("server address %q is no http or https URL", address)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	if !strings.HasSuffix(u.Path, "/v1") {
		u.Path += "/v1"
	}
	// A connection of its own for each request: some servers close idle ones
	// under the client, which would count as failed requests.
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, Proxy: http.ProxyFromEnvironment}
	return &Client{URL: u.String(), Model: model, Key: key, HTTP: &http.Client{Transport: transport}}, nil
}

// FindModel asks the server for its first model if none is set.
func (c *Client) FindModel(ctx context.Context) error {
	if c.Model != "" {
		return nil
	}
	req, err := c.request(ctx, http.MethodGet, "/models", nil)
	if err != nil {
		return err
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("ask for the models: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ask for the models: %s: %s", resp.Status, excerpt(resp.Body))
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return fmt.Errorf("read the models: %w", err)
	}
	if len(list.Data) == 0 {
		return errors.New("the server names no model")
	}
	c.Model = list.Data[0].ID
	return nil
}

func (c *Client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, body)
	if err != nil {
		return nil, err
	}
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// Message is one item of a conversation.
type Message struct {
	Type    string `json:"type"`
	Role    string `json:"role"`
	Content string `json:"content"`
}

type payload struct {
	Model       string    `json:"model"`
	Input       []Message `json:"input"`
	Stream      bool      `json:"stream"`
	MaxTokens   int       `json:"max_output_tokens"`
	Temperature float64   `json:"temperature"`
}

// Send sends a conversation and reads the answer to its end.
func (c *Client) Send(ctx context.Context, input []Message, maxTokens int, temperature float64) Sample {
	return c.send(ctx, input, maxTokens, temperature, func() {})
}

// send calls onDelta at each piece of output.
func (c *Client) send(ctx context.Context, input []Message, maxTokens int, temperature float64, onDelta func()) (s Sample) {
	body, err := json.Marshal(payload{c.Model, input, true, maxTokens, temperature})
	if err != nil {
		return Sample{Err: &Failure{Kind: "request", Message: err.Error()}}
	}
	req, err := c.request(ctx, http.MethodPost, "/responses", bytes.NewReader(body))
	if err != nil {
		return Sample{Err: &Failure{Kind: "request", Message: err.Error()}}
	}
	s.Start = time.Now()
	defer func() { s.End = time.Now() }()
	resp, err := c.HTTP.Do(req)
	if err != nil {
		s.Err = transportFailure(ctx, err)
		return s
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.Err = &Failure{Kind: fmt.Sprintf("HTTP %d", resp.StatusCode), Message: excerpt(resp.Body)}
		return s
	}
	if err := s.read(resp.Body, onDelta); err != nil {
		s.Err = transportFailure(ctx, err)
	}
	return s
}

// Failure says why a request gave no answer. Requests are counted by Kind.
type Failure struct {
	Kind    string
	Message string
}

func (f *Failure) Error() string { return f.Kind + ": " + f.Message }

func transportFailure(ctx context.Context, err error) *Failure {
	f, ok := errors.AsType[*Failure](err)
	switch {
	case ok:
		return f
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &Failure{Kind: "timeout", Message: err.Error()}
	case ctx.Err() != nil:
		return &Failure{Kind: "interrupted", Message: err.Error()}
	}
	return &Failure{Kind: "connection", Message: err.Error()}
}

func excerpt(r io.Reader) string {
	b, err := io.ReadAll(io.LimitReader(r, 300))
	if err != nil && len(b) == 0 {
		return err.Error()
	}
	return strings.Join(strings.Fields(string(b)), " ")
}
