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
	k.exec(`create table invoices (number text primary key, status text not null, version int not null default 1)`)
	k.exec(`insert into invoices values ('A-1', 'sent', 1), ('A-2', 'sent', 7)`)
	k.exec("select pawl.register_entity('invoice', $1, 'ann', 'first use')", entity(nil))
	k.exec("select pawl.beat_janitor('billing')")
	pay := step("pay", object{"claim": object{"admin": payClaim(nil), "cron": "none"}}, step1)
	k.template("billing/pay", object{}, pay, step("tell: pay"))
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
	return k.submit("billing/pay", object{"input": object{"invoice": invoice}, "requester": requester})
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
	d := k.claimOne("work_queue")
	require.Equal(t, "paying 2", k.invoice("A-1"))
	k.complete("work_queue", d)
	require.Equal(t, "paid 3", k.invoice("A-1"))
	require.Zero(t, get[int](k, "select count(*) from pawl.entity_claims"))
	k.work("work_queue")
	require.Equal(t, "complete", k.state(task))
	k.sound()
}

func TestFailureAndRejectionMoveTheRowBack(t *testing.T) {
	for _, status := range []string{"failed", "rejected"} {
		t.Run(status, func(t *testing.T) {
			k := newKit(t)
			invoices(k, nil)
			task := k.pay("A-1", "admin")
			k.report("work_queue", k.claimOne("work_queue"), object{"status": status, "error": object{"type": "no", "retryable": false}})
			require.Equal(t, "sent 3", k.invoice("A-1"))
			require.Equal(t, "error", k.state(task))
		})
	}
}

func TestLoserOfAClaimFailsAndNeverRuns(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	k.pay("A-1", "admin")
	d := k.claimOne("work_queue")
	loser := k.pay("A-1", "admin")
	require.Empty(t, k.claim("work_queue"))
	k.rest()
	require.Equal(t, "error", k.state(loser))
	require.Equal(t, "claim_failed", k.stepError(loser, "pay"))
	require.Equal(t, "another operation is already in progress", get[string](k, "select error->>'message' from pawl.tasks where task_id = $1", loser))
	k.complete("work_queue", d)
	late := k.pay("A-1", "admin")
	k.work("work_queue")
	k.rest()
	require.Equal(t, "claim_failed", k.stepError(late, "pay"))
	require.Equal(t, "paid 3", k.invoice("A-1"))
	k.sound()
}

func TestBusyClaimMayWait(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	k.template("billing/wait", object{}, step("pay", object{"claim": object{"default": payClaim(object{"on_busy": "wait"})}}))
	k.pay("A-1", "admin")
	first := k.claimOne("work_queue")
	second := k.submit("billing/wait", object{"input": object{"invoice": "A-1"}})
	for range 15 { // waiting is not counted as crashing
		require.Empty(t, k.claim("work_queue"))
		require.True(t, get[bool](k, "select vt < clock_timestamp() + interval '640 ms' from pgmq.q_work_queue where message->>'task_id' = $1", second.String()),
			"it is back before the last look of workers that its put-off woke")
		k.exec("update pgmq.q_work_queue set vt = clock_timestamp() where message->>'task_id' = $1", second.String())
	}
	k.report("work_queue", first, object{"status": "failed", "error": object{"type": "no", "retryable": false}})
	d := k.claimOne("work_queue")
	require.Equal(t, second, d.Task)
	k.complete("work_queue", d)
	require.Equal(t, "complete", k.state(second))
}

func TestRequesterWithoutAClaimBeginsAsUsual(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	k.pay("A-1", "cron")
	k.pay("A-1", "nobody")
	require.Len(t, k.claim("work_queue"), 2)
	require.Equal(t, "sent 1", k.invoice("A-1"))
}

func TestClaimOfAMissingRowFails(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	missing, unnamed := k.pay("A-9", "admin"), k.submit("billing/pay", object{"requester": "admin"})
	k.work("work_queue")
	k.rest()
	require.Equal(t, []string{"claim_failed", "claim_failed"}, []string{k.stepError(missing, "pay"), k.stepError(unnamed, "pay")})
}

func TestRedeliveryOfAnOpenClaimIsNotBegun(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	k.pay("A-1", "admin")
	d := k.claimOne("work_queue")
	for range 12 {
		k.expire("work_queue")
		require.Empty(t, k.claim("work_queue"))
	}
	require.False(t, k.report("work_queue", d, object{"status": "complete"}), "the lease is over")
	require.Equal(t, "paying 2", k.invoice("A-1"))
}

func TestJanitorRevertsAfterACrashAndHolds(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	task := k.pay("A-1", "admin")
	d := k.claimOne("work_queue")
	k.later(4 * time.Minute)
	require.EqualValues(t, 0, k.janitor()["reverted"], "younger than the limit")
	k.later(6 * time.Minute)
	require.EqualValues(t, 1, k.janitor()["reverted"])
	require.Equal(t, "sent 3", k.invoice("A-1"))
	require.Equal(t, "waiting", k.steps(task)["pay"])
	require.Equal(t, "waiting_for_dependencies", k.state(task))
	k.report("work_queue", d, object{"status": "complete"}) // late
	require.Equal(t, "sent 3", k.invoice("A-1"))
	k.rest()
	require.Equal(t, "waiting", k.steps(task)["pay"])
	k.sound()

	k.exec("select pawl.retry_step($1, 'pay', 0, 'ann', 'the bank has no trace of it')", task)
	k.work("work_queue")
	require.Equal(t, "complete", k.state(task))
	require.Equal(t, "paid 5", k.invoice("A-1"))
	k.sound()
}

func TestJanitorRevertsAndRetriesWhenThatIsDeclaredSafe(t *testing.T) {
	k := newKit(t)
	invoices(k, object{"on_crash": "retry"})
	task := k.pay("A-1", "admin")
	d := k.claimOne("work_queue")
	k.later(6 * time.Minute)
	require.EqualValues(t, 1, k.janitor()["reverted"])
	require.Equal(t, "waiting_for_retry", k.steps(task)["pay"])
	k.expire("work_queue")
	require.Empty(t, k.claim("work_queue"), "the message of the dead attempt is absorbed")
	require.False(t, k.report("work_queue", d, object{"status": "complete"}))
	k.later(20 * time.Minute)
	k.tick()
	k.work("work_queue")
	require.Equal(t, "complete", k.state(task))
	require.Equal(t, "paid 5", k.invoice("A-1"))
	k.sound()
}

func TestHeartbeatsKeepALongActionFromTheJanitor(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	k.pay("A-1", "admin")
	d := k.claimOne("work_queue")
	for n := range 20 { // ten limits
		k.later(time.Duration(n+1) * 150 * time.Second)
		k.exec("select pawl.extend_leases('work_queue', $1)", []object{{"msg_id": d.ID, "read_ct": d.ReadCount}})
		require.EqualValues(t, 0, k.janitor()["reverted"])
	}
	k.complete("work_queue", d)
	require.Equal(t, "paid 3", k.invoice("A-1"))
}

func TestJanitorLeavesARowThatSomebodyMoved(t *testing.T) {
	for name, change := range map[string]string{"state": "update invoices set status = 'overdue'", "version": "update invoices set version = version + 1"} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			invoices(k, object{"on_crash": "retry"})
			task := k.pay("A-1", "admin")
			k.claimOne("work_queue")
			k.exec(change)
			was := k.invoice("A-1")
			k.later(6 * time.Minute)
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
	d := k.claimOne("work_queue")
	k.exec("update invoices set status = 'overdue'")
	require.False(t, k.report("work_queue", d, object{"status": "complete"}))
	require.Equal(t, []string{"error", "claim_lost"}, []string{k.state(task), k.stepError(task, "pay")})
	require.Equal(t, "overdue 2", k.invoice("A-1"))
	k.sound()
}

func TestHandlerMayWriteTheRowItClaimed(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	task := k.pay("A-1", "admin")
	d := k.claimOne("work_queue")
	k.exec("update invoices set version = version + 1 where number = 'A-1'")
	k.complete("work_queue", d)
	require.Equal(t, "paid 4", k.invoice("A-1"))
	k.work("work_queue")
	require.Equal(t, "complete", k.state(task))
}

func TestCancelInTheMiddleLetsTheBodyEndItsClaim(t *testing.T) {
	for status, want := range map[string]string{"complete": "paid 3", "failed": "sent 3"} {
		t.Run(status, func(t *testing.T) {
			k := newKit(t)
			invoices(k, nil)
			task := k.pay("A-1", "admin")
			d := k.claimOne("work_queue")
			k.exec("select pawl.cancel_task($1, 'ann', 'too late')", task)
			require.Equal(t, "paying 2", k.invoice("A-1"))
			answer := get[[]object](k, "select pawl.extend_leases('work_queue', $1)", []object{{"msg_id": d.ID, "read_ct": d.ReadCount}})
			require.Equal(t, "cancelled", answer[0]["status"])
			k.report("work_queue", d, object{"status": status, "error": object{"type": "stopped"}})
			k.rest()
			require.Equal(t, want, k.invoice("A-1"))
			require.Equal(t, "cancelled", k.state(task))
			require.Equal(t, "cancelled", k.steps(task)["tell"])
			require.Empty(t, list[string](k, "select reason from pawl.dead_letters"))
			k.tick()
			require.Empty(t, k.claim("work_queue"))
		})
	}
}

func TestJanitorEndsTheClaimOfACancelledTask(t *testing.T) {
	k := newKit(t)
	invoices(k, object{"on_crash": "retry"})
	task := k.pay("A-1", "admin")
	k.claimOne("work_queue")
	k.exec("select pawl.cancel_task($1, 'ann', 'too late')", task)
	k.later(6 * time.Minute)
	require.EqualValues(t, 1, k.janitor()["reverted"])
	require.Equal(t, "sent 3", k.invoice("A-1"))
	require.Equal(t, []string{"cancelled", "cancelled"}, []string{k.state(task), k.steps(task)["pay"]})
	k.sound()
}

func TestTimeoutOnlyRevokesAClaim(t *testing.T) {
	k := newKit(t)
	invoices(k, object{"timeout_ms": 1000})
	task := k.pay("A-1", "admin")
	d := k.claimOne("work_queue")
	k.later(10 * time.Second)
	k.tick()
	require.Equal(t, "waiting_for_retry", k.steps(task)["pay"])
	require.Equal(t, "paying 2", k.invoice("A-1"))
	k.later(time.Minute)
	k.tick()
	require.Empty(t, k.claim("work_queue"), "the next attempt waits until the body of the first has ended")
	k.report("work_queue", d, object{"status": "complete"})
	k.rest()
	require.Equal(t, "paid 3", k.invoice("A-1"))
	k.expire("work_queue")
	k.work("work_queue")
	k.rest()
	require.Equal(t, "claim_failed", k.stepError(task, "pay"), "the row is paid, the second attempt does not act again")
	k.sound()
}

func TestClaimsEndWithTheReportWhenTheTaskIsBusy(t *testing.T) {
	k := newCommittingKit(t)
	invoices(k, nil)
	task := k.pay("A-1", "admin")
	d := k.claimOne("work_queue")
	busy := k.begin()
	busy.exec("select from pawl.tasks where task_id = $1 for no key update", task)
	k.complete("work_queue", d)
	require.Equal(t, "paid 3", k.invoice("A-1"))
	require.Equal(t, "in_progress", k.steps(task)["pay"])
	busy.commit()
	k.work("work_queue")
	require.Equal(t, "complete", k.state(task))
}

func TestStrangerOnTheRowDelaysThatStepAlone(t *testing.T) {
	k := newCommittingKit(t)
	invoices(k, nil)
	stranger := k.begin()
	stranger.exec("select from invoices where number = 'A-1' for update")
	delayed, free := k.pay("A-1", "admin"), k.pay("A-2", "admin")
	d := k.claimOne("work_queue")
	require.Equal(t, free, d.Task)
	k.complete("work_queue", d)
	stranger.commit()
	k.exec("delete from pgmq.q_work_queue where message->>'task_id' = $1", free.String())
	k.expire("work_queue")
	d = k.claimOne("work_queue")
	require.Equal(t, delayed, d.Task)

	stranger = k.begin() // and at the report
	stranger.exec("select from invoices where number = 'A-1' for update")
	k.complete("work_queue", d)
	require.Equal(t, "paying 2", k.invoice("A-1"))
	k.later(time.Hour)
	stranger.commit()
	require.EqualValues(t, 0, k.janitor()["reverted"], "the result is on its way")
	k.rest()
	require.Equal(t, "paid 3", k.invoice("A-1"))
}

func TestStepThatIsHandedBackReleasesItsRow(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	task := k.pay("A-1", "admin")
	d := k.claimOne("work_queue")
	k.exec("select pawl.release_steps('work_queue', $1)", []object{{"msg_id": d.ID, "read_ct": d.ReadCount - 1}})
	require.Equal(t, "paying 2", k.invoice("A-1"), "the lease is not the caller's")
	k.exec("select pawl.release_steps('work_queue', $1)", []object{{"msg_id": d.ID, "read_ct": d.ReadCount}})
	require.Equal(t, "sent 3", k.invoice("A-1"))
	k.work("work_queue")
	require.Equal(t, "complete", k.state(task))
	require.Equal(t, "paid 5", k.invoice("A-1"))
	k.sound()
}

func TestCancelledStepThatIsHandedBackNeverRunsAgain(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	task := k.pay("A-1", "admin")
	d := k.claimOne("work_queue")
	k.exec("select pawl.cancel_task($1, 'ann', 'too late')", task)
	k.exec("select pawl.release_steps('work_queue', $1)", []object{{"msg_id": d.ID, "read_ct": d.ReadCount}})
	require.Equal(t, "sent 3", k.invoice("A-1"))
	require.Empty(t, k.claim("work_queue"))
	require.Equal(t, "sent 3", k.invoice("A-1"))
	require.Equal(t, "cancelled", k.steps(task)["pay"])
	require.Zero(t, get[int](k, "select count(*) from pgmq.q_work_queue"))
	k.sound()
}
