package sql_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// reportingWhileBusy leaves a transaction open that has reported the claimed step as complete while somebody held its
// task: the claim is ended, the result waits in its queue, nothing is committed.
func reportingWhileBusy(k *kit, task uuid.UUID, d delivery) *kit {
	k.Helper()
	busy, reporting := k.begin(), k.begin()
	busy.Exec("select from pawl.tasks where task_id = $1 for no key update", task)
	reporting.Finish("work_queue", d)
	busy.commit()
	return reporting
}

// reportedUnderALock claims and reports a payment while somebody holds its row: the claim stays, and the result that is to
// move the row waits in its queue.
func reportedUnderALock(k *kit) (task uuid.UUID, holder *kit) {
	k.Helper()
	task = k.pay("A-1", "admin")
	d := k.ClaimOne("work_queue")
	holder = k.begin()
	holder.Exec("select from invoices where number = 'A-1' for update")
	k.Finish("work_queue", d)
	return task, holder
}

// withoutWaiting runs a statement that others' locks must not keep.
func withoutWaiting(k *kit, sql string, args ...any) {
	k.Helper()
	prompt := k.begin()
	prompt.Exec("set local lock_timeout = '2 s'")
	prompt.Exec(sql, args...)
	prompt.commit()
}

func heartbeat(k *kit, d delivery) string {
	k.Helper()
	return get[[]object](k, `select pawl.extend_leases('work_queue', jsonb_build_array(
		jsonb_build_object('msg_id', $1::bigint, 'read_ct', $2::int)))`, d.ID, d.ReadCount)[0]["status"].(string)
}

// A report may be part of a user's transaction that stays open: a cancel does not wait for it.
func TestCancelDoesNotWaitForAReportUnderAClaim(t *testing.T) {
	for _, way := range []string{"staged = false", "staged = true"} {
		t.Run("the report is committed, "+way, func(t *testing.T) {
			k := newCommittingKit(t)
			invoices(k, nil)
			task := k.pay("A-1", "admin")
			reporting := reportingWhileBusy(k, task, k.ClaimOne("work_queue"))
			withoutWaiting(k, "select pawl.cancel_task($1, 'ann', 'r')", task)
			require.Equal(t, "cancelled", k.State(task))
			setting(k, way)
			reporting.commit()
			k.Rest()
			require.Equal(t, "paid 3", k.invoice("A-1"))
			require.Equal(t, map[string]string{"pay": "complete", "tell": "cancelled"}, k.steps(task))
			require.Zero(t, get[int](k, "select count(*)::int from pawl.dead_letters"))
			require.Zero(t, get[int](k, "select count(*)::int from pawl.entity_claims"))
			k.sound()
		})
	}
	t.Run("the report is rolled back", func(t *testing.T) {
		k := newCommittingKit(t)
		invoices(k, nil)
		task := k.pay("A-1", "admin")
		d := k.ClaimOne("work_queue")
		reporting := reportingWhileBusy(k, task, d)
		withoutWaiting(k, "select pawl.cancel_task($1, 'ann', 'r')", task)
		require.NoError(t, reporting.DB.(pgx.Tx).Rollback(t.Context()))
		require.Equal(t, "cancelled", heartbeat(k, d), "the body hears of the cancel although nobody could mark its claim")
		require.Equal(t, "in_progress", k.steps(task)["pay"])
		require.True(t, k.Report("work_queue", d, object{"status": "failed", "error": object{"type": "stopped"}}))
		k.Rest()
		require.Equal(t, "sent 3", k.invoice("A-1"))
		require.Equal(t, map[string]string{"pay": "error", "tell": "cancelled"}, k.steps(task))
		require.Zero(t, get[int](k, "select count(*)::int from pawl.entity_claims"))
		k.sound()
	})
}

// The clock waits for nobody: a task whose claim is being reported is left for the next round, the others go on.
func TestClockPassesOverAClaimThatSomebodyHolds(t *testing.T) {
	k := newCommittingKit(t)
	invoices(k, object{"timeout_ms": 1000})
	k.Template("order/slow", nil, step("a", object{"timeout_ms": 1000, "queue": "slow_queue"}))
	task := k.pay("A-1", "admin")
	d, other := k.ClaimOne("work_queue"), k.Submit("order/slow")
	k.ClaimOne("slow_queue")
	reporting := reportingWhileBusy(k, task, d)
	k.Later(10 * time.Second)
	withoutWaiting(k, "select pawl.fire_due(100, 'clock')")
	require.Equal(t, "waiting_for_retry", k.steps(other)["a"])
	require.Equal(t, "in_progress", k.steps(task)["pay"])
	reporting.commit()
	k.Rest()
	require.Equal(t, "complete", k.steps(task)["pay"])
	require.Equal(t, "paid 3", k.invoice("A-1"))
	k.sound()
}

// The row was held when its step reported, and the step's time is over before it is free: the body's word counts.
func TestTimeoutAfterTheReportLeavesTheRowToTheResult(t *testing.T) {
	k := newCommittingKit(t)
	invoices(k, object{"timeout_ms": 1000})
	task, holder := reportedUnderALock(k)
	k.Later(10 * time.Second)
	k.Tick()
	holder.commit()
	k.Rest()
	require.Equal(t, "complete", k.steps(task)["pay"])
	require.Equal(t, "paid 3", k.invoice("A-1"))
	require.Zero(t, get[int](k, "select count(*)::int from pawl.entity_claims"))
	k.sound()
}

// The row was held when its step reported, and the user's table refuses what the result would write: the result becomes a
// dead letter, and the claim is its janitor's.
func TestDeadLetterOfAResultLeavesItsClaimToTheJanitor(t *testing.T) {
	for name, cancelled := range map[string]bool{"its task is open": false, "its task has ended": true} {
		t.Run(name, func(t *testing.T) {
			k := newCommittingKit(t)
			invoices(k, object{"timeout_ms": 1000})
			task, holder := reportedUnderALock(k)
			holder.commit()
			if cancelled {
				k.Exec("select pawl.cancel_task($1, 'ann', 'not needed')", task)
			}
			k.Exec("create function no() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$")
			k.Exec("create trigger no before update on invoices for each row execute function no()")
			k.refused("P0001", "select pawl.apply_step_results($1)", k.ids("orchestration_step_results"))
			for ids := k.ids("orchestration_step_results"); len(ids) > 0; ids = k.ids("orchestration_step_results") {
				if _, err := k.DB.Exec(t.Context(), "select pawl.apply_step_results($1)", ids); err != nil {
					k.Exec("select pawl.dead_letter_messages('orchestration_step_results', $1, 'it raises')", ids)
				}
			}
			require.Equal(t, "error", k.steps(task)["pay"])
			require.Equal(t, "paying 2", k.invoice("A-1"))

			k.Exec("drop trigger no on invoices")
			require.EqualValues(t, 0, k.janitor()["reverted"], "younger than the limit")
			k.Later(6 * time.Minute)
			require.EqualValues(t, 1, k.janitor()["reverted"])
			require.Equal(t, "sent 3", k.invoice("A-1"))
			require.Zero(t, get[int](k, "select count(*)::int from pawl.entity_claims"))
			k.sound()
		})
	}
}

// fail_fast ends what is open, as a cancel does: a step whose entity claim was committing meanwhile is left to its owner.
func TestFailFastSeesAnEntityClaimThatWasCommittingMeanwhile(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("order/fast", object{"on_failure": "fail_fast"}, step("a"), step("b", object{"queue": "other_queue"}))
	task := k.Submit("order/fast")
	failing := k.ClaimOne("other_queue")
	claiming, reporting := k.begin(), k.begin()
	pid := reporting.pid()
	claiming.ClaimOne("work_queue")
	done := reporting.start(`select pawl.report_steps('other_queue', jsonb_build_array(jsonb_build_object('msg_id', $1::bigint, 'read_ct', $2::int,
		'status', 'rejected', 'error', jsonb_build_object('type', 'bad'))), 'w')`, failing.ID, failing.ReadCount)
	k.untilWaiting(pid)
	claiming.Exec(`insert into pawl.entity_claims (entity, entity_id, task_id, step, attempt, version, revert_to, on_success, claimed_at, lease_until)
		values ('invoice', '7', $1, 'a', 1, 1, 'open', 'sent', now(), now())`, task)
	claiming.commit()
	reporting.ended(done)
	reporting.commit()
	require.Equal(t, map[string]string{"a": "in_progress", "b": "error"}, k.steps(task))
}
