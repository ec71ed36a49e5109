package server

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestLongTextsTakeTurns: as many long texts as there are places are encoded at
// once, and short ones pass by.
func TestLongTextsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := make(encoders, 1)
		leave := e.enter(longText)
		e.enter(longText - 1)()
		entered := false
		go func() {
			defer e.enter(longText)()
			entered = true
		}()
		synctest.Wait()
		require.False(t, entered)
		leave()
		synctest.Wait()
		require.True(t, entered)
		encoders(nil).enter(longText)()
	})
}
