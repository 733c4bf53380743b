package cluster

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/devpg"
	"github.com/pawl-dev/pawl/internal/migrate"
	"github.com/pawl-dev/pawl/internal/pgmqsql"
	"github.com/pawl-dev/pawl/test/faults"
)

// jumpingServer is a migrated Postgres whose clock can be moved; the test is left out where libfaketime is missing.
func jumpingServer(t *testing.T) (url string, clock *faults.Clock) {
	t.Helper()
	clock, err := faults.NewClock(filepath.Join(folder, "clock"))
	if err != nil {
		t.Skip(err)
	}
	server, err := devpg.Start(t.Context(), devpg.Config{Settings: devpg.TestSettings(), InMemory: true, Environment: clock.Environment()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	require.NoError(t, err)
	defer conn.Close(context.Background())
	_, err = migrate.Up(t.Context(), conn, migrate.Config{PGMQ: pgmqsql.Ensure})
	require.NoError(t, err)
	return server.URL("postgres"), clock
}

func TestWhenTheClockOfPostgresJumpsNothingIsLostOrStuck(t *testing.T) {
	t.Parallel()
	url, clock := jumpingServer(t)
	s := set(t, Config{DatabaseURL: url, Orchestrators: 2, Workers: 2, Clock: clock})
	var all []uuid.UUID
	for _, jump := range []time.Duration{2 * time.Minute, -5 * time.Second, 10 * time.Second, -15 * time.Second, time.Hour, -time.Second} {
		all = append(all, request(t, s.Pool, 20, map[string]any{"input": map[string]any{"ms": 300}})...)
		require.Eventually(t, func() bool {
			return count(t, s.Pool, "select count(*) from pgmq.q_fire_queue where read_ct > 0 and vt > clock_timestamp()") > 0
		}, patience, 2*time.Millisecond, "a message is in flight")
		require.NoError(t, clock.Jump(jump))
		all = append(all, request(t, s.Pool, 5, nil)...)
	}
	awaitComplete(t, s, all)
	rest(t, s, nil, nil)

	// Nobody waits for a time that the clock has left: what is sent after a long jump back goes at once.
	require.NoError(t, clock.Jump(-24*time.Hour))
	awaitComplete(t, s, request(t, s.Pool, 10, nil))
	rest(t, s, nil, nil)
}
