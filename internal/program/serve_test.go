package program_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/program"
)

type pinged func() error

func (p pinged) Ping(context.Context) error { return p() }

func TestAProcessSaysWhetherItIsReady(t *testing.T) {
	t.Parallel()
	var down, stopping atomic.Bool
	served := program.Served{Address: "127.0.0.1:0", Stopping: stopping.Load, Registry: prometheus.NewRegistry(),
		Log: slog.New(slog.DiscardHandler), DB: pinged(func() error {
			if down.Load() {
				return errors.New("secret")
			}
			return nil
		})}
	server, err := served.Start(t.Context())
	require.NoError(t, err)
	says := func(status int, body string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+server.Addr()+"/readyz", nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Equal(t, status, response.StatusCode)
		require.JSONEq(t, body, string(text))
	}
	says(http.StatusOK, `{"status": "ready"}`)
	down.Store(true)
	says(http.StatusServiceUnavailable, `{"status": "unavailable", "reason": "the database does not answer"}`)
	stopping.Store(true)
	says(http.StatusServiceUnavailable, `{"status": "stopping"}`)
	server.Stop(t.Context())

	served.Address = "off"
	none, err := served.Start(t.Context())
	require.NoError(t, err)
	require.Empty(t, none.Addr())
	none.Stop(t.Context())
}
