package client_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/client"
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
	_, err = c.Submit(k.ctx, plain)
	require.NoError(t, err)
	// As if another server's connection came next.
	_, err = pool.Exec(k.ctx, `deallocate all`)
	require.NoError(t, err)
	_, err = c.Submit(k.ctx, plain)
	require.ErrorContains(t, err, "default_query_exec_mode=exec")
}
