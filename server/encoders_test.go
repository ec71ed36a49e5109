package server

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestLongTextsTakeTurns: as many long texts as there are places are encoded at
// once, and short ones pass by.
func TestLongTextsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := make(encoders, 1)
		enter := func(e encoders, size int) func() {
			leave, err := e.enter(t.Context(), size)
			require.NoError(t, err)
			return leave
		}
		leave := enter(e, longText)
		enter(e, longText-1)()
		entered := false
		go func() {
			defer enter(e, longText)()
			entered = true
		}()
		synctest.Wait()
		require.False(t, entered)
		gone, cancel := context.WithCancelCause(t.Context())
		cancel(errGivenUp)
		_, err := e.enter(gone, longText)
		require.ErrorIs(t, err, errGivenUp, "who has left takes no turn")
		leave()
		synctest.Wait()
		require.True(t, entered)
		enter(nil, longText)()
	})
}
