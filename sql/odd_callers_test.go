package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMessageWithoutAnAttemptEndsNoAttempt(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	task := k.Submit("shop/one")
	d := k.ClaimOne("work_queue")
	k.Exec(`insert into pgmq.q_work_queue (vt, read_ct, message) values (clock_timestamp(), 50,
		jsonb_build_object('task_id', $1::text, 'step', 'a'))`, task.String())
	require.Empty(t, k.Claim("work_queue"))
	k.Rest()
	require.Equal(t, "in_progress", k.steps(task)["a"])
	require.Equal(t, 1, get[int](k, "select count(*) from pawl.absorbed where reason = 'stale delivery' and task_id = $1", task))
	k.Finish("work_queue", d)
	require.Equal(t, "complete", k.State(task))
}

func TestASubmitIsNobodysCommand(t *testing.T) {
	k := newRolesKit(t)
	k.Template("sub/one", nil, step("a"))
	producer, _ := k.login("pawl_producer")
	producer.Exec("select set_config('pawl.actor', 'ann', false), set_config('pawl.reason', 'she said so', false)")
	require.Nil(t, producer.submit(plain()))
	require.NotZero(t, get[int](k, "select count(*) from pawl.audit"))
	require.Empty(t, list[string](k, "select distinct actor || ': ' || reason from pawl.audit where actor is not null or reason is not null"))
}

func TestProducerRoleChoosesNoMessageID(t *testing.T) {
	k := newRolesKit(t)
	k.Exec("grant insert on pgmq.q_orchestration_task_requests to pawl_producer") // as it was granted once
	k.Exec("select pawl.refresh_roles()")
	producer, _ := k.login("pawl_producer")
	const columns = "insert into pgmq.q_orchestration_task_requests "
	producer.refused(denied, columns+"(msg_id, vt, message) overriding system value values (7, now(), '{}')")
	producer.refused(denied, columns+"(vt, read_ct, message) values (now(), 7, '{}')")
	producer.Exec(`select pgmq.send('orchestration_task_requests', '{}'::jsonb, '{"traceparent": "x"}'::jsonb)`)
	producer.Exec(`select pgmq.send_batch('orchestration_task_requests', array['{}', '{}']::jsonb[])`)
	require.Equal(t, 3, get[int](k, "select count(*) from pgmq.q_orchestration_task_requests"))
}

func TestASettingOfTheEngineIsNotCutToItsBound(t *testing.T) {
	k := newKit(t)
	for _, given := range []int{10_001, 20_000} {
		raised := k.refused("PW024", "select pawl.configure_engine($1, 'ann', 'more')", object{"max_steps_per_transaction": given})
		require.Contains(t, raised.Hint, "10000")
	}
	k.object("select pawl.configure_engine($1, 'ann', 'more')", object{"max_steps_per_transaction": 10_000})
	require.Equal(t, 10_000, get[int](k, "select max_steps_per_transaction from pawl.engine_settings"))
	k.object("select pawl.configure_engine($1, 'ann', 'as it was')", object{"max_steps_per_transaction": nil})
	require.Equal(t, 2000, get[int](k, "select max_steps_per_transaction from pawl.engine_settings"))
}

func TestARefusedDeliveryEndsItsOwnIndex(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	task := k.Submit("shop/one")
	k.Exec(`select pawl.refuse_delivery('work_queue', (0, 0, jsonb_build_object('task_id', $1::text, 'step', 'a', 'index', 3, 'attempt', 1),
		null)::pawl.delivery, 'P0001', 'it raises')`, task.String())
	require.Equal(t, object{"v": 1.0, "task_id": task.String(), "step": "a", "index": 3.0, "attempt": 1.0, "status": "failed", "worker": nil,
		"error": object{"type": "dead_letter", "message": "it raises", "retryable": true}},
		k.object("select message from pgmq.q_orchestration_step_results"))
}

func TestALeaseHasALengthThatSomebodyLivesToSee(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	k.Submit("shop/one")
	for _, lease := range []any{0, -5, 43_200_001, 9_000_000_000_000_000} {
		k.refused("PW024", "select pawl.claim_steps('work_queue', 1, 'w', jsonb_build_object('lease_ms', $1::bigint))", lease)
		k.refused("PW024", "select pawl.extend_leases('work_queue', '[]', $1)", lease)
	}
	k.refused("PW024", "select pawl.extend_leases('work_queue', '[]', null)")
	for _, quantity := range []any{nil, -1} {
		k.refused("PW024", "select pawl.claim_steps('work_queue', $1, 'w')", quantity)
	}
	require.Equal(t, "[]", get[string](k, "select pawl.claim_steps('work_queue', 0, 'w')::text"))
	k.Exec(`select pawl.claim_steps('work_queue', 1, 'w', '{"lease_ms": null}')`)
}
