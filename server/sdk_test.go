package server

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"github.com/stretchr/testify/require"
)

// sdk is OpenAI's own client, pointed at the node.
func (n *node) sdk() openai.Client {
	return openai.NewClient(option.WithBaseURL(n.http.URL+"/v1"), option.WithAPIKey("x"), option.WithMaxRetries(0))
}

func sdkParams(input string) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: "test-model",
		Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt(input)},
	}
}

func TestSDKCreate(t *testing.T) {
	n := newNode(t, "<think>\nso\n</think>\n\nHello.")
	client := n.sdk()
	r, err := client.Responses.New(context.Background(), sdkParams("hi"))
	require.NoError(t, err)
	require.Equal(t, "Hello.", r.OutputText())
	require.EqualValues(t, "completed", r.Status)
	require.Equal(t, r.Usage.InputTokens+r.Usage.OutputTokens, r.Usage.TotalTokens)
	require.Positive(t, r.Usage.OutputTokensDetails.ReasoningTokens)
	require.Equal(t, "reasoning", r.Output[0].Type)
}

func TestSDKStream(t *testing.T) {
	n := newNode(t, "Hello, wörld.")
	client := n.sdk()
	stream := client.Responses.NewStreaming(context.Background(), sdkParams("hi"))
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
	n := newNode(t, call(`{"city": "Paris"}`))
	client := n.sdk()
	p := sdkParams("weather?")
	p.Tools = []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
		Name: "weather", Description: param.NewOpt("d"), Strict: param.NewOpt(false),
		Parameters: map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}},
	}}}
	r, err := client.Responses.New(context.Background(), p)
	require.NoError(t, err)
	require.Equal(t, "function_call", r.Output[0].Type)
	f := r.Output[0].AsFunctionCall()
	require.JSONEq(t, `{"city":"Paris"}`, f.Arguments)

	n.say("Sunny.")
	p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
		responses.ResponseInputItemParamOfMessage("weather?", responses.EasyInputMessageRoleUser),
		responses.ResponseInputItemParamOfFunctionCall(f.Arguments, f.CallID, f.Name),
		{OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{
			CallID: param.NewOpt(f.CallID), Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: param.NewOpt("sun")},
		}},
	}}
	r, err = client.Responses.New(context.Background(), p)
	require.NoError(t, err)
	require.Equal(t, "Sunny.", r.OutputText())
	require.Contains(t, n.lastPrompt(), "sun")
}

func TestSDKErrors(t *testing.T) {
	n := newNode(t, "hi")
	client := n.sdk()
	p := sdkParams("hi")
	p.Model = "nope"
	_, err := client.Responses.New(context.Background(), p)
	var apiErr *openai.Error
	require.ErrorAs(t, err, &apiErr)
	require.Equal(t, 404, apiErr.StatusCode)
	require.Equal(t, codeModelNotFound, apiErr.Code)
	require.Equal(t, "model", apiErr.Param)

	n.fake.RowError = nil
	models, err := client.Models.List(context.Background())
	require.NoError(t, err)
	require.Equal(t, "test-model", models.Data[0].ID)
}

func TestSDKChat(t *testing.T) {
	n := newNode(t, "Hello.")
	client := n.sdk()
	params := openai.ChatCompletionNewParams{
		Model:         "test-model",
		Messages:      []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief."), openai.UserMessage("hi")},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
		ResponseFormat: openai.ChatCompletionNewParamsResponseFormatUnion{
			OfText: &shared.ResponseFormatTextParam{},
		},
	}
	c, err := client.Chat.Completions.New(context.Background(), params)
	require.NoError(t, err)
	require.Equal(t, "Hello.", c.Choices[0].Message.Content)
	stream := client.Chat.Completions.NewStreaming(context.Background(), params)
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
