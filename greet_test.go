package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"quern/server/config"
)

// The command that a node shows at its start must work as it stands.
func TestTheFirstCommandHasAKeyWhereOneIsNeeded(t *testing.T) {
	require.Empty(t, (&node{cfg: &config.Config{}}).keyHeader())
	for _, cfg := range []config.Config{{APIKeys: []config.Secret{"k"}}, {APIKeyFile: "keys"}, {KeysFile: "keys.yaml"}} {
		require.Equal(t, " -H 'Authorization: Bearer KEY'", (&node{cfg: &cfg}).keyHeader())
	}
}
