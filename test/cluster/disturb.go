package cluster

import (
	"context"
	"fmt"
	"time"
)

// disturbances that are SQL: each makes trouble in the tables as foreign programs could, and tells how often. $1 is the
// dice. They go straight to the database.
var disturbances = map[Fault][]string{
	RepeatDelivery: {
		repeatDelivery("fire_queue"), repeatDelivery("orchestration_task_requests"), repeatDelivery("orchestration_step_results"),
		repeatDelivery("orchestration_task_finalizations"), repeatDelivery("fire_queue"),
	},
	RepeatResult: {`
		select count(*) from pawl.steps s, pgmq.send('orchestration_step_results', jsonb_build_object('v', 1, 'task_id', s.task_id, 'step', s.step,
			'attempt', greatest(1, s.attempt - ($1::bigint % 2)::int), 'status', 'complete', 'result', '{"nonce": "forged"}'::jsonb, 'worker', 'forger')) m
		where s.task_id in (` + someTasks + `) and s.attempt > 0 and s.state in ('complete', 'error', 'cancelled')`},
	RepeatEngine: {`
		select count(*) from pawl.tasks t, pgmq.send('orchestration_task_finalizations', jsonb_build_object('v', 1, 'task_id', t.task_id, 'reason', 'again')) m
		where t.task_id in (` + someTasks + `)`, `
		select count(*) from pawl.tasks t, pgmq.send('orchestration_step_enqueues', jsonb_build_object('v', 1, 'task_id', t.task_id, 'reason', 'again')) m
		where t.task_id in (` + someTasks + `)`},
	Garbage: {
		`select count(*) from pawl.queues q, pgmq.send(q.queue, '{"garbage": 1}'::jsonb) m where $1::bigint is not null`,
		send("orchestration_task_requests", `{"template": 5, "input": [], "garbage": 2}`),
		send("orchestration_task_requests", `{"handler": "x", "queue": "../etc", "garbage": 3}`),
		send(Queue, `{"v": 1, "task_id": "00000000-0000-7000-8000-000000000001", "step": "x", "attempt": 1, "handler": "fire.work", "garbage": 4}`),
		send(Queue, `{"v": 1, "task_id": "no uuid", "step": "x", "attempt": "one", "garbage": 5}`),
		send("orchestration_step_results", `{"v": 1, "task_id": "00000000-0000-7000-8000-000000000001", "step": "x", "attempt": 1, "status": "complete", "worker": "garbage"}`),
		send("orchestration_step_results", `{"v": 1, "task_id": "00000000-0000-7000-8000-000000000001", "step": "x", "attempt": -1, "status": "perhaps", "garbage": 6}`), `
		select count(*) from pawl.tasks t, pgmq.send('orchestration_step_results', jsonb_build_object('v', 1, 'task_id', t.task_id, 'step', 'first',
			'attempt', 99, 'status', 'complete', 'worker', 'garbage')) m where t.task_id in (` + someTasks + `)`,
	},
	TerminateBackend: {`
		select count(*) filter (where pg_terminate_backend(v.pid) and v.busy) from (
			select a.pid, a.state <> 'idle' as busy from pg_stat_activity a
			where a.datname = current_database() and a.backend_type = 'client backend' and a.application_name <> '` + applicationName + `' and a.pid <> pg_backend_pid()
			order by (a.state <> 'idle') desc, md5(a.pid::text || $1::bigint) limit 1) v`},
}

// send sends one message.
func send(queue, body string) string {
	return fmt.Sprintf(`select count(*) from pgmq.send('%s', '%s'::jsonb) m where $1::bigint is not null`, queue, body)
}

// someTasks are three of the latest tasks.
const someTasks = `select r.task_id from (select task_id from pawl.tasks order by task_id desc limit 200) r order by md5(r.task_id::text || $1::bigint) limit 3`

// repeatDelivery makes messages visible that somebody has.
func repeatDelivery(queue string) string {
	return fmt.Sprintf(`with held as (
			select msg_id from pgmq.q_%[1]s where read_ct > 0 and vt > clock_timestamp() order by md5(msg_id::text || $1::bigint) limit 3 for update skip locked),
		back as (update pgmq.q_%[1]s q set vt = clock_timestamp() from held h where h.msg_id = q.msg_id returning 1)
		select count(*) from back`, queue)
}

// disturb runs one of a fault's statements and tells how often it struck.
func (f *Fire) disturb(ctx context.Context, e Event) (times int, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	statements := disturbances[e.Fault]
	dice := int64(e.Dice >> 2)
	for try := 1; ; try++ { // until it finds something at work
		err = f.stage.Pool.QueryRow(ctx, statements[e.Dice%uint64(len(statements))], dice).Scan(&times)
		if err != nil || times > 0 || try == tries || e.Fault != RepeatDelivery && e.Fault != TerminateBackend {
			return times, err
		}
		wait(ctx, 20)
	}
}

// tries is how often a fault looks for something at work before it strikes what there is.
const tries = 25

// copyMessage sends a second message for steps that are under way, and notes which.
func (f *Fire) copyMessage(ctx context.Context, e Event) (times int, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rows, err := f.stage.Pool.Query(ctx, `
		with chosen as (select message, headers from pgmq.q_fire_queue where message ? 'task_id' and not message ? 'garbage'
			order by md5(msg_id::text || $1::bigint) limit 2)
		select s.message->>'task_id', s.message->>'step' from chosen s, lateral pgmq.send('fire_queue', s.message, s.headers) m`, int64(e.Dice>>2))
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var name StepName
		if err := rows.Scan(&name.Task, &name.Step); err != nil {
			return times, err
		}
		times++
		f.mu.Lock()
		f.copied[name] = true
		f.mu.Unlock()
	}
	return times, rows.Err()
}

// lockRows holds the locks of some open tasks for a while, as a stranger's transaction would.
func (f *Fire) lockRows(ctx context.Context, e Event) (times int, err error) {
	tx, err := f.stage.Pool.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	tag, err := tx.Exec(ctx, `select from pawl.tasks where task_id = any (array(
		select task_id from pawl.tasks where finalized_at is null order by md5(task_id::text || $1::bigint) limit 5)) for update skip locked`, int64(e.Dice>>2))
	if err != nil {
		return 0, err
	}
	wait(ctx, e.For)
	return int(tag.RowsAffected()), nil
}

// wait lets milliseconds pass, unless the context ends before.
func wait(ctx context.Context, ms int) {
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
