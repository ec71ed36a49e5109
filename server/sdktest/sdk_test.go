package sdktest

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"github.com/stretchr/testify/require"

	"quern/engine"
	"quern/models/template"
	"quern/models/toolcall"
	"quern/server"
	"quern/server/servertest"
)

// node is a server over a scripted engine, with OpenAI's own client.
type node struct {
	*servertest.Script
	client openai.Client
}

func newNode(t *testing.T, answer string) *node {
	t.Helper()
	return newNodeWith(t, answer, server.Config{})
}

func newNodeWith(t *testing.T, answer string, cfg server.Config) *node {
	t.Helper()
	n := &node{Script: servertest.NewScript(t, answer)}
	eng := engine.New(n.Fake, engine.Config{})
	tmpl, err := template.New(servertest.Template, template.Options{EOS: "<|im_end|>"})
	require.NoError(t, err)
	format, reason := toolcall.ForTemplate(servertest.Template + "<think></think>")
	s := server.New(cfg)
	s.SetModel(&server.Model{
		ID: "test-model", Created: time.Unix(1700000000, 0), ContextLength: eng.MaxLength(),
		Template: tmpl, Format: format, FormatReason: reason, Tokenizer: n.Tokenizer, Engine: eng,
		Defaults: server.Sampling{Temperature: 1, TopP: 1, RepeatPenalty: 1},
	})
	h := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		h.Close()
		require.NoError(t, eng.Close())
	})
	n.client = openai.NewClient(option.WithBaseURL(h.URL+"/v1"), option.WithAPIKey("x"), option.WithMaxRetries(0))
	return n
}

func sdkParams(input string) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: "test-model",
		Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt(input)},
	}
}

func TestSDKCreate(t *testing.T) {
	n := newNode(t, "<think>\nso\n</think>\n\nHello.")
	r, err := n.client.Responses.New(context.Background(), sdkParams("hi"))
	require.NoError(t, err)
	require.Equal(t, "Hello.", r.OutputText())
	require.EqualValues(t, "completed", r.Status)
	require.Equal(t, r.Usage.InputTokens+r.Usage.OutputTokens, r.Usage.TotalTokens)
	require.Positive(t, r.Usage.OutputTokensDetails.ReasoningTokens)
	require.Equal(t, "reasoning", r.Output[0].Type)
}

func TestSDKStream(t *testing.T) {
	n := newNode(t, "Hello, wörld.")
	stream := n.client.Responses.NewStreaming(context.Background(), sdkParams("hi"))
	var text strings.Builder
	var final string
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			text.WriteString(e.Delta)
		case responses.ResponseCompletedEvent:
			final = e.Response.OutputText()
		}
	}
	require.NoError(t, stream.Err())
	require.Equal(t, "Hello, wörld.", text.String())
	require.Equal(t, text.String(), final)
}

func TestSDKToolRoundTrip(t *testing.T) {
	n := newNode(t, `<tool_call>{"name": "weather", "arguments": {"city": "Paris"}}</tool_call>`)
	p := sdkParams("weather?")
	p.Tools = []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
		Name: "weather", Description: param.NewOpt("d"), Strict: param.NewOpt(false),
		Parameters: map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}},
	}}}
	r, err := n.client.Responses.New(context.Background(), p)
	require.NoError(t, err)
	require.Equal(t, "function_call", r.Output[0].Type)
	f := r.Output[0].AsFunctionCall()
	require.JSONEq(t, `{"city":"Paris"}`, f.Arguments)

	n.Say("Sunny.")
	p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
		responses.ResponseInputItemParamOfMessage("weather?", responses.EasyInputMessageRoleUser),
		responses.ResponseInputItemParamOfFunctionCall(f.Arguments, f.CallID, f.Name),
		{OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{
			CallID: param.NewOpt(f.CallID), Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: param.NewOpt("sun")},
		}},
	}}
	r, err = n.client.Responses.New(context.Background(), p)
	require.NoError(t, err)
	require.Equal(t, "Sunny.", r.OutputText())
	require.Contains(t, n.LastPrompt(), "sun")
}

func TestSDKErrors(t *testing.T) {
	n := newNode(t, "hi")
	p := sdkParams("hi")
	p.Model = "nope"
	_, err := n.client.Responses.New(context.Background(), p)
	var apiErr *openai.Error
	require.ErrorAs(t, err, &apiErr)
	require.Equal(t, 404, apiErr.StatusCode)
	require.Equal(t, "model_not_found", apiErr.Code)
	require.Equal(t, "model", apiErr.Param)

	models, err := n.client.Models.List(context.Background())
	require.NoError(t, err)
	require.Equal(t, "test-model", models.Data[0].ID)
}

func TestSDKChat(t *testing.T) {
	n := newNode(t, "Hello.")
	params := openai.ChatCompletionNewParams{
		Model:         "test-model",
		Messages:      []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief."), openai.UserMessage("hi")},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
		ResponseFormat: openai.ChatCompletionNewParamsResponseFormatUnion{
			OfText: &shared.ResponseFormatTextParam{},
		},
	}
	c, err := n.client.Chat.Completions.New(context.Background(), params)
	require.NoError(t, err)
	require.Equal(t, "Hello.", c.Choices[0].Message.Content)
	stream := n.client.Chat.Completions.NewStreaming(context.Background(), params)
	acc := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		require.True(t, acc.AddChunk(stream.Current()))
	}
	require.NoError(t, stream.Err())
	require.Equal(t, "Hello.", acc.Choices[0].Message.Content)
	require.Equal(t, c.Usage.TotalTokens, acc.Usage.TotalTokens)
	raw, err := json.Marshal(c.Usage)
	require.NoError(t, err)
	require.NotEmpty(t, raw)
}
