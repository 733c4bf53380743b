package sql_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// pair runs two statements on two connections, the second while the first is not committed, and gives the second's error.
// Both orders of two operations are two calls of it.
func (k *kit) pair(first, second string, args ...any) error {
	k.Helper()
	one, two := k.begin(), k.begin()
	pid := two.pid()
	one.Exec(first, args...)
	done := two.start(second, args...)
	k.untilWaitingOr(done, pid)
	one.commit()
	err := <-done
	if err == nil {
		two.commit()
	}
	return err
}

func TestRetryAndSubmitOfOneKeyInBothOrders(t *testing.T) {
	retry := "select pawl.retry_task($1::uuid, null, 'ann', 'r')"
	submit := `select pawl.process_task_requests(jsonb_build_array(jsonb_build_object('msg_id', (select msg_id from pgmq.q_orchestration_task_requests),
		'template_id', (select max(template_id) from pawl.templates))), 'p') where $1::uuid is not null`
	prepare := func(t *testing.T) (*kit, uuid.UUID) {
		k := newCommittingKit(t)
		k.Template("order/one", nil, step("a"))
		task := k.Submit("order/one", object{"key": "k1"})
		k.fail("work_queue", k.ClaimOne("work_queue"))
		k.Exec(`select pgmq.send('orchestration_task_requests', '{"template": "order/one", "input": {}, "key": "k1"}')`)
		return k, task
	}
	t.Run("submit first", func(t *testing.T) {
		k, task := prepare(t)
		require.True(t, isCode(k.pair(submit, retry, task), "PW022"), "the new task has the key")
		require.Equal(t, "error", k.State(task))
		require.Equal(t, 2, get[int](k, "select count(*)::int from pawl.tasks"))
		k.sound()
	})
	t.Run("retry first", func(t *testing.T) {
		k, task := prepare(t)
		one, two := k.begin(), k.begin()
		one.Exec(retry, task)
		done := two.start(submit, task)
		// A submit need not wait for the retry: whichever way, one task has the key in the end and both say which.
		one.commit()
		two.ended(done)
		two.commit()
		holder := get[uuid.UUID](k, "select task_id from pawl.task_identities where key = 'k1'")
		require.Equal(t, task, holder)
		require.Equal(t, "steps_in_process", k.State(task))
		require.Equal(t, 1, get[int](k, "select count(*)::int from pawl.tasks"))
		k.sound()
	})
}

func TestTwoCommandsOnOneTaskInBothOrders(t *testing.T) {
	cancel := "select pawl.cancel_task($1, 'ann', 'r')"
	resolve := "select pawl.resolve_step($1, 'a', 0, 'bob', 'r')"
	for name, order := range map[string][2]string{"cancel first": {cancel, resolve}, "resolve first": {resolve, cancel}} {
		t.Run(name, func(t *testing.T) {
			k := newCommittingKit(t)
			k.Template("order/two", nil, step("a"), step("b: a"))
			task := k.Submit("order/two")
			err := k.pair(order[0], order[1], task)
			require.Equal(t, "cancelled", k.State(task))
			if name == "cancel first" {
				require.True(t, isCode(err, "PW021"))
				require.Equal(t, map[string]string{"a": "cancelled", "b": "cancelled"}, k.steps(task))
			} else {
				require.NoError(t, err)
				require.Equal(t, map[string]string{"a": "resolved_manually", "b": "cancelled"}, k.steps(task))
			}
			k.sound()
		})
	}
}

func TestRetryFromAStepAndResultInBothOrders(t *testing.T) {
	retry := "select pawl.retry_task($1::uuid, 'a', 'ann', 'r')"
	apply := "select pawl.apply_step_results(array(select msg_id from pgmq.q_orchestration_step_results), $1::uuid::text)"
	for name, order := range map[string][2]string{"retry first": {retry, apply}, "result first": {apply, retry}} {
		t.Run(name, func(t *testing.T) {
			k := newCommittingKit(t)
			k.Exec("update pawl.engine_settings set direct = false")
			k.Template("order/three", nil, step("a"), step("b: a"), step("c: b"))
			task := k.Submit("order/three")
			k.Finish("work_queue", k.ClaimOne("work_queue"))
			k.Rest()
			k.Finish("work_queue", k.ClaimOne("work_queue")) // the result of b waits in its queue
			require.NoError(t, k.pair(order[0], order[1], task))
			k.Expire("orchestration_step_results") // the retry may have taken longer than a result waits for it
			k.Rest()
			require.Equal(t, "pending", k.steps(task)["c"])
			k.Expire("work_queue")
			require.Equal(t, []string{"a", "b", "c"}, k.work("work_queue"))
			require.Equal(t, "complete", k.State(task))
			k.sound()
		})
	}
}

// The gate never waits for an operator; an operator waits for the gate.
func TestGateAndConfigurationInBothOrders(t *testing.T) {
	k := newCommittingKit(t)
	k.configure("gated_queue", object{"max_concurrency": 1})
	k.many(3)
	k.Exec("delete from pgmq.q_orchestration_step_enqueues")
	require.NoError(t, k.pair("select pawl.release_held(10, $1)", "select pawl.configure_queue('gated_queue', '{\"max_concurrency\": 2}', $1, 'r')", "ann"))
	require.Equal(t, 1, k.release(), "the new limit")

	changing := k.begin()
	changing.configure("gated_queue", object{"max_concurrency": 3})
	require.Zero(t, k.release(), "somebody changes the queue: later")
	changing.commit()
	require.Equal(t, 1, k.release())
	k.sound()
}

// A gate that is releasing and a command that ends the task: the command waits; the other way round the gate passes over.
func TestGateAndCancelInBothOrders(t *testing.T) {
	k := newCommittingKit(t)
	k.configure("gated_queue", object{"rate_limit": "1/hour", "burst": 1})
	tasks := k.many(2)
	cancel := "select pawl.cancel_task($1, 'ann', 'r')"
	k.Exec("delete from pgmq.q_orchestration_step_enqueues")
	require.NoError(t, k.pair("select pawl.release_held(10, $1::uuid::text)", cancel, tasks[0]))
	require.Equal(t, map[string]string{"a": "cancelled"}, k.steps(tasks[0]))

	k.configure("gated_queue", object{"rate_limit": nil})
	k.Exec("delete from pgmq.q_orchestration_step_enqueues")
	cancelling := k.begin()
	cancelling.Exec(cancel, tasks[1])
	require.Zero(t, k.release())
	cancelling.commit()
	require.Zero(t, k.release())
	require.Empty(t, list[string](k, "select queue from pawl.held_steps"))
	k.Expire("gated_queue")
	require.Empty(t, k.Claim("gated_queue"))
	k.sound()
}

// The claim's entity claim is seen by a cancel that waited for it: the step is left to its owner.
func TestCancelSeesAnEntityClaimThatWasCommittingMeanwhile(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("order/one", nil, step("a"))
	task := k.Submit("order/one")
	claiming, cancelling := k.begin(), k.begin()
	pid := cancelling.pid()
	claiming.ClaimOne("work_queue")
	done := cancelling.start("select pawl.cancel_task($1, 'ann', 'r')", task)
	k.untilWaiting(pid)
	claiming.Exec(`insert into pawl.entity_claims (entity, entity_id, task_id, step, attempt, version, revert_to, on_success, claimed_at, lease_until)
		values ('invoice', '7', $1, 'a', 1, 1, 'open', 'sent', now(), now())`, task)
	claiming.commit()
	cancelling.ended(done)
	cancelling.commit()
	require.Equal(t, map[string]string{"a": "in_progress"}, k.steps(task))
	require.Equal(t, "cancelled", k.State(task))
	require.True(t, get[bool](k, "select revoked_at is not null from pawl.entity_claims"))
}

// The reconciler passes over a task that somebody holds; who comes while it repairs comes again and finds it repaired.
func TestReconcilerAndResultInBothOrders(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("order/one", nil, step("a"))
	task := k.Submit("order/one")
	message := k.object("select message from pgmq.pop('work_queue')")
	k.Later(2 * time.Minute)
	k.reconcile()
	holder := k.begin()
	holder.Exec("select from pawl.tasks where task_id = $1 for no key update", task)
	require.Equal(t, nothing, k.reconcile()["repaired"])
	holder.commit()

	result := object{"task_id": message["task_id"], "step": message["step"], "attempt": message["attempt"], "status": "complete"}
	repairing := k.begin()
	require.Equal(t, object{"engine": 0.0, "foreign": 1.0}, repairing.reconcile()["repaired"])
	k.Exec("select pgmq.send('orchestration_step_results', $1::jsonb)", result)
	apply := "select pawl.apply_step_results(array(select msg_id from pgmq.q_orchestration_step_results), 'p')"
	require.Zero(t, get[int](k, apply), "it comes back in a moment")
	repairing.commit()
	require.Equal(t, 1, get[int](k, apply))
	require.Equal(t, "waiting_for_retry", k.steps(task)["a"])
	require.Equal(t, 1, get[int](k, "select count(*)::int from pawl.absorbed"))
	k.sound()
}

// The key of a task that ended long ago goes with the sweep, or comes back with the retry; a task without its key is neither.
func TestRetryAndTheSweepOfItsKeyInBothOrders(t *testing.T) {
	const retry, sweep = "select pawl.retry_task($1, null, 'ann', 'r')", "select pawl.sweep_identities(100, '', '') where $1::uuid is not null"
	for name, first := range map[string]string{"sweep first": sweep, "retry first": retry} {
		t.Run(name, func(t *testing.T) {
			k := newCommittingKit(t)
			k.Template("order/one", nil, step("a"))
			task := k.Submit("order/one", object{"key": "k1"})
			k.fail("work_queue", k.ClaimOne("work_queue"))
			k.Exec("update pawl.task_identities set expires_at = clock_timestamp() - interval '1 s'")
			if first == sweep {
				require.NoError(t, k.pair(sweep, retry, task))
			} else {
				one, two := k.begin(), k.begin()
				one.Exec(retry, task)
				two.Exec(sweep, task) // passes the identity that the retry holds
				one.commit()
				two.commit()
			}
			require.Equal(t, task, get[uuid.UUID](k, "select task_id from pawl.task_identities where key = 'k1' and status = 'running' and expires_at is null"))
			k.sound()
		})
	}
}
