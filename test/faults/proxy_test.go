package faults

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
)

const patience = 60 * time.Second

// stage is a proxy to a database of the test's own, and a connection that goes around it.
type stage struct {
	*testing.T
	proxy  *Proxy
	url    string
	direct *pgx.Conn
	ctx    context.Context
}

func newStage(t *testing.T) *stage {
	t.Helper()
	url := pgtest.EmptyURL(t)
	target, err := Target(url)
	require.NoError(t, err)
	proxy, err := Start(Config{Target: target, Seed: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	direct, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = direct.Close(context.Background()) })
	_, err = direct.Exec(ctx, "create table notes (note text)")
	require.NoError(t, err)
	through, err := proxy.URL(url)
	require.NoError(t, err)
	return &stage{T: t, proxy: proxy, url: through, direct: direct, ctx: ctx}
}

func (s *stage) connect() *pgx.Conn {
	s.Helper()
	conn, err := pgx.Connect(s.ctx, s.url)
	require.NoError(s, err)
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	})
	return conn
}

func (s *stage) notes() (n int) {
	s.Helper()
	require.NoError(s, s.direct.QueryRow(s.ctx, "select count(*) from notes").Scan(&n))
	return n
}

func (s *stage) eventually(what string, condition func() bool) {
	s.Helper()
	require.Eventually(s, condition, patience, 5*time.Millisecond, what)
}

func TestAHealthyProxyChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	conn := s.connect()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		var sum int
		require.NoError(t, conn.QueryRow(s.ctx, "select sum(i)::int from generate_series(1, $1::int) i", mode, 30000).Scan(&sum))
		require.Equal(t, 30000*30001/2, sum)
	}
	var long string
	require.NoError(t, conn.QueryRow(s.ctx, "select repeat($1::text, 1000000)", "abc").Scan(&long))
	require.Len(t, long, 3000000)
	batch := &pgx.Batch{}
	for i := range 50 {
		batch.Queue("insert into notes values ($1)", fmt.Sprint(i))
	}
	require.NoError(t, conn.SendBatch(s.ctx, batch).Close())
	_, err := conn.CopyFrom(s.ctx, pgx.Identifier{"notes"}, []string{"note"}, pgx.CopyFromRows([][]any{{"a"}, {"b"}}))
	require.NoError(t, err)
	require.Equal(t, 52, s.notes())
	_, err = conn.Exec(s.ctx, "no sql")
	require.ErrorContains(t, err, "42601")
	require.Zero(t, s.proxy.Counts().Unknown)
}

func TestASwallowedCommitTookPlaceAndTheClientDoesNotKnow(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	conn := s.connect()
	tx, err := conn.Begin(s.ctx)
	require.NoError(t, err)
	hit := s.proxy.Set(&Trap{Commits: true})
	_, err = tx.Exec(s.ctx, "insert into notes values ($1)", "a") // commits nothing: the trap waits on
	require.NoError(t, err)
	require.Error(t, tx.Commit(s.ctx))
	<-hit
	require.Equal(t, 1, s.notes())

	// A statement of its own commits as well.
	conn = s.connect()
	hit = s.proxy.Set(&Trap{Commits: true, Match: regexp.MustCompile("insert into notes")})
	_, err = conn.Exec(s.ctx, "insert into notes values ($1)", "b")
	require.Error(t, err)
	<-hit
	require.Equal(t, 2, s.notes())
	require.Equal(t, []int{2, 2, 0}, outcomes(s.proxy))
}

func outcomes(p *Proxy) []int {
	c := p.Counts()
	return []int{c.Unknown, c.UnknownApplied, c.UnknownRefused}
}

func TestALostCommitDidNotTakePlace(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	conn := s.connect()
	tx, err := conn.Begin(s.ctx)
	require.NoError(t, err)
	_, err = tx.Exec(s.ctx, "insert into notes values ('a')")
	require.NoError(t, err)
	hit := s.proxy.Set(&Trap{Commits: true, Request: true})
	require.Error(t, tx.Commit(s.ctx))
	<-hit
	require.Zero(t, s.notes())
	require.Equal(t, []int{1, 0, 1}, outcomes(s.proxy))
}

func TestASwallowedReplyOfAFailureIsNoCommit(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	conn := s.connect()
	hit := s.proxy.Set(&Trap{Match: regexp.MustCompile("no_such_table")})
	_, err := conn.Exec(s.ctx, "insert into no_such_table values (1)")
	require.Error(t, err)
	<-hit
	require.Equal(t, []int{1, 0, 1}, outcomes(s.proxy))
}

func TestATrapThatHangsLeavesTheConnectionSilent(t *testing.T) {
	t.Parallel()
	for _, request := range []bool{false, true} {
		s := newStage(t)
		conn := s.connect()
		hit := s.proxy.Set(&Trap{Match: regexp.MustCompile("insert"), Request: request, Hang: true})
		ctx, cancel := context.WithCancel(s.ctx)
		failed := make(chan error, 1)
		go func() {
			_, err := conn.Exec(ctx, "insert into notes values ($1)", "a")
			failed <- err
		}()
		<-hit
		select {
		case err := <-failed:
			require.Fail(t, "the client heard something", "%v", err)
		default:
		}
		want := 1
		if request {
			want = 0
		}
		require.Equal(t, want, s.notes())
		cancel()
		require.Error(t, <-failed)
	}
}

func TestCutsHitThoseAtWorkFirstAndRollBack(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	idle, busy := s.connect(), s.connect()
	tx, err := busy.Begin(s.ctx)
	require.NoError(t, err)
	_, err = tx.Exec(s.ctx, "insert into notes values ('a')")
	require.NoError(t, err)
	require.Equal(t, Effect{Connections: 1, Busy: 1}, s.proxy.Cut(1))
	require.Error(t, tx.Commit(s.ctx))
	require.NoError(t, idle.Ping(s.ctx))
	s.eventually("the server rolls back", func() bool {
		var open int
		return s.direct.QueryRow(s.ctx, "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in%'").Scan(&open) == nil && open == 0
	})
	require.Zero(t, s.notes())
	require.NotZero(t, s.proxy.Cut(0).Connections) // the cut client may have opened another, to cancel its request
	require.Error(t, idle.Ping(s.ctx))
}

func TestACutDuringACommitTellsWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	conn := s.connect()
	lock, err := s.direct.Begin(s.ctx)
	require.NoError(t, err)
	_, err = lock.Exec(s.ctx, "lock table notes")
	require.NoError(t, err)
	failed := make(chan error, 1)
	go func() {
		_, err := conn.Exec(s.ctx, "insert into notes values ('a')")
		failed <- err
	}()
	s.eventually("the statement waits", func() bool {
		var waiting int
		return lock.QueryRow(s.ctx, "select count(*) from pg_locks where not granted and relation = 'notes'::regclass").Scan(&waiting) == nil && waiting == 1
	})
	require.Equal(t, Effect{Connections: 1, Busy: 1}, s.proxy.Cut(0))
	require.Error(t, <-failed)
	require.NoError(t, lock.Rollback(s.ctx))
	s.eventually("the outcome is known", func() bool { return s.proxy.Counts().Unknown == 1 })
	// The client may have asked the server, on another connection, to break the statement off: then it did not take place.
	c := s.proxy.Counts()
	require.Equal(t, []int{s.notes(), 1 - s.notes()}, []int{c.UnknownApplied, c.UnknownRefused})
}

func TestAnEarlyCutHitsARequestAtWork(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	conn := s.connect()
	hit := s.proxy.Set(&Trap{Early: true})
	_, err := conn.Exec(s.ctx, "insert into notes select 'a' from pg_sleep(0.05)")
	require.Error(t, err)
	<-hit
	s.eventually("the outcome is known", func() bool { return s.proxy.Counts().Unknown == 1 })
	c := s.proxy.Counts()
	require.Equal(t, []int{s.notes(), 1 - s.notes()}, []int{c.UnknownApplied, c.UnknownRefused})
}

func TestABlackHoleKeepsEverythingBackUntilItHeals(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	conn := s.connect()
	require.Equal(t, Effect{Connections: 1}, s.proxy.BlackHole())
	ctx, cancel := context.WithTimeout(s.ctx, 100*time.Millisecond)
	defer cancel()
	_, err := pgx.Connect(ctx, s.url)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	answered := make(chan error, 1)
	go func() { answered <- conn.Ping(s.ctx) }()
	select {
	case err := <-answered:
		require.Fail(t, "something came through", "%v", err)
	case <-ctx.Done():
	}
	require.NotZero(t, s.proxy.Counts().HeldBack)
	s.proxy.Heal()
	require.NoError(t, <-answered)
	require.NoError(t, s.connect().Ping(s.ctx))
}

func TestRepliesComeLateWhileTheyAreDelayed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	conn := s.connect()
	require.NoError(t, conn.Ping(s.ctx))
	s.proxy.Delay(50*time.Millisecond, 50*time.Millisecond)
	began := time.Now()
	require.NoError(t, conn.Ping(s.ctx))
	require.GreaterOrEqual(t, time.Since(began), 50*time.Millisecond) // a lower bound: it holds on any machine
	s.proxy.Heal()
	require.NoError(t, conn.Ping(s.ctx))
}

func TestNotificationsAreDropped(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	conn := s.connect()
	_, err := conn.Exec(s.ctx, "listen news")
	require.NoError(t, err)
	s.proxy.DropNotifications(2)
	for _, payload := range []string{"1", "2", "3"} {
		_, err = s.direct.Exec(s.ctx, "select pg_notify('news', $1)", payload)
		require.NoError(t, err)
	}
	notification, err := conn.WaitForNotification(s.ctx)
	require.NoError(t, err)
	require.Equal(t, "3", notification.Payload)
	require.Equal(t, 2, s.proxy.Counts().NotificationsDropped)
}

func TestHalfOpenListenersHearNothingAndOthersGoOn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	listener, other := s.connect(), s.connect()
	_, err := listener.Exec(s.ctx, "listen news")
	require.NoError(t, err)
	require.Equal(t, Effect{Connections: 1}, s.proxy.HalfOpen())
	_, err = other.Exec(s.ctx, "notify news")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(s.ctx, 100*time.Millisecond)
	defer cancel()
	_, err = listener.WaitForNotification(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, other.Ping(s.ctx))
}

func TestAServerThatIsAwayRefusesThroughTheProxy(t *testing.T) {
	t.Parallel()
	proxy, err := Start(Config{Target: "127.0.0.1:1"})
	require.NoError(t, err)
	url, err := proxy.URL("postgres://postgres@localhost/postgres")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = pgx.Connect(ctx, url)
	require.Error(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, proxy.Close())
	require.NoError(t, proxy.Close())
}
