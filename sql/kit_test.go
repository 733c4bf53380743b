package sql_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
	engine "github.com/pawl-dev/pawl/test/kit"
)

// What a test says without the name of the package.
type (
	object   = engine.Object
	delivery = engine.Delivery
)

var step = engine.Step

// kit is the proofs' kit with what only tests of single functions need: several sessions, refusals, the audit.
type kit struct {
	engine.Kit
	t    *testing.T
	pool *pgxpool.Pool // nil in a rolled-back transaction
}

func kitOn(t *testing.T, db engine.Session, pool *pgxpool.Pool) *kit {
	return &kit{Kit: engine.Kit{TB: t, DB: db}, t: t, pool: pool}
}

// newKit works in a transaction that is rolled back: the fast way for tests of one connection.
func newKit(t *testing.T) *kit {
	t.Helper()
	t.Parallel()
	return kitOn(t, pgtest.Tx(t), nil)
}

// newCommittingKit works on a database of its own, for tests of several connections.
func newCommittingKit(t *testing.T) *kit {
	t.Helper()
	t.Parallel()
	pool := pgtest.DB(t)
	return kitOn(t, pool, pool)
}

// begin opens a transaction on a connection of its own, rolled back after the test unless it has ended.
func (k *kit) begin() *kit {
	k.Helper()
	require.NotNil(k, k.pool, "newCommittingKit has connections")
	tx, err := k.pool.Begin(k.Context())
	require.NoError(k, err)
	k.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return kitOn(k.t, tx, k.pool)
}

// commit ends what begin began.
func (k *kit) commit() {
	k.Helper()
	require.NoError(k, k.DB.(pgx.Tx).Commit(k.Context()))
}

// list gives the first column of a query.
func list[T any](k *kit, sql string, args ...any) []T {
	k.Helper()
	return engine.List[T](&k.Kit, sql, args...)
}

// get gives the only value of a query.
func get[T any](k *kit, sql string, args ...any) T {
	k.Helper()
	return engine.Get[T](&k.Kit, sql, args...)
}

// object gives a query's only value, a JSON object.
func (k *kit) object(sql string, args ...any) object {
	k.Helper()
	return get[object](k, sql, args...)
}

// refusal is what an error of the database says.
type refusal struct{ Message, Hint string }

// refused asserts that a statement raises the SQLSTATE, and gives its words. Nothing of the statement remains.
func (k *kit) refused(code, sql string, args ...any) refusal {
	k.Helper()
	tx, err := k.DB.Begin(k.Context()) // a savepoint when we are in a transaction
	require.NoError(k, err)
	defer func() { require.NoError(k, tx.Rollback(k.Context())) }()
	_, err = tx.Exec(k.Context(), sql, args...)
	var refused *pgconn.PgError
	require.ErrorAs(k, err, &refused, sql)
	require.Equal(k, code, refused.Code, "%s: %v", sql, err)
	return refusal{Message: refused.Message, Hint: refused.Hint}
}

// start runs a statement in the background of a transaction that begin opened; its error comes on the channel.
func (k *kit) start(sql string, args ...any) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := k.DB.Exec(k.Context(), sql, args...)
		done <- err
	}()
	return done
}

// untilWaiting returns when the transaction's running statement waits for a lock. pid is what k.pid told before.
func (k *kit) untilWaiting(pid int32) {
	k.Helper()
	require.Eventually(k, func() bool {
		var waits bool
		err := k.pool.QueryRow(k.Context(), "select exists (select from pg_locks where pid = $1 and not granted)", pid).Scan(&waits)
		return err == nil && waits
	}, time.Minute, 5*time.Millisecond, "the statement should wait for a lock")
}

// untilWaitingOr is untilWaiting for a statement that waits a moment only: it may have ended already.
func (k *kit) untilWaitingOr(done <-chan error, pid int32) {
	k.Helper()
	require.Eventually(k, func() bool {
		var waits bool
		err := k.pool.QueryRow(k.Context(), "select exists (select from pg_locks where pid = $1 and not granted)", pid).Scan(&waits)
		return err == nil && waits || len(done) > 0
	}, time.Minute, 5*time.Millisecond, "the statement should wait for a lock, or end")
}

// pid of the connection's server process.
func (k *kit) pid() int32 { k.Helper(); return get[int32](k, "select pg_backend_pid()") }

// ended waits for a statement that start began.
func (k *kit) ended(done <-chan error) {
	k.Helper()
	select {
	case err := <-done:
		require.NoError(k, err)
	case <-time.After(time.Minute):
		require.FailNow(k, "the statement does not end")
	}
}

// late reports steps that have ended meanwhile as complete: they are not accepted.
func (k *kit) late(queue string, claimed ...delivery) {
	k.Helper()
	for _, d := range claimed {
		require.False(k, k.Report(queue, d, engine.Complete(object{"by": d.Step})), d.Step)
	}
}

// fail reports a claimed step as failed for good.
func (k *kit) fail(queue string, d delivery) {
	k.Helper()
	require.True(k, k.Report(queue, d, engine.Failed(false, 0)))
}

// work claims and completes a queue's steps until it is empty and the engine is at rest. Returns the steps in order.
func (k *kit) work(queue string) []string {
	k.Helper()
	var worked []string
	for range 1000 {
		k.Rest()
		claimed := k.Claim(queue)
		if len(claimed) == 0 {
			return worked
		}
		k.Finish(queue, claimed...)
		for _, d := range claimed {
			worked = append(worked, d.Step)
		}
	}
	require.FailNow(k, "the work does not end")
	return nil
}

// steps of a task: name to state.
func (k *kit) steps(task uuid.UUID) map[string]string {
	k.Helper()
	rows := list[[]string](k, "select array[step, state::text] from pawl.steps where task_id = $1 and index = 0", task)
	states := map[string]string{}
	for _, r := range rows {
		states[r[0]] = r[1]
	}
	return states
}

// events of a task's audit: "step: event" or "event" for the task itself, each in the order of its revisions.
func (k *kit) events(task uuid.UUID) []string {
	k.Helper()
	return list[string](k, `select coalesce(step || ': ', '') || event from pawl.audit where task_id = $1
		order by step collate "C" nulls first, index, revision`, task)
}

// sound asserts what must hold of every task at rest: dense audit, true counters, a state that follows from them.
func (k *kit) sound() {
	k.Helper()
	require.Empty(k, list[string](k, `select t.task_id || ': ' || t.state from pawl.tasks t join lateral (
		select count(*) filter (where s.state in ('pending', 'enqueued', 'in_progress', 'waiting_for_retry', 'waiting')) as open,
			count(*) filter (where s.state in ('enqueued', 'in_progress')) as active,
			count(*) filter (where s.state = 'waiting_for_retry') as retrying, count(*) filter (where s.state = 'waiting') as waiting
		from pawl.steps s where s.task_id = t.task_id) c on true
		where t.state not in ('pending', 'initializing')
			and (t.open_count, t.active_count, t.retrying_count, t.waiting_count) is distinct from (c.open, c.active, c.retrying, c.waiting)`),
		"counters differ from the steps")
	require.Empty(k, list[string](k, `select a.task_id || '/' || coalesce(a.step, '') from pawl.audit a
		group by a.task_id, a.step, a.index having count(*) <> max(revision) or count(distinct revision) <> count(*)`),
		"the audit has gaps")
}

// isCode tells whether an error is the SQLSTATE.
func isCode(err error, code string) bool {
	var raised *pgconn.PgError
	return errors.As(err, &raised) && raised.Code == code
}
