package sql_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

var oneLost = object{"engine": 0.0, "foreign": 1.0}

// withoutItsResult is a step that was reported while somebody held its row, and whose result has disappeared since.
func withoutItsResult(k *kit) uuid.UUID {
	k.Helper()
	invoices(k, nil)
	task, holder := reportedUnderALock(k)
	holder.commit()
	k.Exec("select pgmq.purge_queue('orchestration_step_results')")
	k.Later(time.Hour)
	require.EqualValues(k, 0, k.janitor()["reverted"])
	return task
}

func TestAClaimWhoseResultIsGoneIsTheJanitors(t *testing.T) {
	k := newCommittingKit(t)
	task := withoutItsResult(k)
	require.Equal(t, oneLost, k.reconcile()["repaired"])
	require.Equal(t, nothing, k.reconcile()["repaired"], "once")
	require.Equal(t, []string{"lost_result foreign pay 1"},
		list[string](k, "select concat_ws(' ', kind, cause, step, attempt) from pawl.repairs where task_id = $1", task))
	k.Later(2 * time.Hour)
	require.EqualValues(t, 1, k.janitor()["reverted"])
	require.Equal(t, "sent 3", k.invoice("A-1"))
	require.Equal(t, "waiting", k.steps(task)["pay"], "a person decides")
	k.Exec("select pawl.complete_step($1, 'pay', 0, '1', 'ann', 'the bank has it')", task)
	k.work("work_queue")
	require.Equal(t, "complete", k.State(task))
	k.sound()
}

func TestAClaimOfACancelledTaskWhoseResultIsGoneIsTheJanitors(t *testing.T) {
	k := newCommittingKit(t)
	task := withoutItsResult(k)
	k.Exec("select pawl.cancel_task($1, 'ann', 'r')", task)
	k.Rest()
	require.Equal(t, oneLost, k.reconcile()["repaired"])
	k.Later(2 * time.Hour)
	require.EqualValues(t, 1, k.janitor()["reverted"])
	require.Zero(t, get[int](k, "select count(*)::int from pawl.entity_claims"))
	k.Later(1000 * 24 * time.Hour)
	k.Exec("select pawl.sweep(100, 'kit')")
	require.Zero(t, get[int](k, "select count(*)::int from pawl.tasks"))
}

func TestAResultThatWaitsForItsRowKeepsItsClaim(t *testing.T) {
	k := newCommittingKit(t)
	invoices(k, nil)
	task, holder := reportedUnderALock(k)
	k.Exec("update pgmq.q_orchestration_step_results set vt = vt + interval '1 h'")
	k.Later(time.Hour)
	require.Equal(t, nothing, k.reconcile()["repaired"], "visible or not")
	holder.commit()
	k.Exec("update pgmq.q_orchestration_step_results set vt = clock_timestamp()")
	applying := k.begin()
	applying.Rest()
	require.Equal(t, nothing, k.reconcile()["repaired"], "somebody is at it")
	applying.commit()
	require.Equal(t, nothing, k.reconcile()["repaired"])
	require.Equal(t, "paid 3", k.invoice("A-1"))
	require.Equal(t, "complete", k.steps(task)["pay"])
}
