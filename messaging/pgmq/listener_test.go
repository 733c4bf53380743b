package pgmq_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/messaging/pgmq"
)

// often makes a listener that probes and reconnects quickly.
func often(db *pgxpool.Pool) pgmq.ListenerConfig {
	return pgmq.ListenerConfig{
		Connect: func(ctx context.Context) (*pgx.Conn, error) {
			return pgx.ConnectConfig(ctx, db.Config().ConnConfig.Copy())
		},
		Probe:      db,
		Log:        slog.New(slog.NewTextHandler(io.Discard, nil)),
		ProbeEvery: 50 * time.Millisecond, ProbeTimeout: soon,
		RetryMin: time.Millisecond, RetryMax: 20 * time.Millisecond,
	}
}

func listen(t *testing.T, config pgmq.ListenerConfig) *pgmq.Listener {
	t.Helper()
	l, err := pgmq.NewListener(config)
	require.NoError(t, err)
	require.NoError(t, l.Start(t.Context()))
	t.Cleanup(l.Stop)
	return l
}

func requireWake(t *testing.T, wake <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-wake:
	case <-time.After(soon):
		require.Fail(t, "no wake-up", what)
	}
}

func notify(t *testing.T, db pgmq.DB, channel string) {
	t.Helper()
	_, err := db.Exec(t.Context(), "select pg_notify($1::text, '')", channel)
	require.NoError(t, err)
}

// settle returns when the listener listens to what it is subscribed to now, with
// the wake-ups of that taken.
func settle(t *testing.T, l *pgmq.Listener, wakes ...<-chan struct{}) {
	t.Helper()
	require.Eventually(t, l.Proven, soon, time.Millisecond)
	for _, wake := range wakes {
		requireWake(t, wake, "of the first LISTEN")
	}
}

func TestTheListenerWakesTheChannelsSubscribers(t *testing.T) {
	t.Parallel()
	db := testPool(t)
	config := often(db)
	config.ProbeEvery = time.Hour
	l := listen(t, config)
	a, cancelA := l.Subscribe("a")
	b, cancelB := l.Subscribe("b")
	defer cancelB()
	settle(t, l, a, b)

	for range 10 {
		notify(t, db, "a")
	}
	requireWake(t, a, "of a")
	notify(t, db, "b") // notifications arrive in order
	requireWake(t, b, "of b")
	require.LessOrEqual(t, len(a), 1, "wake-ups are coalesced")

	cancelA()
	cancelA()
	a2, cancelA2 := l.Subscribe("a")
	defer cancelA2()
	requireWake(t, a2, "of a subscription while running")
	notify(t, db, "a")
	requireWake(t, a2, "of a")
}

func TestAPlainSendWakesTheQueuesChannel(t *testing.T) {
	t.Parallel()
	db, queue := queueOf(t)
	_, err := db.Exec(t.Context(), "select pgmq.enable_notify_insert($1::text, 0)", queue)
	require.NoError(t, err)
	l := listen(t, often(db))
	wake, cancel := l.Subscribe(pgmq.QueueChannel(queue))
	defer cancel()
	settle(t, l, wake)
	_, err = db.Exec(t.Context(), "select pgmq.send($1::text, '{}'::jsonb)", queue)
	require.NoError(t, err)
	requireWake(t, wake, "of a send")
}

func TestOddChannelNamesAreQuoted(t *testing.T) {
	t.Parallel()
	db := testPool(t)
	l := listen(t, often(db))
	for _, name := range []string{`Mixed "quotes".and 'more'; --`, "žluťoučký", "012345678901234567890123456789012345678901234567890123456789012"} {
		wake, cancel := l.Subscribe(name)
		settle(t, l, wake)
		notify(t, db, name)
		requireWake(t, wake, name)
		cancel()
	}
	require.Panics(t, func() { l.Subscribe("") })
	require.Panics(t, func() { l.Subscribe("a\x00") })
	require.Panics(t, func() { l.Subscribe("0123456789012345678901234567890123456789012345678901234567890123") })
}

func TestALostConnectionIsReplacedAndEverybodyWoken(t *testing.T) {
	t.Parallel()
	db := testPool(t)
	config := often(db)
	var proofs atomic.Int64
	config.OnProof = func(bool, error) { proofs.Add(1) }
	l := listen(t, config)
	a, cancelA := l.Subscribe("a")
	defer cancelA()
	b, cancelB := l.Subscribe("b")
	defer cancelB()
	settle(t, l, a, b)
	for round := range 5 {
		require.Equal(t, 1, terminateListener(t, db))
		requireWake(t, a, fmt.Sprint("of a after reconnect ", round))
		requireWake(t, b, fmt.Sprint("of b after reconnect ", round))
		require.Eventually(t, func() bool { return l.Proven() }, soon, time.Millisecond)
		notify(t, db, "b")
		requireWake(t, b, "of b")
	}
	require.Eventually(t, func() bool { return proofs.Load() == 11 }, soon, time.Millisecond,
		"each loss and each new proof is told")
}

// terminateListener ends the backends that have listened, and says how many.
func terminateListener(t *testing.T, db pgmq.DB) (count int) {
	t.Helper()
	require.NoError(t, db.QueryRow(t.Context(), `
		select count(pg_terminate_backend(pid)) from pg_stat_activity
		where datname = current_database() and (query ilike 'listen%' or query ilike 'unlisten%')`).Scan(&count))
	return count
}

func TestADatabaseThatCannotBeReachedIsTriedAgain(t *testing.T) {
	t.Parallel()
	db := testPool(t)
	config := often(db)
	connect := config.Connect
	var tries atomic.Int64
	config.Connect = func(ctx context.Context) (*pgx.Conn, error) {
		if tries.Add(1) < 4 {
			return nil, errors.New("not now")
		}
		return connect(ctx)
	}
	l := listen(t, config)
	wake, cancel := l.Subscribe("a")
	defer cancel()
	settle(t, l, wake)
}

// NOTIFY stays inside its database: probes sent through another one are as lost
// as those behind a transaction pooler.
func TestADeafListenerSaysSoAndGoesOn(t *testing.T) {
	t.Parallel()
	db, other := testPool(t), testPool(t)
	config := often(db)
	config.Probe, config.ProbeTimeout = other, 2*time.Second
	var log lines
	config.Log = slog.New(slog.NewTextHandler(&log, nil))
	type news struct {
		proven bool
		why    error
	}
	told := make(chan news, 100)
	config.OnProof = func(proven bool, why error) { told <- news{proven, why} }
	l := listen(t, config)
	wake, cancel := l.Subscribe("a")
	defer cancel()
	requireWake(t, wake, "of the first LISTEN")
	select {
	case n := <-told:
		require.False(t, n.proven)
		require.ErrorContains(t, n.why, "did not arrive")
		require.Contains(t, log.String(), "not through a transaction pooler")
	case <-time.After(soon):
		require.Fail(t, "nothing told")
	}
	require.False(t, l.Proven())
	requireWake(t, wake, "of the next connection")
}

func TestProbesThatCannotBeSentProveNothing(t *testing.T) {
	t.Parallel()
	db := testPool(t)
	closed, err := pgxpool.NewWithConfig(t.Context(), db.Config())
	require.NoError(t, err)
	config := often(db)
	config.Probe = closed
	told := make(chan bool, 1000)
	config.OnProof = func(proven bool, _ error) { told <- proven }
	l := listen(t, config)
	require.Eventually(t, l.Proven, soon, time.Millisecond)
	require.True(t, <-told)
	closed.Close()
	require.Eventually(t, func() bool { return !l.Proven() }, soon, time.Millisecond)
	require.False(t, <-told)
	wake, cancel := l.Subscribe("a")
	defer cancel()
	requireWake(t, wake, "of LISTEN")
	notify(t, db, "a")
	requireWake(t, wake, "the connection still hears")
}

func TestNegativeTimesAreRefused(t *testing.T) {
	t.Parallel()
	db := testPool(t)
	for name, change := range map[string]func(c *pgmq.ListenerConfig){
		"ProbeEvery":   func(c *pgmq.ListenerConfig) { c.ProbeEvery = -1 },
		"ProbeTimeout": func(c *pgmq.ListenerConfig) { c.ProbeTimeout = -1 },
		"RetryMin":     func(c *pgmq.ListenerConfig) { c.RetryMin = -1 },
		"RetryMax":     func(c *pgmq.ListenerConfig) { c.RetryMax = -1 },
	} {
		config := often(db)
		change(&config)
		_, err := pgmq.NewListener(config)
		require.ErrorContains(t, err, name+" is negative")
	}
}

func TestStartAndStopAreOrdered(t *testing.T) {
	t.Parallel()
	db := testPool(t)
	_, err := pgmq.NewListener(pgmq.ListenerConfig{Probe: db})
	require.Error(t, err)

	l, err := pgmq.NewListener(often(db))
	require.NoError(t, err)
	l.Stop()
	l.Stop()
	require.Error(t, l.Start(t.Context()), "a stopped listener stays stopped")

	l = listen(t, often(db))
	require.Error(t, l.Start(t.Context()), "it runs already")
	l.Stop()
	l.Stop()
	require.False(t, l.Proven())

	ctx, cancel := context.WithCancel(t.Context())
	l, err = pgmq.NewListener(often(db))
	require.NoError(t, err)
	require.NoError(t, l.Start(ctx))
	require.Eventually(t, l.Proven, soon, time.Millisecond)
	cancel()
	require.Eventually(t, func() bool { return !l.Proven() }, soon, time.Millisecond)
	l.Stop()
}

// Everything at once: subscribers come and go, notifications flow, the
// connection is cut; then Stop, from several goroutines. A fixed subscriber must
// be woken after all of it.
func TestStress(t *testing.T) {
	t.Parallel()
	db := testPool(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	l := listen(t, often(db))
	fixed, cancelFixed := l.Subscribe("fixed")
	defer cancelFixed()

	ctx, finish := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for n := range 4 {
		rnd := rand.New(rand.NewPCG(seed, uint64(n)))
		running.Go(func() { comeAndGo(t, l, db, rnd) })
	}
	var cutting sync.WaitGroup
	cutting.Go(func() {
		for ctx.Err() == nil {
			_, _ = db.Exec(ctx, `select pg_terminate_backend(pid) from pg_stat_activity
				where datname = current_database() and query ilike 'listen%'`)
			_, _ = db.Exec(ctx, "select pg_sleep(0.05)")
		}
	})
	running.Wait()
	finish()
	cutting.Wait()

	require.Eventually(t, func() bool {
		_, err := db.Exec(t.Context(), "notify fixed")
		if err != nil {
			return false
		}
		select {
		case <-fixed:
			return l.Proven()
		default:
			return false
		}
	}, soon, 5*time.Millisecond)
	var stopping sync.WaitGroup
	for range 4 {
		stopping.Go(l.Stop)
	}
	stopping.Wait()
	require.Eventually(t, func() bool {
		var left int
		err := db.QueryRow(t.Context(), `select count(*) from pg_stat_activity
			where datname = current_database() and query ilike 'listen%'`).Scan(&left)
		return err == nil && left == 0
	}, soon, 5*time.Millisecond, "the connection is closed; its server process may take a moment")
}

func comeAndGo(t *testing.T, l *pgmq.Listener, db pgmq.DB, rnd *rand.Rand) {
	for range 60 {
		channel := fmt.Sprint("c", rnd.IntN(8))
		wake, cancel := l.Subscribe(channel)
		if rnd.IntN(2) == 0 {
			_, err := db.Exec(t.Context(), "select pg_notify($1::text, '')", channel)
			if err != nil {
				t.Errorf("notifying: %v", err)
			}
		}
		if rnd.IntN(4) == 0 {
			select {
			case <-wake:
			case <-time.After(soon):
				t.Errorf("channel %s: no wake-up", channel)
			}
		}
		cancel()
	}
}
