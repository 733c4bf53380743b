package handlers_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/internal/handlers"
	"github.com/pawl-dev/pawl/internal/orchestrator"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/worker"
)

func TestBuiltInHandlersDoWhatTheySay(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pool, quiet := pgtest.DB(t), slog.New(slog.DiscardHandler)
	o, err := orchestrator.Start(ctx, orchestrator.Config{DatabaseURL: pool.Config().ConnString(), Connections: 4, Logger: quiet})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.Stop(context.Background())) })
	c, err := client.New(client.Config{Pool: pool, Log: quiet})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	_, err = c.ConfigureQueue(ctx, "default_queue", client.QueueSettings{}, client.By{Actor: "test", Reason: "test"})
	require.NoError(t, err)
	w, err := worker.New(worker.Config{Pool: pool, Queues: []worker.Queue{{Name: "default_queue"}}, Log: quiet})
	require.NoError(t, err)
	require.NoError(t, handlers.Register(w, handlers.Sets(), nil))
	require.NoError(t, w.Start(ctx))
	t.Cleanup(func() { require.NoError(t, w.Stop(context.Background())) })

	wait := func(handler string, input map[string]any) client.Task {
		task, err := c.SubmitAndWait(ctx, client.Request{Handler: handler, Input: input})
		require.NoError(t, err)
		return task
	}
	require.Equal(t, "completed", wait("noop", nil).Status)
	require.JSONEq(t, `{"a": 1}`, string(wait("echo", map[string]any{"a": 1}).Result))
	require.Equal(t, "completed", wait("sleep", map[string]any{"ms": 1}).Status)
	failed := wait("fail", map[string]any{"type": "no_stock", "message": "none left", "permanent": true})
	require.ErrorContains(t, failed.Decode(nil), "no_stock: none left")
}

func TestUnknownSetsAreErrors(t *testing.T) {
	t.Parallel()
	w, err := worker.New(worker.Config{DatabaseURL: "postgres://localhost", Queues: []worker.Queue{{Name: "a"}}})
	require.NoError(t, err)
	require.ErrorContains(t, handlers.Register(w, handlers.Sets(), []string{"slep"}), `did you mean "sleep"?`)
	require.ErrorContains(t, handlers.Register(w, handlers.Sets(), []string{"noop", "noop"}), "named twice")
}
