package sql_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
)

// object is a JSON object in a test.
type object = map[string]any

// session is a connection, a pool or a transaction.
type session interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// kit works the engine by calling its functions: no actor, no worker, no time passes by itself.
type kit struct {
	*testing.T
	db   session
	pool *pgxpool.Pool // nil in a rolled-back transaction
}

// newKit works in a transaction that is rolled back: the fast way for tests of one connection.
func newKit(t *testing.T) *kit {
	t.Helper()
	t.Parallel()
	return &kit{T: t, db: pgtest.Tx(t)}
}

// newCommittingKit works on a database of its own, for tests of several connections.
func newCommittingKit(t *testing.T) *kit {
	t.Helper()
	t.Parallel()
	pool := pgtest.DB(t)
	return &kit{T: t, db: pool, pool: pool}
}

// begin opens a transaction on a connection of its own, rolled back after the test unless it has ended.
func (k *kit) begin() *kit {
	k.Helper()
	require.NotNil(k, k.pool, "newCommittingKit has connections")
	tx, err := k.pool.Begin(k.Context())
	require.NoError(k, err)
	k.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return &kit{T: k.T, db: tx, pool: k.pool}
}

// commit ends what begin began.
func (k *kit) commit() {
	k.Helper()
	require.NoError(k, k.db.(pgx.Tx).Commit(k.Context()))
}

// exec runs a statement.
func (k *kit) exec(sql string, args ...any) {
	k.Helper()
	_, err := k.db.Exec(k.Context(), sql, args...)
	require.NoError(k, err, sql)
}

// list gives the first column of a query.
func list[T any](k *kit, sql string, args ...any) []T {
	k.Helper()
	rows, err := k.db.Query(k.Context(), sql, args...)
	require.NoError(k, err, sql)
	found, err := pgx.CollectRows(rows, pgx.RowTo[T])
	require.NoError(k, err, sql)
	return found
}

// get gives the only value of a query.
func get[T any](k *kit, sql string, args ...any) T {
	k.Helper()
	found := list[T](k, sql, args...)
	require.Len(k, found, 1, sql)
	return found[0]
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
	tx, err := k.db.Begin(k.Context()) // a savepoint when we are in a transaction
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
		_, err := k.db.Exec(k.Context(), sql, args...)
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

// step describes a step of a template: its name, "name: needed needed", and fields of the definition besides.
func step(line string, fields ...object) object {
	name, needs, _ := strings.Cut(line, ":")
	s := object{"name": strings.TrimSpace(name), "handler": "do." + name, "queue": "work_queue", "needs": strings.Fields(needs)}
	for _, f := range fields {
		maps.Copy(s, f)
	}
	return s
}

// template registers version 1 of "namespace/name" with fields of the definition and steps in topological order.
// Steps work on work_queue unless they say otherwise. Returns the template's id.
func (k *kit) template(name string, fields object, steps ...object) int {
	k.Helper()
	namespace, short, _ := strings.Cut(name, "/")
	definition := object{"namespace": namespace, "name": short, "version": "1", "steps": steps}
	maps.Copy(definition, fields)
	numbers := map[string]int{}
	for i, s := range steps {
		s["no"] = i
		numbers[s["name"].(string)] = i
		needs := []any{}
		for _, need := range s["needs"].([]string) {
			if skippable, ok := strings.CutSuffix(need, "?"); ok { // satisfied by a skipped step too
				needs = append(needs, object{"no": numbers[skippable], "accepts_skipped": true})
				continue
			}
			needs = append(needs, numbers[need])
		}
		s["needs"] = needs
	}
	made := k.object("select pawl.register_template($1)", definition)
	return int(made["template_id"].(float64))
}

// request sends a request as a producer does and lets the engine process it. Returns its outcome.
func (k *kit) request(template string, fields object) object {
	k.Helper()
	body := object{"template": template, "input": object{}}
	maps.Copy(body, fields)
	namespace, name, _ := strings.Cut(template, "/")
	id := get[int64](k, "select pgmq.send('orchestration_task_requests', $1::jsonb)", body)
	outcomes := get[[]object](k, `select pawl.process_task_requests(jsonb_build_array(jsonb_build_object('msg_id', $1::bigint,
		'template_id', (select max(template_id) from pawl.templates where namespace = $2 and name = $3))), 'kit')`, id, namespace, name)
	require.Len(k, outcomes, 1)
	return outcomes[0]
}

// submit creates a task.
func (k *kit) submit(template string, fields ...object) uuid.UUID {
	k.Helper()
	body := object{}
	for _, f := range fields {
		maps.Copy(body, f)
	}
	outcome := k.request(template, body)
	require.Equal(k, "created", outcome["outcome"], "%v", outcome)
	return uuid.MustParse(outcome["task_id"].(string))
}

// delivery is a claimed step.
type delivery struct {
	ID           int64           `json:"msg_id"`
	ReadCount    int             `json:"read_ct"`
	Task         uuid.UUID       `json:"task_id"`
	Step         string          `json:"step"`
	Index        int             `json:"index"`
	Attempt      int             `json:"attempt"`
	Token        string          `json:"token"`
	Input        json.RawMessage `json:"input"`
	Dependencies json.RawMessage `json:"dependencies"`
}

// claim claims up to 100 steps of a queue.
func (k *kit) claim(queue string) []delivery {
	k.Helper()
	return get[[]delivery](k, "select pawl.claim_steps($1, 100, 'worker-1')", queue)
}

// claimOne claims the only waiting step.
func (k *kit) claimOne(queue string) delivery {
	k.Helper()
	claimed := k.claim(queue)
	require.Len(k, claimed, 1)
	return claimed[0]
}

// report hands in the end of one attempt; tells whether it was accepted. end: {status, result?, error?}.
func (k *kit) report(queue string, d delivery, end object) bool {
	k.Helper()
	report := object{"msg_id": d.ID, "read_ct": d.ReadCount}
	maps.Copy(report, end)
	answers := get[[]object](k, "select pawl.report_steps($1, jsonb_build_array($2::jsonb), 'worker-1')", queue, report)
	require.Len(k, answers, 1)
	return answers[0]["accepted"].(bool)
}

// complete reports claimed steps as complete, with their names as results.
func (k *kit) complete(queue string, claimed ...delivery) {
	k.Helper()
	for _, d := range claimed {
		require.True(k, k.report(queue, d, object{"status": "complete", "result": object{"by": d.Step}}))
	}
}

// late reports steps that have ended meanwhile as complete: they are not accepted.
func (k *kit) late(queue string, claimed ...delivery) {
	k.Helper()
	for _, d := range claimed {
		require.False(k, k.report(queue, d, object{"status": "complete", "result": object{"by": d.Step}}), d.Step)
	}
}

// fail reports a claimed step as failed for good.
func (k *kit) fail(queue string, d delivery) {
	k.Helper()
	require.True(k, k.report(queue, d, object{"status": "failed", "error": object{
		"type": "boom", "message": "it broke", "retryable": false}}))
}

// work claims and completes a queue's steps until it is empty and the engine is at rest. Returns the steps in order.
func (k *kit) work(queue string) []string {
	k.Helper()
	var worked []string
	for range 1000 {
		k.rest()
		claimed := k.claim(queue)
		if len(claimed) == 0 {
			return worked
		}
		k.complete(queue, claimed...)
		for _, d := range claimed {
			worked = append(worked, d.Step)
		}
	}
	require.FailNow(k, "the work does not end")
	return nil
}

// rest runs the engine until its queues hold nothing that is visible.
func (k *kit) rest() {
	k.Helper()
	consumers := []struct{ queue, function string }{
		{"orchestration_step_results", "apply_step_results"},
		{"orchestration_step_enqueues", "process_step_enqueues"},
		{"orchestration_task_finalizations", "finalize_tasks"},
	}
	for range 1000 {
		taken := 0
		for _, c := range consumers {
			ids := list[int64](k, fmt.Sprintf("select msg_id from pgmq.q_%s where vt <= clock_timestamp() order by msg_id limit 100", c.queue))
			if len(ids) > 0 {
				k.exec(fmt.Sprintf("select pawl.%s($1, 'kit')", c.function), ids)
			}
			taken += len(ids)
		}
		if taken == 0 {
			return
		}
	}
	require.FailNow(k, "the engine does not come to rest")
}

// later moves the engine's clock: from now on it is ahead of the real one by d. PGMQ's clock stays (see expire).
func (k *kit) later(d time.Duration) {
	k.Helper()
	k.exec(fmt.Sprintf(`create or replace function pawl.now() returns timestamptz language sql volatile as
		'select clock_timestamp() + interval ''%d milliseconds'''`, d.Milliseconds()))
}

// tick fires what is due.
func (k *kit) tick() object { k.Helper(); return k.object("select pawl.fire_due(100, 'kit')") }

// expire makes every message of a queue visible, as if its lease were over.
func (k *kit) expire(queue string) {
	k.Helper()
	k.exec(fmt.Sprintf("update pgmq.%s set vt = clock_timestamp()", pgx.Identifier{"q_" + queue}.Sanitize()))
}

// state of a task.
func (k *kit) state(task uuid.UUID) string {
	k.Helper()
	return get[string](k, "select state::text from pawl.tasks where task_id = $1", task)
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
