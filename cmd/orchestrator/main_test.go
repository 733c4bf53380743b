package main

import (
	"context"
	"io"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
)

func TestItRunsUntilItIsToldToStop(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"--database-url", url, "--listen", "off", "--log-level", "error", "--idle-poll", "50ms"})
	}()
	awaitOne(t, conn)
	cancel()
	require.Zero(t, <-code)
	var n int
	require.NoError(t, conn.QueryRow(t.Context(), `select count(*) from pawl.processors where stopped_at is null`).Scan(&n))
	require.Zero(t, n)
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want int
	}{
		"help":             {[]string{"--help"}, 0},
		"unknown flag":     {[]string{"--grce", "5s"}, 2},
		"bad value":        {[]string{"--grace", "soon"}, 2},
		"bad level":        {[]string{"--log-level", "loud"}, 2},
		"an argument":      {[]string{"now"}, 2},
		"no such file":     {[]string{"--config", "/nowhere/pawl.toml"}, 2},
		"no database":      {nil, 2},
		"bad database":     {[]string{"--database-url", "postgres://:x:y"}, 2},
		"bad listener":     {[]string{"--database-url", "postgres://127.0.0.1:1/none", "--listener-url", "postgres://:x:y"}, 2},
		"no such database": {[]string{"--database-url", "postgres://127.0.0.1:1/none", "--listen", "off", "--connect-wait", "300ms"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, run(t.Context(), c.args))
		})
	}
}

func TestItStartsWhenTheDatabaseIsThere(t *testing.T) {
	t.Parallel()
	database, err := url.Parse(pgtest.URL(t))
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), database.String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	before, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := database.Host
	database.Host = before.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"--database-url", database.String(), "--listen", "off", "--log-level", "error", "--idle-poll", "50ms"})
	}()
	for range 3 { // nobody answers yet
		client, err := before.Accept()
		require.NoError(t, err)
		require.NoError(t, client.Close())
	}
	go func() {
		for {
			client, err := before.Accept()
			if err != nil {
				return
			}
			to, err := new(net.Dialer).DialContext(context.Background(), "tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(to, client); _ = to.Close() }()
			go func() { _, _ = io.Copy(client, to); _ = client.Close() }()
		}
	}()
	t.Cleanup(func() { _ = before.Close() })
	awaitOne(t, conn)
	cancel()
	require.Zero(t, <-code)
}

// awaitOne waits until one orchestrator works.
func awaitOne(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	require.Eventually(t, func() bool {
		var n int
		return conn.QueryRow(t.Context(), `select count(*) from pawl.processors where stopped_at is null`).Scan(&n) == nil && n == 1
	}, time.Minute, 20*time.Millisecond)
}
