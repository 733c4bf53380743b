package sql_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// invoices makes a table of the user's, registers it, and applies the template billing/pay, whose step pay claims its row.
func invoices(k *kit, step1 object) {
	k.Exec(`create table invoices (number text primary key, status text not null, version int not null default 1)`)
	k.Exec(`insert into invoices values ('A-1', 'sent', 1), ('A-2', 'sent', 7)`)
	k.Exec("select pawl.register_entity('invoice', $1, 'ann', 'first use')", entity(nil))
	k.Exec("select pawl.beat_janitor('billing')")
	pay := step("pay", object{"claim": object{"admin": payClaim(nil), "cron": "none"}}, step1)
	k.Template("billing/pay", object{}, pay, step("tell: pay"))
}

func entity(fields object) object {
	e := object{"table": "invoices", "key": "number", "status": "status", "version": "version", "module": "billing",
		"states": []string{"sent", "paying", "paid", "overdue"}}
	maps.Copy(e, fields)
	return e
}

func payClaim(fields object) object {
	c := object{"entity": "invoice", "id": "${input.invoice}", "from": "sent", "into": "paying", "revert_to": "sent",
		"on_success": "paid", "on_busy": "fail"}
	maps.Copy(c, fields)
	return c
}

func (k *kit) pay(invoice, requester string) uuid.UUID {
	k.Helper()
	return k.Submit("billing/pay", object{"input": object{"invoice": invoice}, "requester": requester})
}

func (k *kit) invoice(number string) string {
	k.Helper()
	return get[string](k, "select status || ' ' || version from invoices where number = $1", number)
}

func (k *kit) stepError(task uuid.UUID, name string) string {
	k.Helper()
	return get[string](k, "select coalesce(error->>'type', '') from pawl.steps where task_id = $1 and step = $2", task, name)
}

func (k *kit) janitor() object {
	k.Helper()
	return k.object("select pawl.revert_stale_claims('billing', 'janitor')")
}

func TestClaimMovesTheRowAndSuccessMovesItOn(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	task := k.pay("A-1", "admin")
	d := k.ClaimOne("work_queue")
	require.Equal(t, "paying 2", k.invoice("A-1"))
	k.Finish("work_queue", d)
	require.Equal(t, "paid 3", k.invoice("A-1"))
	require.Zero(t, get[int](k, "select count(*) from pawl.entity_claims"))
	k.work("work_queue")
	require.Equal(t, "complete", k.State(task))
	k.sound()
}

func TestFailureAndRejectionMoveTheRowBack(t *testing.T) {
	for _, status := range []string{"failed", "rejected"} {
		t.Run(status, func(t *testing.T) {
			k := newKit(t)
			invoices(k, nil)
			task := k.pay("A-1", "admin")
			k.Report("work_queue", k.ClaimOne("work_queue"), object{"status": status, "error": object{"type": "no", "retryable": false}})
			require.Equal(t, "sent 3", k.invoice("A-1"))
			require.Equal(t, "error", k.State(task))
		})
	}
}

func TestLoserOfAClaimFailsAndNeverRuns(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	k.pay("A-1", "admin")
	d := k.ClaimOne("work_queue")
	loser := k.pay("A-1", "admin")
	require.Empty(t, k.Claim("work_queue"))
	k.Rest()
	require.Equal(t, "error", k.State(loser))
	require.Equal(t, "claim_failed", k.stepError(loser, "pay"))
	require.Equal(t, "another operation is already in progress", get[string](k, "select error->>'message' from pawl.tasks where task_id = $1", loser))
	k.Finish("work_queue", d)
	late := k.pay("A-1", "admin")
	k.work("work_queue")
	k.Rest()
	require.Equal(t, "claim_failed", k.stepError(late, "pay"))
	require.Equal(t, "paid 3", k.invoice("A-1"))
	k.sound()
}

func TestBusyClaimMayWait(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	k.Template("billing/wait", object{}, step("pay", object{"claim": object{"default": payClaim(object{"on_busy": "wait"})}}))
	k.pay("A-1", "admin")
	first := k.ClaimOne("work_queue")
	second := k.Submit("billing/wait", object{"input": object{"invoice": "A-1"}})
	for range 15 { // waiting is not counted as crashing
		require.Empty(t, k.Claim("work_queue"))
		require.True(t, get[bool](k, "select vt < clock_timestamp() + interval '640 ms' from pgmq.q_work_queue where message->>'task_id' = $1", second.String()),
			"it is back before the last look of workers that its put-off woke")
		k.Exec("update pgmq.q_work_queue set vt = clock_timestamp() where message->>'task_id' = $1", second.String())
	}
	k.Report("work_queue", first, object{"status": "failed", "error": object{"type": "no", "retryable": false}})
	d := k.ClaimOne("work_queue")
	require.Equal(t, second, d.Task)
	k.Finish("work_queue", d)
	require.Equal(t, "complete", k.State(second))
}

func TestRequesterWithoutAClaimBeginsAsUsual(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	k.pay("A-1", "cron")
	k.pay("A-1", "nobody")
	require.Len(t, k.Claim("work_queue"), 2)
	require.Equal(t, "sent 1", k.invoice("A-1"))
}

func TestClaimOfAMissingRowFails(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	missing, unnamed := k.pay("A-9", "admin"), k.Submit("billing/pay", object{"requester": "admin"})
	k.work("work_queue")
	k.Rest()
	require.Equal(t, []string{"claim_failed", "claim_failed"}, []string{k.stepError(missing, "pay"), k.stepError(unnamed, "pay")})
}

func TestRedeliveryOfAnOpenClaimIsNotBegun(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	k.pay("A-1", "admin")
	d := k.ClaimOne("work_queue")
	for range 12 {
		k.Expire("work_queue")
		require.Empty(t, k.Claim("work_queue"))
	}
	require.False(t, k.Report("work_queue", d, object{"status": "complete"}), "the lease is over")
	require.Equal(t, "paying 2", k.invoice("A-1"))
}

func TestJanitorRevertsAfterACrashAndHolds(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	task := k.pay("A-1", "admin")
	d := k.ClaimOne("work_queue")
	k.Later(4 * time.Minute)
	require.EqualValues(t, 0, k.janitor()["reverted"], "younger than the limit")
	k.Later(6 * time.Minute)
	require.EqualValues(t, 1, k.janitor()["reverted"])
	require.Equal(t, "sent 3", k.invoice("A-1"))
	require.Equal(t, "waiting", k.steps(task)["pay"])
	require.Equal(t, "waiting_for_dependencies", k.State(task))
	k.Report("work_queue", d, object{"status": "complete"}) // late
	require.Equal(t, "sent 3", k.invoice("A-1"))
	k.Rest()
	require.Equal(t, "waiting", k.steps(task)["pay"])
	k.sound()

	k.Exec("select pawl.retry_step($1, 'pay', 0, 'ann', 'the bank has no trace of it')", task)
	k.work("work_queue")
	require.Equal(t, "complete", k.State(task))
	require.Equal(t, "paid 5", k.invoice("A-1"))
	k.sound()
}

func TestJanitorRevertsAndRetriesWhenThatIsDeclaredSafe(t *testing.T) {
	k := newKit(t)
	invoices(k, object{"on_crash": "retry"})
	task := k.pay("A-1", "admin")
	d := k.ClaimOne("work_queue")
	k.Later(6 * time.Minute)
	require.EqualValues(t, 1, k.janitor()["reverted"])
	require.Equal(t, "waiting_for_retry", k.steps(task)["pay"])
	k.Expire("work_queue")
	require.Empty(t, k.Claim("work_queue"), "the message of the dead attempt is absorbed")
	require.False(t, k.Report("work_queue", d, object{"status": "complete"}))
	k.Later(20 * time.Minute)
	k.Tick()
	k.work("work_queue")
	require.Equal(t, "complete", k.State(task))
	require.Equal(t, "paid 5", k.invoice("A-1"))
	k.sound()
}

func TestHeartbeatsKeepALongActionFromTheJanitor(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	k.pay("A-1", "admin")
	d := k.ClaimOne("work_queue")
	for n := range 20 { // ten limits
		k.Later(time.Duration(n+1) * 150 * time.Second)
		k.Exec("select pawl.extend_leases('work_queue', $1)", []object{{"msg_id": d.ID, "read_ct": d.ReadCount}})
		require.EqualValues(t, 0, k.janitor()["reverted"])
	}
	k.Finish("work_queue", d)
	require.Equal(t, "paid 3", k.invoice("A-1"))
}

func TestJanitorLeavesARowThatSomebodyMoved(t *testing.T) {
	for name, change := range map[string]string{"state": "update invoices set status = 'overdue'", "version": "update invoices set version = version + 1"} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			invoices(k, object{"on_crash": "retry"})
			task := k.pay("A-1", "admin")
			k.ClaimOne("work_queue")
			k.Exec(change)
			was := k.invoice("A-1")
			k.Later(6 * time.Minute)
			require.EqualValues(t, 1, k.janitor()["lost"])
			require.Equal(t, was, k.invoice("A-1"))
			require.Equal(t, []string{"waiting", "claim_lost"}, []string{k.steps(task)["pay"], k.stepError(task, "pay")})
			require.Equal(t, 1, get[int](k, "select count(*) from pawl.absorbed where reason = 'claim_lost'"))
		})
	}
}

func TestSuccessWithoutItsRowIsAFailure(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	task := k.pay("A-1", "admin")
	d := k.ClaimOne("work_queue")
	k.Exec("update invoices set status = 'overdue'")
	require.False(t, k.Report("work_queue", d, object{"status": "complete"}))
	require.Equal(t, []string{"error", "claim_lost"}, []string{k.State(task), k.stepError(task, "pay")})
	require.Equal(t, "overdue 2", k.invoice("A-1"))
	k.sound()
}

func TestHandlerMayWriteTheRowItClaimed(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	task := k.pay("A-1", "admin")
	d := k.ClaimOne("work_queue")
	k.Exec("update invoices set version = version + 1 where number = 'A-1'")
	k.Finish("work_queue", d)
	require.Equal(t, "paid 4", k.invoice("A-1"))
	k.work("work_queue")
	require.Equal(t, "complete", k.State(task))
}

func TestCancelInTheMiddleLetsTheBodyEndItsClaim(t *testing.T) {
	for status, want := range map[string]string{"complete": "paid 3", "failed": "sent 3"} {
		t.Run(status, func(t *testing.T) {
			k := newKit(t)
			invoices(k, nil)
			task := k.pay("A-1", "admin")
			d := k.ClaimOne("work_queue")
			k.Exec("select pawl.cancel_task($1, 'ann', 'too late')", task)
			require.Equal(t, "paying 2", k.invoice("A-1"))
			answer := get[[]object](k, "select pawl.extend_leases('work_queue', $1)", []object{{"msg_id": d.ID, "read_ct": d.ReadCount}})
			require.Equal(t, "cancelled", answer[0]["status"])
			k.Report("work_queue", d, object{"status": status, "error": object{"type": "stopped"}})
			k.Rest()
			require.Equal(t, want, k.invoice("A-1"))
			require.Equal(t, "cancelled", k.State(task))
			require.Equal(t, "cancelled", k.steps(task)["tell"])
			require.Empty(t, list[string](k, "select reason from pawl.dead_letters"))
			k.Tick()
			require.Empty(t, k.Claim("work_queue"))
		})
	}
}

func TestJanitorEndsTheClaimOfACancelledTask(t *testing.T) {
	k := newKit(t)
	invoices(k, object{"on_crash": "retry"})
	task := k.pay("A-1", "admin")
	k.ClaimOne("work_queue")
	k.Exec("select pawl.cancel_task($1, 'ann', 'too late')", task)
	k.Later(6 * time.Minute)
	require.EqualValues(t, 1, k.janitor()["reverted"])
	require.Equal(t, "sent 3", k.invoice("A-1"))
	require.Equal(t, []string{"cancelled", "cancelled"}, []string{k.State(task), k.steps(task)["pay"]})
	k.sound()
}

func TestTimeoutOnlyRevokesAClaim(t *testing.T) {
	k := newKit(t)
	invoices(k, object{"timeout_ms": 1000})
	task := k.pay("A-1", "admin")
	d := k.ClaimOne("work_queue")
	k.Later(10 * time.Second)
	k.Tick()
	require.Equal(t, "waiting_for_retry", k.steps(task)["pay"])
	require.Equal(t, "paying 2", k.invoice("A-1"))
	k.Later(time.Minute)
	k.Tick()
	require.Empty(t, k.Claim("work_queue"), "the next attempt waits until the body of the first has ended")
	k.Report("work_queue", d, object{"status": "complete"})
	k.Rest()
	require.Equal(t, "paid 3", k.invoice("A-1"))
	k.Expire("work_queue")
	k.work("work_queue")
	k.Rest()
	require.Equal(t, "claim_failed", k.stepError(task, "pay"), "the row is paid, the second attempt does not act again")
	k.sound()
}

func TestClaimsEndWithTheReportWhenTheTaskIsBusy(t *testing.T) {
	k := newCommittingKit(t)
	invoices(k, nil)
	task := k.pay("A-1", "admin")
	d := k.ClaimOne("work_queue")
	busy := k.begin()
	busy.Exec("select from pawl.tasks where task_id = $1 for no key update", task)
	k.Finish("work_queue", d)
	require.Equal(t, "paid 3", k.invoice("A-1"))
	require.Equal(t, "in_progress", k.steps(task)["pay"])
	busy.commit()
	k.work("work_queue")
	require.Equal(t, "complete", k.State(task))
}

func TestStrangerOnTheRowDelaysThatStepAlone(t *testing.T) {
	k := newCommittingKit(t)
	invoices(k, nil)
	stranger := k.begin()
	stranger.Exec("select from invoices where number = 'A-1' for update")
	delayed, free := k.pay("A-1", "admin"), k.pay("A-2", "admin")
	d := k.ClaimOne("work_queue")
	require.Equal(t, free, d.Task)
	k.Finish("work_queue", d)
	stranger.commit()
	k.Exec("delete from pgmq.q_work_queue where message->>'task_id' = $1", free.String())
	k.Expire("work_queue")
	d = k.ClaimOne("work_queue")
	require.Equal(t, delayed, d.Task)

	stranger = k.begin() // and at the report
	stranger.Exec("select from invoices where number = 'A-1' for update")
	k.Finish("work_queue", d)
	require.Equal(t, "paying 2", k.invoice("A-1"))
	k.Later(time.Hour)
	stranger.commit()
	require.EqualValues(t, 0, k.janitor()["reverted"], "the result is on its way")
	k.Rest()
	require.Equal(t, "paid 3", k.invoice("A-1"))
}

func TestStepThatIsHandedBackReleasesItsRow(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	task := k.pay("A-1", "admin")
	d := k.ClaimOne("work_queue")
	k.Exec("select pawl.release_steps('work_queue', $1)", []object{{"msg_id": d.ID, "read_ct": d.ReadCount - 1}})
	require.Equal(t, "paying 2", k.invoice("A-1"), "the lease is not the caller's")
	k.Exec("select pawl.release_steps('work_queue', $1)", []object{{"msg_id": d.ID, "read_ct": d.ReadCount}})
	require.Equal(t, "sent 3", k.invoice("A-1"))
	k.work("work_queue")
	require.Equal(t, "complete", k.State(task))
	require.Equal(t, "paid 5", k.invoice("A-1"))
	k.sound()
}

func TestCancelledStepThatIsHandedBackNeverRunsAgain(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	task := k.pay("A-1", "admin")
	d := k.ClaimOne("work_queue")
	k.Exec("select pawl.cancel_task($1, 'ann', 'too late')", task)
	k.Exec("select pawl.release_steps('work_queue', $1)", []object{{"msg_id": d.ID, "read_ct": d.ReadCount}})
	require.Equal(t, "sent 3", k.invoice("A-1"))
	require.Empty(t, k.Claim("work_queue"))
	require.Equal(t, "sent 3", k.invoice("A-1"))
	require.Equal(t, "cancelled", k.steps(task)["pay"])
	require.Zero(t, get[int](k, "select count(*) from pgmq.q_work_queue"))
	k.sound()
}
