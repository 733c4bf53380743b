package sql_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// chain makes a task a -> b -> c with a beside-step x, all on work_queue.
func (k *kit) chain(fields object, request ...object) uuid.UUID {
	k.Helper()
	k.Template("ops/chain", fields, step("a"), step("b: a"), step("c: b"), step("x"))
	return k.Submit("ops/chain", request...)
}

// until works the chain until the named step is claimed, which it returns.
func (k *kit) until(name string) delivery {
	k.Helper()
	for range 10 {
		var found delivery
		for _, d := range k.Claim("work_queue") {
			if d.Step == name {
				found = d
				continue
			}
			k.Finish("work_queue", d)
		}
		k.Rest()
		if found.Step != "" {
			return found
		}
	}
	require.FailNow(k, "the step does not come", name)
	return delivery{}
}

func TestOperatorsMustSayWhoAndWhy(t *testing.T) {
	k := newKit(t)
	task := k.chain(nil)
	for _, call := range []string{
		"select pawl.cancel_task($1, $2, $3)", "select pawl.retry_task($1, null, $2, $3)",
		"select pawl.retry_step($1, 'a', 0, $2, $3)", "select pawl.resolve_step($1, 'a', 0, $2, $3)",
		"select pawl.complete_step($1, 'a', 0, '1', $2, $3)", "select pawl.resolve_task($1, '1', $2, $3)",
	} {
		k.refused("PW023", call, task, "", "because")
		k.refused("PW023", call, task, "ann", " ")
		k.refused("PW023", call, task, nil, nil)
		k.refused("PW020", call, uuid.New(), "ann", "because")
	}
	k.refused("PW020", "select pawl.retry_step($1, 'nothing', 0, 'ann', 'because')", task)
	require.Zero(t, get[int](k, "select count(*)::int from pawl.operations"))
}

func TestCancelledTaskIsCancelledOnce(t *testing.T) {
	k := newKit(t)
	task := k.chain(nil)
	call := "select pawl.cancel_task($1, 'ann', 'wrong order')"
	require.Equal(t, object{"task_id": task.String(), "outcome": "cancelled", "state": "cancelled", "status": "cancelled"}, k.object(call, task))
	require.Equal(t, "unchanged", k.object(call, task)["outcome"])
	require.Equal(t, 2, get[int](k, "select count(*)::int from pawl.operations where command = 'cancel_task' and task_id = $1 and actor = 'ann'", task))
	require.Equal(t, []string{"ann: wrong order"}, list[string](k, `select distinct actor || ': ' || reason from pawl.audit
		where task_id = $1 and to_state = 'cancelled'`, task))

	// Actor and reason do not outlive the command.
	other := k.Submit("ops/chain")
	require.Len(t, k.work("work_queue"), 4)
	require.Zero(t, get[int](k, "select count(*)::int from pawl.audit where task_id = $1 and actor is not null", other))
	k.refused("PW021", call, other)
	k.sound()
}

func TestRetriedTaskRunsItsFailedStepsAgainAndKeepsTheOthers(t *testing.T) {
	k := newKit(t)
	task := k.chain(nil, object{"key": "k1"})
	failed := k.until("b")
	k.fail("work_queue", failed)
	k.Rest()
	require.Equal(t, "error", k.State(task))
	retried := k.object("select pawl.retry_task($1, null, 'ann', 'fixed')", task)
	require.Equal(t, "retried", retried["outcome"])
	require.Equal(t, "running", get[string](k, "select status from pawl.task_identities where key = 'k1' and expires_at is null"))
	k.refused("PW021", "select pawl.retry_task($1, null, 'ann', 'again')", task)

	again := k.ClaimOne("work_queue")
	require.Equal(t, failed.Token, again.Token, "the token is stable over retries")
	require.Equal(t, failed.Attempt+1, again.Attempt)
	k.Finish("work_queue", again)
	require.Equal(t, []string{"c"}, k.work("work_queue"))
	require.Equal(t, "complete", k.State(task))
	require.Equal(t, "completed", get[string](k, "select status from pawl.task_identities where key = 'k1'"))
	for _, from := range []any{nil, "a"} {
		k.refused("PW021", "select pawl.retry_task($1, $2, 'ann', 'once more')", task, from)
	}
	k.sound()
}

func TestTaskIsRetriedFromAStepOn(t *testing.T) {
	k := newKit(t)
	task := k.chain(nil)
	k.fail("work_queue", k.until("c"))
	k.Rest()
	require.Equal(t, "error", k.State(task))
	require.EqualValues(t, 3, k.object("select pawl.retry_task($1, 'a', 'ann', 'stale prices')", task)["steps"])
	first := k.ClaimOne("work_queue")
	require.Equal(t, task.String()+"/a#1", first.Token, "a complete step that runs again has another token")
	k.Finish("work_queue", first)

	// While it runs: again from a, whose dependent is under way. The late result changes nothing.
	late := k.ClaimOne("work_queue")
	require.Equal(t, "b", late.Step)
	k.object("select pawl.retry_task($1, 'a', 'ann', 'and again')", task)
	k.late("work_queue", late)
	require.Equal(t, []string{"a", "b", "c"}, k.work("work_queue"))
	require.Equal(t, "complete", k.State(task))
	require.Equal(t, 1, get[int](k, "select count(*)::int from pawl.absorbed where task_id = $1", task))
	k.sound()
}

func TestRetryFromAnUnfinishedStepIsRefused(t *testing.T) {
	k := newKit(t)
	task := k.chain(nil)
	k.refused("PW021", "select pawl.retry_task($1, 'a', 'ann', 'why not')", task)
	k.refused("PW021", "select pawl.retry_task($1, 'c', 'ann', 'why not')", task)
	call := "select pawl.retry_step($1, 'a', 0, 'ann', 'why not')"
	require.Equal(t, "Only a failed step is retried.", k.refused("PW021", call, task).Hint)
	k.Finish("work_queue", k.Claim("work_queue")...)
	require.Equal(t, "Only a failed step is retried. To repeat it, with what follows it: pawl task retry "+task.String()+" --from a",
		k.refused("PW021", call, task).Hint)
}

// Its failure would be gone, and it would not have run.
func TestRetryIsRefusedWhenAnotherFailureCancelsTheStepAgain(t *testing.T) {
	for policy, why := range map[string]string{"fail_fast": "another step of the task failed", "finish": "needs b, which is cancelled"} {
		t.Run(policy, func(t *testing.T) {
			k := newKit(t)
			task := k.chain(object{"on_failure": policy})
			k.fail("work_queue", k.until("a"))
			k.Rest()
			before := k.steps(task)
			require.Equal(t, map[string]string{"a": "error", "b": "cancelled", "c": "cancelled", "x": "complete"}, before)
			for _, call := range []string{"select pawl.retry_step($1, 'c', 0, 'ann', 'r')", "select pawl.retry_task($1, 'c', 'ann', 'r')"} {
				refused := k.refused("PW021", call, task)
				require.Equal(t, fmt.Sprintf("step c of task %s cannot run: %s", task, why), refused.Message)
				require.Equal(t, "Retry first what failed, or all of it: pawl task retry "+task.String(), refused.Hint)
			}
			require.Equal(t, before, k.steps(task))
			require.Equal(t, "error", k.State(task))
			k.object("select pawl.retry_step($1, 'a', 0, 'ann', 'r')", task)
			require.Equal(t, []string{"a", "b", "c"}, k.work("work_queue"))
			require.Equal(t, "complete", k.State(task))
			k.sound()
		})
	}
}

func TestRetryIsRefusedWhenALaterTaskHasTheKey(t *testing.T) {
	k := newKit(t)
	first := k.chain(nil, object{"key": "k1"})
	k.object("select pawl.cancel_task($1, 'ann', 'wrong')", first)
	second := k.Submit("ops/chain", object{"key": "k1"})
	for _, call := range []string{"select pawl.retry_task($1, null, 'ann', 'r')", "select pawl.retry_step($1, 'a', 0, 'ann', 'r')"} {
		refused := k.refused("PW022", call, first)
		require.Contains(t, refused.Message, second.String())
	}
	require.Equal(t, "cancelled", k.State(first))
}

func TestRetriedStepStartsAtOnceOutOfBackOff(t *testing.T) {
	k := newKit(t)
	task := k.chain(nil)
	require.True(t, k.Report("work_queue", k.until("a"), object{"status": "failed", "error": object{"type": "busy", "retry_after": 3600}}))
	require.Equal(t, "waiting_for_retry", k.steps(task)["a"])
	k.object("select pawl.retry_step($1, 'a', 0, 'ann', 'it is up again')", task)
	require.Equal(t, []string{"a", "b", "c"}, k.work("work_queue"))
	require.Equal(t, "complete", k.State(task))
	k.sound()
}

func TestStepEndedByHandLetsItsTaskGoOn(t *testing.T) {
	for _, policy := range []string{"finish", "fail_fast", "hold"} {
		t.Run(policy, func(t *testing.T) {
			k := newKit(t)
			task := k.chain(object{"on_failure": policy})
			k.fail("work_queue", k.until("b"))
			k.Rest()
			require.Equal(t, map[string]string{"finish": "error", "fail_fast": "error", "hold": "blocked_by_failures"}[policy], k.State(task))
			done := k.object(`select pawl.complete_step($1, 'b', 0, '{"price": 7}', 'ann', 'by phone')`, task)
			require.Equal(t, "completed", done["outcome"])
			require.Equal(t, "steps_in_process", done["state"])
			require.Equal(t, "unchanged", k.object(`select pawl.complete_step($1, 'b', 0, '{"price": 7}', 'ann', 'by phone')`, task)["outcome"])
			k.refused("PW021", `select pawl.complete_step($1, 'b', 0, '{"price": 8}', 'ann', 'by phone')`, task)
			last := k.ClaimOne("work_queue")
			require.JSONEq(t, `{"b": {"price": 7}}`, string(last.Dependencies))
			k.Finish("work_queue", last)
			require.Equal(t, "complete", k.State(task))
			k.sound()
		})
	}
}

func TestStepIsResolvedInEveryOpenState(t *testing.T) {
	k := newKit(t)
	task := k.chain(nil)
	resolve := func(name string) string {
		return k.object("select pawl.resolve_step($1, $2, 0, 'ann', 'not needed')", task, name)["outcome"].(string)
	}
	require.Equal(t, "resolved", resolve("c")) // pending
	running := k.Claim("work_queue")
	require.Equal(t, "resolved", resolve("a")) // in_progress
	require.Equal(t, "resolved", resolve("b")) // enqueued
	require.Equal(t, "unchanged", resolve("b"))
	for _, d := range running {
		require.Equal(t, d.Step == "x", k.Report("work_queue", d, object{"status": "complete"}), d.Step)
	}
	k.Rest()
	require.Equal(t, map[string]string{"a": "resolved_manually", "b": "resolved_manually", "c": "resolved_manually", "x": "complete"}, k.steps(task))
	require.Equal(t, "complete", k.State(task))
	require.Empty(t, k.Claim("work_queue"))
	k.sound()
}

func TestTaskIsResolvedOpenOrFailedButNotComplete(t *testing.T) {
	k := newKit(t)
	call := `select pawl.resolve_task($1, '{"ok": true}', 'ann', 'done by hand')`
	open := k.chain(nil, object{"key": "open"})
	require.Equal(t, "resolved", k.object(call, open)["outcome"])
	require.Equal(t, "unchanged", k.object(call, open)["outcome"])
	failed := k.Submit("ops/chain", object{"key": "failed"})
	k.object("select pawl.cancel_task($1, 'ann', 'wrong')", failed)
	require.Equal(t, "resolved", k.object(call, failed)["outcome"])
	for _, task := range []uuid.UUID{open, failed} {
		require.Equal(t, "resolved_manually", k.State(task))
		require.Equal(t, object{"ok": true}, k.object("select result from pawl.tasks where task_id = $1", task))
		k.refused("PW021", "select pawl.retry_task($1, null, 'ann', 'no')", task)
	}
	require.Equal(t, 2, get[int](k, "select count(*)::int from pawl.task_identities where status = 'completed'"))
	k.Rest()
	require.Empty(t, k.Claim("work_queue"))
	complete := k.Submit("ops/chain")
	require.Len(t, k.work("work_queue"), 4)
	k.refused("PW021", call, complete)
	k.sound()
}

func TestTaskCancelledBeforeItWasBuiltIsBuiltWhenRetried(t *testing.T) {
	k := newKit(t)
	k.Exec("update pawl.engine_settings set max_steps_per_transaction = 2")
	task := k.chain(nil)
	require.Equal(t, "initializing", k.State(task))
	k.object("select pawl.cancel_task($1, 'ann', 'wait')", task)
	k.Rest()
	require.Equal(t, "cancelled", k.State(task))
	k.object("select pawl.retry_task($1, null, 'ann', 'go')", task)
	require.Len(t, k.work("work_queue"), 4)
	require.Equal(t, "complete", k.State(task))
	k.sound()
}

func TestStepUnderAnEntityClaimIsNotTouched(t *testing.T) {
	k := newKit(t)
	task := k.chain(nil)
	k.until("a")
	k.Exec(`insert into pawl.entity_claims (entity, entity_id, task_id, step, attempt, version, revert_to, on_success, claimed_at, lease_until)
		values ('invoice', '7', $1, 'a', 1, 1, 'open', 'sent', now(), now())`, task)
	k.refused("PW021", "select pawl.resolve_step($1, 'a', 0, 'ann', 'r')", task)
	k.refused("PW021", "select pawl.complete_step($1, 'a', 0, '1', 'ann', 'r')", task)
	k.object("select pawl.cancel_task($1, 'ann', 'r')", task)
	k.refused("PW021", "select pawl.retry_task($1, null, 'ann', 'r')", task)
}

// Whoever comes second sees what the first has done, in both orders.
func TestCancelAndResultWaitForEachOther(t *testing.T) {
	cancel := "select pawl.cancel_task($1, 'ann', 'stop')"
	report := `select pawl.apply_step_results(array(select msg_id from pgmq.q_orchestration_step_results), 'p')`
	for name, cancelFirst := range map[string]bool{"cancel first": true, "result first": false} {
		t.Run(name, func(t *testing.T) {
			k := newCommittingKit(t)
			k.Exec("update pawl.engine_settings set direct = false") // the result waits in its queue
			k.Template("ops/one", nil, step("a"))
			task := k.Submit("ops/one")
			k.Finish("work_queue", k.ClaimOne("work_queue"))

			one, two := k.begin(), k.begin()
			pid := two.pid()
			if cancelFirst {
				one.Exec(cancel, task)
				done := two.start(report)
				k.untilWaitingOr(done, pid)
				one.commit()
				two.ended(done)
				two.commit()
				k.Expire("orchestration_step_results") // the cancel may have taken longer than a result waits for it
				k.Rest()
				require.Equal(t, "cancelled", k.State(task))
				require.Equal(t, 1, get[int](k, "select count(*)::int from pawl.absorbed where reason = 'step is cancelled'"))
			} else {
				one.Exec(report)
				done := two.start(cancel, task)
				k.untilWaiting(pid)
				one.commit()
				require.True(t, isCode(<-done, "PW021"), "it is complete by now")
				require.Equal(t, "complete", k.State(task))
			}
			k.sound()
		})
	}
}

// A claim waits for nobody; a cancel waits for a claim that is committing, and then ends what it began.
func TestCancelAndClaimInBothOrders(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("ops/one", nil, step("a"))
	task := k.Submit("ops/one")
	one, two := k.begin(), k.begin()
	pid := two.pid()
	claimed := one.ClaimOne("work_queue")
	done := two.start("select pawl.cancel_task($1, 'ann', 'stop')", task)
	k.untilWaiting(pid)
	one.commit()
	two.ended(done)
	two.commit()
	require.Equal(t, map[string]string{"a": "cancelled"}, k.steps(task))
	k.late("work_queue", claimed)

	second := k.Submit("ops/one")
	three := k.begin()
	three.Exec("select pawl.cancel_task($1, 'ann', 'stop')", second)
	require.Empty(t, k.Claim("work_queue"), "the step's row is held: its message comes back in a second")
	three.commit()
	k.Expire("work_queue")
	require.Empty(t, k.Claim("work_queue"))
	require.Equal(t, map[string]string{"a": "cancelled"}, k.steps(second))
	require.Equal(t, 1, get[int](k, "select count(*)::int from pawl.absorbed where reason = 'stale delivery'"))
	k.sound()
}

// A command decides on what is, not on what was when somebody's transaction began.
func TestACommandWithinAnOlderSnapshotIsRefused(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("old/one", nil, step("a"))
	task := k.Submit("old/one")
	for _, level := range []string{"repeatable read", "serializable"} {
		old := k.begin()
		old.Exec("set transaction isolation level " + level)
		raised := old.refused("PW021", "select pawl.cancel_task($1, 'ann', 'enough')", task)
		require.Contains(t, raised.Message, "read committed")
	}
}
