package sql_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// timed is a task of two steps side by side, of which b may take a second.
func (k *kit) timed() (a, b delivery) {
	k.Template("shop/timed", nil, step("a"), step("b", object{"timeout_ms": 1000, "retry": object{"max_attempts": 2}}))
	task := k.Submit("shop/timed")
	claimed := k.claimedByStep()
	for _, d := range claimed {
		require.Equal(k, task, d.Task)
	}
	return claimed["a"], claimed["b"]
}

func (k *kit) claimedByStep() map[string]delivery {
	k.Helper()
	claimed := map[string]delivery{}
	for _, d := range k.Claim(queue) {
		claimed[d.Step] = d
	}
	return claimed
}

// openReport reports both, while a's transaction holds their task, and lets a minute pass. b's, which is returned, is not committed.
func (k *kit) openReport(a, b delivery) (reporter *kit) {
	k.Helper()
	holder := k.begin()
	holder.Finish(queue, a)
	reporter = k.begin()
	reporter.Finish(queue, b)
	holder.commit()
	k.Later(time.Minute)
	return reporter
}

const attempts = "select attempt || ' ' || state from pawl.steps where step = 'b'"

// What has been accepted and committed no timeout undoes, or its effects would be written twice.
func TestAnAcceptedReportEndsItsAttempt(t *testing.T) {
	for name, settings := range map[string]string{
		"the task is held": "select 1", "every hop through its queue": "update pawl.engine_settings set staged = true",
		"nothing applied directly": "update pawl.engine_settings set direct = false",
	} {
		t.Run(name, func(t *testing.T) {
			k := newCommittingKit(t)
			a, b := k.timed()
			k.Exec(settings)
			holder := k.begin()
			holder.Finish(queue, a) // in a transaction that stays open
			reporter := k.begin()
			reporter.Finish(queue, b)
			k.Later(time.Minute)
			require.EqualValues(k, 0, k.Tick()["fired"], "somebody holds the task, or the step")
			reporter.commit()
			holder.commit()
			require.EqualValues(k, 0, k.Tick()["fired"], "nothing is due any more")
			require.Equal(k, "1 in_progress", get[string](k, attempts))
			k.Rest()
			require.Equal(k, "1 complete", get[string](k, attempts))
			require.Equal(k, 1, get[int](k, "select count(*)::int from pawl.tasks where state = 'complete'"))
			k.sound()
		})
	}
}

// reportBesideItsTimeout reports b while the clock, whose transaction is returned, ends its attempt: it is late.
func (k *kit) reportBesideItsTimeout() (clock *kit) {
	_, b := k.timed()
	k.Later(time.Minute)
	clock = k.begin()
	require.EqualValues(k, 1, clock.Tick()["fired"])
	k.late(queue, b)
	return clock
}

// A report that meets a timeout which is not committed yet is late, whatever it still reads of the step.
func TestAReportBesideItsTimeoutIsLate(t *testing.T) {
	k := newCommittingKit(t)
	clock := k.reportBesideItsTimeout()
	clock.commit()
	k.Rest()
	require.Equal(k, "1 waiting_for_retry", get[string](k, attempts))
	require.Equal(k, 1, get[int](k, "select count(*)::int from pawl.absorbed"))
	k.sound()
}

// Neither is one in time that waits for the timeout's transaction and sees it commit.
func TestAReportThatWaitsForItsTimeoutIsLate(t *testing.T) {
	k := newCommittingKit(t)
	_, b := k.timed()
	k.Later(time.Minute)
	clock, reporter := k.begin(), k.begin()
	require.EqualValues(k, 1, clock.Tick()["fired"])
	pid := reporter.pid()
	done := reporter.start(`select set_config('test.answer', pawl.report_steps('work_queue', jsonb_build_array(jsonb_build_object(
		'msg_id', $1::bigint, 'read_ct', $2::int, 'status', 'complete')), 'w')->0->>'accepted', true)`, b.ID, b.ReadCount)
	k.untilWaitingOr(done, pid) // a tenth of a second at most
	clock.commit()
	k.ended(done)
	require.Equal(k, "false", get[string](reporter, "select current_setting('test.answer')"))
	reporter.commit()
	k.Rest()
	require.Equal(k, "1 waiting_for_retry", get[string](k, attempts))
	k.sound()
}

// When that timeout is undone, the result counts after all: it was not thrown away.
func TestAResultOutlivesATimeoutThatIsUndone(t *testing.T) {
	k := newCommittingKit(t)
	clock := k.reportBesideItsTimeout()
	clock.Exec("rollback")
	k.Rest()
	require.Equal(k, "1 complete", get[string](k, attempts))
	k.sound()
}

// The clock ends no attempt whose report commits while it looks, though another one of the task is due: it judges what it has locked.
func TestTheClockJudgesWhatItHasLocked(t *testing.T) {
	k := newCommittingKit(t)
	timeout := object{"timeout_ms": 1000}
	k.Template("shop/late", nil, step("a"), step("b", timeout), step("c", timeout))
	task := k.Submit("shop/late")
	claimed := k.claimedByStep()
	reporter, clock := k.openReport(claimed["a"], claimed["b"]), k.begin()
	pid := clock.pid()
	done := clock.start("select pawl.fire_due(100, 'kit')")
	k.untilWaitingOr(done, pid)
	reporter.commit()
	k.ended(done)
	clock.commit()
	require.Equal(k, map[string]string{"a": "complete", "b": "in_progress", "c": "waiting_for_retry"}, k.steps(task))
	k.Rest()
	require.Equal(k, "complete", k.steps(task)["b"])
	k.sound()
}

// The clock waits for no report: a task past its deadline is left for the next look while one of its steps reports.
func TestTheDeadlineWaitsForNoReport(t *testing.T) {
	k := newCommittingKit(t)
	a, b := k.timed()
	k.Exec("update pawl.tasks set due_at = pawl.now() + interval '10 s'")
	reporter := k.openReport(a, b)
	tick := k.Tick()
	require.EqualValues(k, 0, tick["fired"])
	require.Equal(k, false, tick["more"])
	reporter.commit()
	require.EqualValues(k, 1, k.Tick()["fired"])
	require.Equal(k, "timed_out", get[string](k, "select state::text from pawl.tasks"))
	k.Rest()
	k.sound()
}

// What is being reported does not take the place of what else is due.
func TestAReportThatStaysOpenKeepsTheClockFromNothingElse(t *testing.T) {
	k := newCommittingKit(t)
	a, b := k.timed()
	k.Template("shop/other", nil, step("o", object{"timeout_ms": 1000, "queue": "other_queue"}))
	other := k.Submit("shop/other")
	k.ClaimOne("other_queue")
	k.Exec("update pawl.engine_settings set max_steps_per_transaction = 2")
	reporter := k.openReport(a, b)
	require.EqualValues(k, 1, k.Tick()["fired"])
	require.NotEqual(k, "in_progress", k.steps(other)["o"])
	reporter.commit()
	k.Rest()
	require.Equal(k, "1 complete", get[string](k, attempts))
	k.sound()
}

// A failure that cancels a step whose report is not committed yet holds up itself, and nothing behind it.
func TestAFailureWaitsForAReportAlone(t *testing.T) {
	k := newCommittingKit(t)
	timeout := object{"timeout_ms": 60000}
	k.Template("shop/fast", object{"on_failure": "fail_fast"}, step("a"), step("b", timeout), step("c", object{"retry": object{"max_attempts": 1}}))
	task := k.Submit("shop/fast")
	claimed := k.claimedByStep()
	k.Template("shop/one", nil, step("x"))
	other := k.Submit("shop/one")
	k.Exec("update pawl.engine_settings set direct = false")
	reporter := k.begin()
	reporter.Finish(queue, claimed["b"])
	k.fail(queue, claimed["c"])
	k.Finish(queue, k.ClaimOne(queue))
	process := func() {
		k.Exec("select pawl.apply_step_results(array(select msg_id from pgmq.q_orchestration_step_results where vt <= clock_timestamp()), 'test')")
	}
	process()
	require.Equal(k, "complete", k.steps(other)["x"])
	require.Equal(k, map[string]string{"a": "in_progress", "b": "in_progress", "c": "in_progress"}, k.steps(task))
	reporter.commit()
	k.Expire("orchestration_step_results")
	k.Rest()
	require.Equal(k, map[string]string{"a": "cancelled", "b": "complete", "c": "error"}, k.steps(task))
	k.sound()
}
