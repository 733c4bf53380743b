package client_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/messaging"
)

func TestWaitingEndsWithItsContextAndWithTheClient(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	ctx, cancel := context.WithTimeout(k.ctx, 20*time.Millisecond)
	defer cancel()
	_, err := k.client.Wait(ctx, messaging.NewRequestID())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	why := errors.New("the shop closes")
	ctx, cancel = context.WithTimeoutCause(k.ctx, 20*time.Millisecond, why)
	defer cancel()
	_, err = k.client.Wait(ctx, messaging.NewRequestID())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, why)

	looks := &looked{at: make(chan struct{}, 1)}
	config := k.pool.Config()
	config.ConnConfig.Tracer = looks
	pool, err := pgxpool.NewWithConfig(k.ctx, config)
	require.NoError(t, err)
	defer pool.Close()
	c, err := client.New(client.Config{Pool: pool, Log: quiet, NoListen: true})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := c.Wait(k.ctx, messaging.NewRequestID())
		ended <- err
	}()
	<-looks.at // it waits
	c.Close()
	require.ErrorIs(t, <-ended, client.ErrClosed)
	c.Close()
	_, err = client.New(client.Config{})
	require.ErrorContains(t, err, "set Pool or DatabaseURL, which is empty: pawl dev prints one")
}

// looked tells of a query.
type looked struct{ at chan struct{} }

func (l *looked) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	select {
	case l.at <- struct{}{}:
	default:
	}
	return ctx
}
func (l *looked) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestAClosedClientSaysSoWhoseverThePoolIs(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	own, err := client.New(client.Config{DatabaseURL: k.pool.Config().ConnString(), Log: quiet})
	require.NoError(t, err)
	for name, c := range map[string]*client.Client{"own pool": own, "caller's pool": k.client} {
		c.Close()
		_, err := c.Submit(k.ctx, plain)
		require.ErrorIs(t, err, client.ErrClosed, name)
		_, err = c.SubmitTx(k.ctx, k.pool, plain)
		require.ErrorIs(t, err, client.ErrClosed, name)
		_, err = c.Get(k.ctx, messaging.NewRequestID())
		require.ErrorIs(t, err, client.ErrClosed, name)
		_, err = c.Wait(k.ctx, messaging.NewRequestID())
		require.ErrorIs(t, err, client.ErrClosed, name)
		_, err = c.PauseQueue(k.ctx, "shop_queue", anna)
		require.ErrorIs(t, err, client.ErrClosed, name)
		_, err = c.ApplyTemplates(k.ctx)
		require.ErrorIs(t, err, client.ErrClosed, name)
	}
}

// The pool breaks its connecting off, and says of a context that it was cancelled: it is not the caller's.
func TestACallThatStillConnectsIsToldOfClose(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never says a word
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, silent.Close()) })
	c, err := client.New(client.Config{DatabaseURL: "postgres://nobody@" + silent.Addr().String() + "/none", Log: quiet})
	require.NoError(t, err)
	submitted, got := make(chan error, 1), make(chan error, 1)
	go func() { _, err := c.Submit(t.Context(), plain); submitted <- err }()
	go func() { _, err := c.Get(t.Context(), messaging.NewRequestID()); got <- err }()
	for range 2 {
		conn, err := silent.Accept()
		require.NoError(t, err)
		defer conn.Close()
	}
	c.Close()
	for _, err := range []error{<-submitted, <-got} {
		require.ErrorIs(t, err, client.ErrClosed)
		require.NotErrorIs(t, err, context.Canceled)
	}
}
