package sql_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func (k *kit) end(state string, tasks ...uuid.UUID) []uuid.UUID {
	k.Helper()
	return get[[]uuid.UUID](k, `with locked as materialized (select task_id from pawl.tasks where task_id = any ($1) order by 1 for no key update)
		select pawl.end_tasks(array(select task_id from locked), $2::text::pawl.task_state, '{"type": "because"}')`, tasks, state)
}

func TestEndedTaskLeavesNothingOpen(t *testing.T) {
	k := newKit(t)
	k.Template("shop/wide", nil, step("a"), step("b", object{"queue": "other_queue"}), step("c: a b"))
	for _, state := range []string{"cancelled", "timed_out", "error"} {
		task := k.Submit("shop/wide", object{"key": state})
		running := k.ClaimOne("work_queue")
		require.Equal(t, []uuid.UUID{task}, k.end(state, task))
		require.Equal(t, state, k.State(task))
		require.Equal(t, map[string]string{"a": "cancelled", "b": "cancelled", "c": "cancelled"}, k.steps(task))
		require.Equal(t, "because", get[string](k, "select error->>'type' from pawl.tasks where task_id = $1", task))
		status := get[string](k, "select status from pawl.task_identities where key = $1 and expires_at is not null", state)
		require.Contains(t, []string{"cancelled", "timed_out", "failed"}, status)

		// What was under way is told or absorbed, and changes nothing.
		heartbeat := get[[]object](k, `select pawl.extend_leases('work_queue', jsonb_build_array(
			jsonb_build_object('msg_id', $1::bigint, 'read_ct', $2::int)))`, running.ID, running.ReadCount)
		require.Equal(t, "cancelled", heartbeat[0]["status"])
		k.late("work_queue", running)
		k.Rest()
		require.Empty(t, k.Claim("other_queue"))
		require.Equal(t, state, k.State(task))
		require.Equal(t, 2, get[int](k, "select count(*)::int from pawl.absorbed where task_id = $1", task))
		require.Empty(t, k.end("cancelled", task), "the second end finds nothing to end")
	}
	k.sound()
}

func TestEndedTaskLeavesAStepUnderAnEntityClaimToItsOwner(t *testing.T) {
	k := newKit(t)
	k.Template("shop/claimed", nil, step("a"), step("b"))
	task := k.Submit("shop/claimed")
	claimed := k.Claim("work_queue")
	k.Exec(`insert into pawl.entity_claims (entity, entity_id, task_id, step, attempt, version, revert_to, on_success, claimed_at, lease_until)
		values ('invoice', '7', $1, 'a', 1, 1, 'open', 'sent', now(), now())`, task)
	k.end("cancelled", task)
	require.Equal(t, map[string]string{"a": "in_progress", "b": "cancelled"}, k.steps(task))
	require.True(t, get[bool](k, "select revoked_at is not null from pawl.entity_claims"))

	k.Exec("delete from pawl.entity_claims")
	require.Equal(t, "a", claimed[0].Step)
	require.True(t, k.Report("work_queue", claimed[0], object{"status": "failed", "error": object{"type": "stopped"}}))
	k.Rest()
	require.Equal(t, map[string]string{"a": "error", "b": "cancelled"}, k.steps(task))
	require.Equal(t, "cancelled", k.State(task))
}
