package sdktest

import (
	"context"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"

	"quern/server"
	"quern/server/store"
)

func newStoringNode(t *testing.T, answer string) *node {
	return newNodeWith(t, answer, server.Config{Store: store.Memory(store.Options{})})
}

func TestSDKContinuesFetchesAndDeletes(t *testing.T) {
	n, ctx := newStoringNode(t, "Hello Ada."), context.Background()
	first, err := n.client.Responses.New(ctx, sdkParams("I am Ada."))
	require.NoError(t, err)
	p := sdkParams("Who am I?")
	p.PreviousResponseID = openai.String(first.ID)
	second, err := n.client.Responses.New(ctx, p)
	require.NoError(t, err)
	require.Equal(t, first.ID, second.PreviousResponseID)
	require.Contains(t, n.LastPrompt(), "I am Ada.")

	got, err := n.client.Responses.Get(ctx, second.ID, responses.ResponseGetParams{})
	require.NoError(t, err)
	require.Equal(t, "Hello Ada.", got.OutputText())
	list, err := n.client.Responses.InputItems.List(ctx, second.ID, responses.InputItemListParams{})
	require.NoError(t, err)
	require.Len(t, list.Data, 1)
	require.Equal(t, "Who am I?", list.Data[0].AsMessage().Content[0].Text)

	require.NoError(t, n.client.Responses.Delete(ctx, second.ID))
	_, err = n.client.Responses.Get(ctx, second.ID, responses.ResponseGetParams{})
	var refused *openai.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 404, refused.StatusCode)
}

func TestSDKBackground(t *testing.T) {
	n, ctx := newStoringNode(t, "Done at last."), context.Background()
	p := sdkParams("hi")
	p.Background = openai.Bool(true)
	r, err := n.client.Responses.New(ctx, p)
	require.NoError(t, err)
	require.EqualValues(t, "queued", r.Status)
	require.Eventually(t, func() bool {
		r, err = n.client.Responses.Get(ctx, r.ID, responses.ResponseGetParams{})
		return err == nil && r.Status == responses.ResponseStatusCompleted
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, "Done at last.", r.OutputText())
	r, err = n.client.Responses.Cancel(ctx, r.ID)
	require.NoError(t, err)
	require.EqualValues(t, "completed", r.Status)

	stream := n.client.Responses.NewStreaming(ctx, p)
	require.True(t, stream.Next())
	id := stream.Current().Response.ID
	require.NoError(t, stream.Close())
	again := n.client.Responses.GetStreaming(ctx, id, responses.ResponseGetParams{StartingAfter: openai.Int(0)})
	require.True(t, again.Next(), "%v", again.Err())
	require.EqualValues(t, 1, again.Current().SequenceNumber)
	last := again.Current()
	for again.Next() {
		last = again.Current()
	}
	require.NoError(t, again.Err())
	require.Equal(t, "Done at last.", last.AsResponseCompleted().Response.OutputText())
}
