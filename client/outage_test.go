package client_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/messaging"
)

var errDown = errors.New("the server is down")

// outage is a client whose database can be taken away.
type outage struct {
	*client.Client
	pool *pgxpool.Pool
	down atomic.Int32 // how many attempts to connect will fail
	met  atomic.Int32 // how many did
	log  lines
}

func (k *kit) outage() *outage {
	k.Helper()
	o := new(outage)
	config := k.pool.Config()
	config.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
		if o.down.Add(-1) < 0 {
			return nil
		}
		o.met.Add(1)
		return errDown
	}
	var err error
	o.pool, err = pgxpool.NewWithConfig(k.ctx, config)
	require.NoError(k, err)
	o.Client, err = client.New(client.Config{Pool: o.pool, NoListen: true, Log: slog.New(&o.log)})
	require.NoError(k, err)
	k.Cleanup(func() { o.Close(); o.pool.Close() })
	return o
}

// begin ends all connections, and lets the next attempts fail.
func (o *outage) begin(attempts int32) {
	o.down.Store(attempts)
	o.pool.Reset()
}

// lines are the messages of a log from Info on.
type lines struct {
	mu   sync.Mutex
	said []string
}

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *lines) WithGroup(string) slog.Handler                    { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, r.Message)
	return nil
}

func TestASubmitOutlastsARestart(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	k.apply(free)
	o := k.outage()
	_, err := o.Submit(k.ctx, plain)
	require.NoError(t, err)
	o.begin(4)
	_, err = o.Submit(k.ctx, plain)
	require.NoError(t, err)
	require.EqualValues(t, 4, o.met.Load())
	require.Equal(t, [2]int{2, 0}, k.counted())

	o.begin(1000)
	ctx, cancel := context.WithTimeout(k.ctx, 50*time.Millisecond)
	defer cancel()
	_, err = o.Submit(ctx, plain)
	require.Error(t, err)
	require.Less(t, o.met.Load(), int32(10), "it ends with its context")
	o.Close()
	_, err = o.Submit(k.ctx, plain)
	require.ErrorIs(t, err, client.ErrClosed)
	require.Less(t, o.met.Load(), int32(10), "it ends with the client")
}

func TestADatabaseThatNeverAnsweredIsToldOfSoon(t *testing.T) {
	t.Parallel()
	o := withoutOrchestrator(t).outage()
	o.begin(1000)
	_, err := o.Submit(t.Context(), plain)
	require.ErrorIs(t, err, errDown)
	require.EqualValues(t, 3, o.met.Load())
}

func TestWaitingTellsOfAnOutageAndOutlastsIt(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	k.apply(free)
	id, err := k.client.Submit(k.ctx, plain)
	require.NoError(t, err)
	_, err = k.client.Cancel(k.ctx, id, anna)
	require.NoError(t, err)
	o := k.outage()
	o.begin(4)
	task, err := o.Wait(k.ctx, id)
	require.NoError(t, err)
	require.Equal(t, id, task.ID)
	o.Close() // the recovery is told after the answer
	require.Equal(t, []string{"waiting for tasks: the database cannot be asked, trying again", "waiting for tasks: the database answers again"}, o.log.said)
}

// A client that was away for longer than a task is kept.
func TestWaitingEndsWhenTheTaskIsGone(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	k.apply(free)
	request := plain
	request.ID = messaging.NewRequestID()
	told := make(chan error, 1)
	go func() {
		_, err := k.client.SubmitAndWait(k.ctx, request)
		told <- err
	}()
	require.Eventually(t, func() bool { return k.counted() == [2]int{1, 0} }, patience, 10*time.Millisecond)
	require.NoError(t, pgx.BeginFunc(k.ctx, k.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(k.ctx, `with steps as (delete from pawl.steps where task_id = $1) delete from pawl.tasks where task_id = $1`, request.ID)
		return err
	}))
	require.ErrorIs(t, <-told, client.ErrNotFound)
}

// acquisitions counts how often a pool was asked for a connection.
type acquisitions struct{ n atomic.Int32 }

func (a *acquisitions) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (a *acquisitions) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (a *acquisitions) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	a.n.Add(1)
	return ctx
}
func (a *acquisitions) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {}

func TestAClosedPoolIsToldOfAtOnce(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	k.apply(free)
	asked := new(acquisitions)
	config := k.pool.Config()
	config.ConnConfig.Tracer = asked
	pool, err := pgxpool.NewWithConfig(k.ctx, config)
	require.NoError(t, err)
	c, err := client.New(client.Config{Pool: pool, Log: quiet, NoListen: true})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Submit(k.ctx, plain)
	require.NoError(t, err)
	pool.Close()
	asked.n.Store(0)
	_, err = c.Submit(k.ctx, plain)
	require.ErrorContains(t, err, "closed pool")
	require.EqualValues(t, 1, asked.n.Load())
	_, err = c.Wait(k.ctx, messaging.NewRequestID())
	require.ErrorContains(t, err, "closed pool")
}

func TestWaitingEndsWhereItCanNeverSucceed(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	barred := k.as("alter role $ nologin")
	config := k.pool.Config().ConnConfig
	nowhere, err := client.New(client.Config{DatabaseURL: strings.Replace(config.ConnString(), "/"+config.Database, "/no_such_database", 1), Log: quiet})
	require.NoError(t, err)
	defer nowhere.Close()
	for code, c := range map[string]*client.Client{"28000": barred, "3D000": nowhere} {
		_, err := c.Wait(k.ctx, messaging.NewRequestID())
		var raised *pgconn.PgError
		require.ErrorAs(t, err, &raised)
		require.Equal(t, code, raised.Code)
		_, err = client.Result[int](k.ctx, c, uuid.New())
		require.ErrorContains(t, err, code)
	}
}
