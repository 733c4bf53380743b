package client_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/workflow"
)

// A role that may not log in for a while may do afterwards what it could before: both are told by the same code.
func TestARoleThatMayNotLogInIsNoneThatMayOnlySend(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	k.apply(free)
	may := func(command string) {
		_, err := k.pool.Exec(k.ctx, fmt.Sprintf(command, k.pool.Config().ConnConfig.Database))
		require.NoError(t, err)
	}
	may(`select pawl.install_roles() -- %s`)
	sender := k.as("grant pawl_producer to $")
	may(`revoke connect on database "%s" from public`)
	_, err := sender.Submit(k.ctx, plain)
	var raised *pgconn.PgError
	require.ErrorAs(t, err, &raised)
	require.Equal(t, "42501", raised.Code)
	may(`grant connect on database "%s" to public`)
	_, err = sender.Submit(k.ctx, plain)
	require.NoError(t, err)
	require.Equal(t, [2]int{1, 0}, k.counted())
}

func TestAPoolerThatMixesUpStatementsIsToldOf(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	k.apply(free)
	config := k.pool.Config()
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(k.ctx, config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	c, err := client.New(client.Config{Pool: pool, Log: quiet})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	id, err := c.Submit(k.ctx, plain)
	require.NoError(t, err)
	for name, do := range map[string]func() error{
		"submit": func() error { _, err := c.Submit(k.ctx, plain); return err },
		"get":    func() error { _, err := c.Get(k.ctx, id); return err },
		"list":   func() error { _, err := c.List(k.ctx, client.Filter{}); return err },
		"steps":  func() error { _, err := c.Steps(k.ctx, id); return err },
		"command": func() error {
			_, err := c.PauseQueue(k.ctx, "shop_queue", anna)
			return err
		},
		"templates": func() error {
			parsed, err := workflow.ParseTemplates("test.yaml", []byte(free))
			require.NoError(t, err)
			_, err = c.ApplyTemplates(k.ctx, parsed...)
			return err
		},
	} {
		pool.Reset() // a connection without statements
		require.NoError(t, do(), name)
		// As if another server's connection came next.
		_, err = pool.Exec(k.ctx, `deallocate all`)
		require.NoError(t, err, name)
		require.ErrorContains(t, do(), "default_query_exec_mode=exec", name)
	}
}

// Waiting ends for both codes of a pooler that mixes statements up: nothing gets on before the setting is changed.
func TestWaitingEndsBehindAPoolerThatMixesUpStatements(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	for _, code := range []string{"26000", "42P05"} {
		c := k.hooked(func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, fmt.Sprintf(`do $$ begin raise exception 'mixed up' using errcode = '%s'; end $$`, code))
			return err
		})
		_, err := c.Wait(k.ctx, messaging.NewRequestID())
		require.ErrorContains(t, err, code)
		require.ErrorContains(t, err, "default_query_exec_mode=exec")
	}
}

// hooked is a client whose pool does something on each new connection.
func (k *kit) hooked(hook func(ctx context.Context, conn *pgx.Conn) error) *client.Client {
	k.Helper()
	config := k.pool.Config()
	config.AfterConnect = hook
	pool, err := pgxpool.NewWithConfig(k.ctx, config)
	require.NoError(k, err)
	k.Cleanup(pool.Close)
	c, err := client.New(client.Config{Pool: pool, Log: quiet, NoListen: true})
	require.NoError(k, err)
	k.Cleanup(c.Close)
	return c
}

func TestAHookThatFailsIsNoMissingRight(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	k.apply(free)
	var fails atomic.Bool
	fails.Store(true)
	c := k.hooked(func(ctx context.Context, conn *pgx.Conn) error {
		if !fails.Load() {
			return nil
		}
		_, err := conn.Exec(ctx, `do $$ begin raise insufficient_privilege; end $$`)
		return err
	})
	_, err := c.Submit(k.ctx, plain)
	require.ErrorContains(t, err, "42501")
	fails.Store(false)
	_, err = c.Submit(k.ctx, plain)
	require.NoError(t, err)
	require.Equal(t, [2]int{1, 0}, k.counted(), "a task at once, no message")
}
