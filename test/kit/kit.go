package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// Object is a JSON object.
type Object = map[string]any

// TB is what the kit needs of a test; rapid's is one too.
type TB interface {
	require.TestingT
	Helper()
	Logf(format string, args ...any)
	Context() context.Context
}

// Session is a connection, a pool or a transaction.
type Session interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Kit calls the engine in one session.
type Kit struct {
	TB
	DB Session
}

// Queue that steps work on unless their template says otherwise.
const Queue = "work_queue"

// Exec runs a statement.
func (k *Kit) Exec(sql string, args ...any) {
	k.Helper()
	_, err := k.DB.Exec(k.Context(), sql, args...)
	require.NoError(k, err, sql)
}

// List gives the first column of a query.
func List[T any](k *Kit, sql string, args ...any) []T {
	k.Helper()
	rows, err := k.DB.Query(k.Context(), sql, args...)
	require.NoError(k, err, sql)
	found, err := pgx.CollectRows(rows, pgx.RowTo[T])
	require.NoError(k, err, sql)
	return found
}

// Get gives the only value of a query.
func Get[T any](k *Kit, sql string, args ...any) T {
	k.Helper()
	found := List[T](k, sql, args...)
	require.Len(k, found, 1, sql)
	return found[0]
}

// Step describes a step of a template: "name" or "name: needed skippable?", and fields of the definition besides. A need
// with a question mark is satisfied by a skipped step too.
func Step(line string, fields ...Object) Object {
	name, needs, _ := strings.Cut(line, ":")
	name = strings.TrimSpace(name)
	s := Object{"name": name, "handler": "do." + name, "queue": Queue, "needs": strings.Fields(needs)}
	for _, f := range fields {
		maps.Copy(s, f)
	}
	return s
}

// Template registers version 1 of "namespace/name" with fields of the definition and steps in topological order, and
// returns its id.
func (k *Kit) Template(name string, fields Object, steps ...Object) int {
	k.Helper()
	namespace, short, _ := strings.Cut(name, "/")
	definition := Object{"namespace": namespace, "name": short, "version": "1", "steps": steps}
	maps.Copy(definition, fields)
	numbers := map[string]int{}
	for i, s := range steps {
		s["no"] = i
		numbers[s["name"].(string)] = i
		needs := []any{}
		for _, need := range s["needs"].([]string) {
			if skippable, ok := strings.CutSuffix(need, "?"); ok {
				needs = append(needs, Object{"no": numbers[skippable], "accepts_skipped": true})
				continue
			}
			needs = append(needs, numbers[need])
		}
		s["needs"] = needs
	}
	made := Get[Object](k, "select pawl.register_template($1)", definition)
	return int(made["template_id"].(float64))
}

// Send puts a request on the queue as a producer does, and returns its message.
func (k *Kit) Send(template string, fields ...Object) int64 {
	k.Helper()
	body := Object{"template": template, "input": Object{}}
	for _, f := range fields {
		maps.Copy(body, f)
	}
	return Get[int64](k, "select pgmq.send('orchestration_task_requests', $1::jsonb)", body)
}

// ProcessRequests is the call that turns request messages ($1: ids) into tasks, as the task-request actor makes it.
const ProcessRequests = `select pawl.process_task_requests((select coalesce(jsonb_agg(jsonb_build_object('msg_id', q.msg_id,
	'template_id', (select max(t.template_id) from pawl.templates t where t.namespace = split_part(q.message->>'template', '/', 1)
	and t.name = split_part(q.message->>'template', '/', 2))) order by q.msg_id), '[]') from pgmq.q_orchestration_task_requests q
	where q.msg_id = any ($1)), 'kit')`

// Request sends a request and processes it, and returns its outcome.
func (k *Kit) Request(template string, fields ...Object) Object {
	k.Helper()
	outcomes := Get[[]Object](k, ProcessRequests, []int64{k.Send(template, fields...)})
	require.Len(k, outcomes, 1)
	return outcomes[0]
}

// Submit creates a task.
func (k *Kit) Submit(template string, fields ...Object) uuid.UUID {
	k.Helper()
	outcome := k.Request(template, fields...)
	require.Equal(k, "created", outcome["outcome"], "%v", outcome)
	return uuid.MustParse(outcome["task_id"].(string))
}

// Delivery is a claimed step.
type Delivery struct {
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

// Claim claims up to 100 steps of a queue.
func (k *Kit) Claim(queue string) []Delivery {
	k.Helper()
	return Get[[]Delivery](k, "select pawl.claim_steps($1, 100, 'worker-1')", queue)
}

// ClaimOne claims the only waiting step.
func (k *Kit) ClaimOne(queue string) Delivery {
	k.Helper()
	claimed := k.Claim(queue)
	require.Len(k, claimed, 1)
	return claimed[0]
}

// Report hands in the end of one attempt; tells whether it was accepted. end: {status, result?, error?}.
func (k *Kit) Report(queue string, d Delivery, end Object) bool {
	k.Helper()
	report := Object{"msg_id": d.ID, "read_ct": d.ReadCount}
	maps.Copy(report, end)
	answers := Get[[]Object](k, "select pawl.report_steps($1, jsonb_build_array($2::jsonb), 'worker-1')", queue, report)
	require.Len(k, answers, 1)
	return answers[0]["accepted"].(bool)
}

// Complete is the end of an attempt that succeeded.
func Complete(result any) Object { return Object{"status": "complete", "result": result} }

// Failed is the end of an attempt that failed; after says how long to wait before the next one.
func Failed(retryable bool, after time.Duration) Object {
	return Object{"status": "failed", "error": Object{"type": "boom", "message": "it broke", "retryable": retryable,
		"retry_after": after.Seconds()}}
}

// Finish completes claimed steps with their names as results.
func (k *Kit) Finish(queue string, claimed ...Delivery) {
	k.Helper()
	for _, d := range claimed {
		require.True(k, k.Report(queue, d, Complete(Object{"by": d.Step})), "%+v", d)
	}
}

// Expire makes every message of a queue visible, as if its lease were over.
func (k *Kit) Expire(queue string) {
	k.Helper()
	k.Exec(fmt.Sprintf("update pgmq.%s set vt = clock_timestamp() where vt > clock_timestamp()", pgx.Identifier{"q_" + queue}.Sanitize()))
}

// Later moves the engine's clock: from now on it is ahead of the real one by d. PGMQ's clock stays (see Expire).
func (k *Kit) Later(d time.Duration) {
	k.Helper()
	k.Exec(fmt.Sprintf(`create or replace function pawl.now() returns timestamptz language sql volatile as
		'select clock_timestamp() + interval ''%d milliseconds'''`, d.Milliseconds()))
}

// Tick fires what is due.
func (k *Kit) Tick() Object { k.Helper(); return Get[Object](k, "select pawl.fire_due(100, 'kit')") }

// Release opens the gates.
func (k *Kit) Release() Object {
	k.Helper()
	return Get[Object](k, "select pawl.release_held(100, 'kit')")
}

// State of a task.
func (k *Kit) State(task uuid.UUID) string {
	k.Helper()
	return Get[string](k, "select state::text from pawl.tasks where task_id = $1", task)
}

// Rest runs the engine until its queues hold nothing that is visible; requests come last.
func (k *Kit) Rest() {
	k.Helper()
	consumers := []struct{ queue, call string }{
		{"orchestration_step_results", "select pawl.apply_step_results($1, 'kit')"},
		{"orchestration_step_enqueues", "select pawl.process_step_enqueues($1, 'kit')"},
		{"orchestration_task_finalizations", "select pawl.finalize_tasks($1, 'kit')"},
		{"orchestration_task_requests", ProcessRequests},
	}
	for range 1000 {
		taken := 0
		for i, c := range consumers {
			if taken > 0 && i == len(consumers)-1 {
				break // requests come when what is there has ended
			}
			ids := List[int64](k, "select msg_id from pgmq.q_"+c.queue+" where vt <= clock_timestamp() order by msg_id limit 100")
			if len(ids) > 0 {
				k.Exec(c.call, ids)
			}
			taken += len(ids)
		}
		if taken == 0 {
			return
		}
	}
	require.FailNow(k, "the engine does not come to rest")
}
