package sql_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	engine "github.com/pawl-dev/pawl/test/kit"
)

// slotted gives a task whose only attempt failed while a first limit was being set, unseen: its slot outlived it.
func (k *kit) slotted() (task any) {
	k.Helper()
	task = k.many(1)[0]
	d := k.ClaimOne("gated_queue")
	operator := k.begin()
	operator.configure("gated_queue", object{"max_concurrency": 1})
	require.True(k, k.Report("gated_queue", d, engine.Failed(true, time.Second)))
	operator.commit()
	require.Equal(k, 1, get[int](k, "select count(*)::int from pawl.held_steps where released_at is not null"))
	k.Later(time.Minute)
	return task
}

// A slot that came too late for the end of its attempt does not keep the next one from its place behind the gate.
func TestARetryBehindALateSlotStandsBehindTheGate(t *testing.T) {
	k := newCommittingKit(t)
	task := k.slotted()
	k.Tick()
	require.Contains(t, get[object](k, "select pawl.explain_task($1)", task)["steps"].([]any)[0].(object)["why"], "releases it with its next look")
	k.Rest()
	k.Release()
	d := k.ClaimOne("gated_queue")
	require.Equal(t, 2, d.Attempt)
	require.Equal(t, []int{2}, list[int](k, "select attempt from pawl.held_steps where released_at is not null"))
	k.Finish("gated_queue", d)
	require.Zero(t, get[int](k, "select count(*)::int from pawl.held_steps"))
	k.sound()
}

// Only a row that waits for its release is an owner: a ready step with a slot has nobody, and the reconciler sees it.
func TestAReadyStepWithASlotIsNotHeld(t *testing.T) {
	k := newCommittingKit(t)
	task := k.slotted()
	// As an older version left it.
	k.Exec("update pawl.steps set state = 'pending', revision = revision + 1, due_at = null")
	k.Exec("update pawl.tasks set state = 'enqueuing_steps', revision = revision + 1, retrying_count = 0, held_count = 1")
	why := "select readiness from pawl.get_step_readiness_status($1)"
	require.Equal(t, "ready", get[string](k, why, task))
	k.Later(10 * time.Minute)
	require.Equal(t, object{"engine": 1.0, "foreign": 0.0}, k.reconcile()["repaired"])
	require.Equal(t, "held", get[string](k, why, task))
	k.Release()
	require.Equal(t, []string{"a"}, k.work("gated_queue"))
	k.sound()
}
