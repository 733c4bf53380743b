package worker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/config"
)

// A worker that a program starts without saying more does as the binary without settings.
func TestZeroValuesAreTheDefaultsOfTheSettings(t *testing.T) {
	t.Parallel()
	var settings config.Worker
	require.NoError(t, config.Load(&settings, config.Sources{Env: func(string) string { return "" }}))
	zero := Config{DatabaseURL: "postgres://", Queues: []Queue{{Name: "a_queue"}}}
	require.NoError(t, zero.normalize())
	require.Equal(t, settings.Grace, zero.Grace)
	require.Equal(t, settings.Poll, zero.Poll)
	require.Equal(t, settings.ProvenPoll, zero.ProvenPoll)
	require.Equal(t, settings.Concurrency, zero.Queues[0].Concurrency)
	require.Equal(t, settings.ListenerURL, zero.ListenerURL)
}
