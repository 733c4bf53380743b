package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
)

var quiet = slog.New(slog.DiscardHandler)

// breaking gives the URL of a way to the database that breaks the first connections: at once, or after the first answer.
func breaking(t *testing.T, target string, first int32, afterAnAnswer bool) (string, *atomic.Int32) {
	t.Helper()
	database, err := url.Parse(target)
	require.NoError(t, err)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	var seen atomic.Int32
	server := database.Host
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			broken := seen.Add(1) <= first
			if broken && !afterAnAnswer {
				_ = client.Close()
				continue
			}
			go func() {
				defer client.Close()
				to, err := new(net.Dialer).DialContext(context.Background(), "tcp", server)
				if err != nil {
					return
				}
				defer to.Close()
				go func() { _, _ = io.Copy(to, client); _ = to.Close() }()
				if broken {
					_, _ = io.CopyN(client, to, 1)
					return
				}
				_, _ = io.Copy(client, to)
			}()
		}
	}()
	database.Host = listener.Addr().String()
	return database.String(), &seen
}

func connect(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return fmt.Errorf("connecting: %w", err)
		}
		defer func() { _ = conn.Close(ctx) }()
		return conn.Ping(ctx)
	}
}

func TestAStartIsTriedUntilTheDatabaseCanBeReached(t *testing.T) {
	t.Parallel()
	for name, afterAnAnswer := range map[string]bool{"refused": false, "broken in the middle": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, seen := breaking(t, pgtest.URL(t), 2, afterAnAnswer)
			require.NoError(t, Await(t.Context(), time.Minute, quiet, connect(url)))
			require.EqualValues(t, 3, seen.Load())
		})
	}
}

func TestAStartIsGivenUpAfterItsTime(t *testing.T) {
	t.Parallel()
	err := Await(t.Context(), 300*time.Millisecond, quiet, connect("postgres://127.0.0.1:1/none"))
	require.ErrorContains(t, err, "gave up after trying for 300ms")
	require.ErrorContains(t, err, "--connect-wait")
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	require.Error(t, Await(ctx, time.Hour, quiet, func(ctx context.Context) error {
		tries++
		cancel()
		return connect("postgres://127.0.0.1:1/none")(ctx)
	}))
	require.Equal(t, 1, tries, "who is told to stop tries no more")
}

func TestWhatTryingAgainDoesNotCureEndsAStartAtOnce(t *testing.T) {
	t.Parallel()
	missing, err := url.Parse(pgtest.URL(t))
	require.NoError(t, err)
	missing.Path = "/there_is_no_such_database"
	for name, start := range map[string]func(context.Context) error{
		"a missing database": connect(missing.String()),
		"a wrong password":   func(context.Context) error { return fmt.Errorf("connecting: %w", &pgconn.PgError{Code: "28P01"}) },
		"missing migrations": func(context.Context) error { return errors.New("run pawl migrate") },
		"a bad URL":          connect("postgres://127.0.0.1:port/none"),
		"a bad address": func(ctx context.Context) error {
			_, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:99999")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			require.Error(t, Await(t.Context(), time.Hour, quiet, func(ctx context.Context) error { tries++; return start(ctx) }))
			require.Equal(t, 1, tries)
		})
	}
	for _, code := range []string{"57P01", "57P02", "57P03", "53300", "08006"} {
		require.True(t, unreachable(fmt.Errorf("starting: %w", &pgconn.PgError{Code: code})), code)
	}
	mixedUp := func(context.Context) error { return &pgconn.PgError{Code: "42P05"} }
	require.ErrorContains(t, Await(t.Context(), time.Hour, quiet, mixedUp), "default_query_exec_mode=exec")
}
