package crash

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/test/kit"
)

// stepQueues of the lab's templates.
var stepQueues = []string{"work_queue", "gated_queue", "pay_queue", "tell_queue"}

var engineQueues = []string{"orchestration_task_requests", "orchestration_step_results", "orchestration_step_enqueues",
	"orchestration_task_finalizations"}

// calm lets the engine's queues run empty, also of what waits there for a moment.
func calm(k *kit.Kit) {
	k.Helper()
	for range 2 {
		for _, q := range engineQueues {
			k.Expire(q)
		}
		k.Rest()
	}
}

// settle runs the engine, without workers, until nothing moves.
func settle(k *kit.Kit) {
	k.Helper()
	calm(k)
	for range 3 {
		k.Rest()
		k.Tick()
		k.Release()
	}
	k.Rest()
}

// heal is what others do after a crash: leases end, messages come back, orchestrators, workers and janitors go on until
// nothing is left to do.
func heal(k *kit.Kit) {
	k.Helper()
	calm(k) // the engine is quicker than janitors
	for round := range 100 {
		for _, q := range stepQueues {
			k.Expire(q)
		}
		if kit.Get[bool](k, "select exists (select from pawl.entity_claims)") {
			k.Later(time.Duration(round+2) * time.Hour)
			k.Exec("select pawl.revert_stale_claims('billing', 'janitor')")
		}
		if kit.Get[bool](k, "select exists (select from pawl.entity_claims where lease_until = 'infinity')") {
			k.Exec("select pawl.reconcile('kit')") // its result may be gone
		}
		settle(k)
		worked := false
		for _, q := range stepQueues {
			claimed := k.Claim(q)
			k.Finish(q, claimed...)
			worked = worked || len(claimed) > 0
		}
		settle(k)
		if worked || kit.Get[bool](k, "select exists (select from pawl.entity_claims)") {
			continue
		}
		if !kit.Get[bool](k, `select exists (select from pawl.steps s join pawl.queues q using (queue)
			where s.state in ('enqueued', 'in_progress', 'waiting_for_retry') and not q.paused)`) {
			k.Exec("select pawl.reconcile('kit', 1000, '0')") // forgets who waits no longer; a repair would be a defect
			k.Rest()
			return
		}
		k.Later(time.Duration(round+2) * time.Hour) // a retry waits, or a message is lost and the reconciler ends its attempt
		for range 3 {
			k.Exec("select pawl.reconcile('kit')")
		}
	}
	require.FailNow(k, "it does not heal")
}

// outcome is what counts in the end, whatever way it took: no ids, no times, no numbers of attempts.
func outcome(k *kit.Kit) string {
	k.Helper()
	return kit.Get[string](k, `select coalesce(string_agg(line, e'\n' order by line), '') from (
		select concat_ws(' ', 'task', t.template, t.key, t.input, t.state, t.result, t.error->>'type', n.steps) as line
		from pawl.tasks t cross join lateral (select string_agg(concat_ws(':', s.step, s.state, s.error->>'type', s.result), ' ' order by s.step) as steps
			from pawl.steps s where s.task_id = t.task_id) n
		union all select concat_ws(' ', 'key', i.scope, i.key, i.status, i.epoch) from pawl.task_identities i
		union all select concat_ws(' ', 'step key', i.scope, i.key, i.status) from pawl.step_identities i
		union all select concat_ws(' ', 'claim', c.entity, c.entity_id) from pawl.entity_claims c
		union all select concat_ws(' ', 'invoice', i.number, i.status) from invoices i
		union all select concat_ws(' ', 'dead', d.queue, d.status, count(*)) from pawl.dead_letters d group by d.queue, d.status
		union all select concat_ws(' ', 'repaired', r.kind, r.cause, count(*)) from pawl.repairs r group by r.kind, r.cause
		union all select concat_ws(' ', 'reply', r.message->>'outcome', r.message->>'status', count(*)) from pgmq.q_replies r
			where r.message->>'outcome' = 'created' group by r.message->>'outcome', r.message->>'status'
		union all select concat_ws(' ', 'queue', q.queue, q.paused, q.max_concurrency) from pawl.queues q where q.gated
		union all select concat_ws(' ', 'left', m.queue, m.n) from (
			select 'work' as queue, count(*) as n from pgmq.q_work_queue union all select 'gated', count(*) from pgmq.q_gated_queue
			union all select 'pay', count(*) from pgmq.q_pay_queue) m) l`)
}

// counted is where tasks stand while workers still work: states and counters. Which of two waiters gets a free key is
// nobody's promise, nor is how the step is called that reported under a claim while its task was cancelled: its row tells.
func counted(k *kit.Kit) string {
	k.Helper()
	return kit.Get[string](k, `select coalesce(string_agg(line, e'\n' order by line), '') from (
		select concat_ws(' ', t.template, t.key, case when t.template <> 'keyed' then t.input end, t.state, t.open_count, t.active_count, t.held_count, t.retrying_count,
			t.waiting_count, t.failed_count, t.error->>'type', n.steps) as line
		from pawl.tasks t cross join lateral (select string_agg(concat_ws(':', s.step, case when t.template = 'pay' and t.state = 'cancelled' then 'ended'
				else concat_ws(':', s.state, s.failures, case s.state when 'in_progress' then s.deliveries end, case when t.finalized_at is null then s.needs_open end, s.error->>'type') end), ' ' order by s.step) as steps
			from pawl.steps s where s.task_id = t.task_id) n
		union all select concat_ws(' ', 'key', i.key, i.status, i.epoch) from pawl.task_identities i
		union all select concat_ws(' ', 'invoice', i.number, i.status) from invoices i where i.status <> 'sent') l`)
}
