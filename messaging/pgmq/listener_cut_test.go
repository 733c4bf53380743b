package pgmq_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// A connection that has died without a word (a firewall forgot it, the host is
// gone) looks like a quiet one. The probe tells them apart.
func TestAConnectionThatDiedSilentlyIsReplaced(t *testing.T) {
	t.Parallel()
	db := testPool(t)
	config := often(db)
	config.ProbeTimeout = 2 * time.Second
	var log lines
	config.Log = slog.New(slog.NewTextHandler(&log, nil))
	var (
		silent atomic.Bool // swallows what the present connections say
		dials  atomic.Int64
	)
	config.Connect = func(ctx context.Context) (*pgx.Conn, error) {
		direct := db.Config().ConnConfig.Copy()
		direct.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			dials.Add(1)
			return silenced(conn, &silent), nil
		}
		return pgx.ConnectConfig(ctx, direct)
	}
	l := listen(t, config)
	wake, cancel := l.Subscribe("a")
	defer cancel()
	settle(t, l, wake)

	before := dials.Load()
	silent.Store(true)
	require.Eventually(t, func() bool { return !l.Proven() }, soon, time.Millisecond)
	silent.Store(false)
	require.Eventually(t, func() bool { return l.Proven() && dials.Load() > before }, soon, time.Millisecond)
	requireWake(t, wake, "of the new connection")
	notify(t, db, "a")
	requireWake(t, wake, "of a")
	require.Contains(t, log.String(), "connecting again")
	require.NotContains(t, log.String(), "pooler", "it has heard: nothing is wrong with how it connects")
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is what was logged so far.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// silenced is a connection whose incoming bytes vanish while silent is set. The
// pipe's end keeps deadlines as a socket does.
func silenced(server net.Conn, silent *atomic.Bool) net.Conn {
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		defer server.Close()
		_, _ = io.Copy(server, far)
	}()
	go func() {
		defer far.Close()
		buffer := make([]byte, 4096)
		for {
			n, err := server.Read(buffer)
			if err != nil {
				return
			}
			if silent.Load() {
				continue
			}
			if _, err := far.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	return near
}
