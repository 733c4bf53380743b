package client_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/internal/orchestrator"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/worker"
	"github.com/pawl-dev/pawl/workflow"
)

// patience is how long tests wait for what must come.
const patience = 60 * time.Second

var quiet = slog.New(slog.DiscardHandler)

// kit is a database with an orchestrator at work, and a client.
type kit struct {
	*testing.T
	ctx    context.Context // ends when patience does
	pool   *pgxpool.Pool
	client *client.Client
}

func newKit(t *testing.T) *kit {
	t.Parallel()
	k := withoutOrchestrator(t)
	k.orchestrate()
	return k
}

func withoutOrchestrator(t *testing.T) *kit {
	k := &kit{T: t, pool: pgtest.DB(t)}
	var cancel context.CancelFunc
	k.ctx, cancel = context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	var err error
	k.client, err = client.New(client.Config{Pool: k.pool, Log: quiet})
	require.NoError(t, err)
	t.Cleanup(k.client.Close)
	return k
}

func (k *kit) orchestrate() {
	k.Helper()
	o, err := orchestrator.Start(k.ctx, orchestrator.Config{DatabaseURL: k.pool.Config().ConnString(), Connections: 4, Logger: quiet})
	require.NoError(k, err)
	k.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(k, o.Stop(ctx))
	})
}

const templates = `
namespace: shop
name: add
version: "1"
input_schema:
  type: object
  required: [a, b]
  properties: {a: {type: integer}, b: {type: integer}}
steps:
  - {name: add, handler: add, queue: shop_queue}
  - {name: double, handler: double, queue: shop_queue, needs: [add]}
---
namespace: shop
name: keyed
version: "1"
identity: {strategy: caller_provided}
steps:
  - {name: add, handler: add, queue: shop_queue}
`

func (k *kit) apply(yaml string) []client.AppliedTemplate {
	k.Helper()
	parsed, err := workflow.ParseTemplates("test.yaml", []byte(yaml))
	require.NoError(k, err)
	applied, err := k.client.ApplyTemplates(k.ctx, parsed...)
	require.NoError(k, err)
	return applied
}

type sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

// work starts a worker; gate, when it is not nil, holds the handlers back until it is closed.
func (k *kit) work(gate <-chan struct{}) {
	k.Helper()
	w, err := worker.New(worker.Config{Pool: k.pool, Queues: []worker.Queue{{Name: "shop_queue"}}, Log: quiet})
	require.NoError(k, err)
	worker.Handle(w, "add", func(ctx context.Context, step worker.Step[sum]) (int, error) {
		if gate != nil {
			select {
			case <-gate:
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		}
		return step.Input.A + step.Input.B, nil
	})
	worker.Handle(w, "double", func(_ context.Context, step worker.Step[sum]) (n int, err error) {
		err = step.Dependency("add", &n)
		return 2 * n, err
	})
	worker.Handle(w, "refuse", func(context.Context, worker.Step[sum]) (int, error) {
		return 0, worker.Rejected(worker.Error{Type: "fraud", Err: context.Canceled})
	})
	require.NoError(k, w.Start(k.ctx))
	k.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(k, w.Stop(ctx))
	})
}
