package sdktest

import (
	"context"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"
)

func TestSDKCustomTool(t *testing.T) {
	n := newNode(t, `<tool_call>{"name": "note", "arguments": {"input": "a\nb"}}</tool_call>`)
	p := sdkParams("take a note")
	p.Tools = []responses.ToolUnionParam{{OfCustom: &responses.CustomToolParam{Name: "note"}}}
	stream := n.client.Responses.NewStreaming(context.Background(), p)
	var input strings.Builder
	var final responses.Response
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case responses.ResponseCustomToolCallInputDeltaEvent:
			input.WriteString(e.Delta)
		case responses.ResponseCompletedEvent:
			final = e.Response
		}
	}
	require.NoError(t, stream.Err())
	require.Equal(t, "a\nb", input.String())
	require.Equal(t, "a\nb", final.Output[0].AsCustomToolCall().Input)
}

func TestSDKLogprobs(t *testing.T) {
	n := newNode(t, "Hello.")
	p := sdkParams("hi")
	p.TopLogprobs = param.NewOpt[int64](2)
	p.Include = []responses.ResponseIncludable{responses.ResponseIncludableMessageOutputTextLogprobs}
	r, err := n.client.Responses.New(context.Background(), p)
	require.NoError(t, err)
	var joined strings.Builder
	for _, token := range r.Output[0].AsMessage().Content[0].AsOutputText().Logprobs {
		require.Len(t, token.TopLogprobs, 2)
		joined.WriteString(token.Token)
	}
	require.Equal(t, r.OutputText(), joined.String())
}

func TestSDKCompletions(t *testing.T) {
	n := newNode(t, "three, four")
	p := openai.CompletionNewParams{
		Model: "test-model", MaxTokens: param.NewOpt[int64](50), Logprobs: param.NewOpt[int64](1),
		Prompt: openai.CompletionNewParamsPromptUnion{OfString: param.NewOpt("one, two, ")},
	}
	c, err := n.client.Completions.New(context.Background(), p)
	require.NoError(t, err)
	require.Equal(t, "three, four", c.Choices[0].Text)
	require.Equal(t, c.Choices[0].Text, strings.Join(c.Choices[0].Logprobs.Tokens, ""))
	require.Equal(t, openai.CompletionChoiceFinishReasonStop, c.Choices[0].FinishReason)
	stream := n.client.Completions.NewStreaming(context.Background(), p)
	var text strings.Builder
	for stream.Next() {
		text.WriteString(stream.Current().Choices[0].Text)
	}
	require.NoError(t, stream.Err())
	require.Equal(t, c.Choices[0].Text, text.String())

	p.N = param.NewOpt[int64](2)
	_, err = n.client.Completions.New(context.Background(), p)
	var refused *openai.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "n", refused.Param)
}
