package sql_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// reconcile runs one whole pass.
func (k *kit) reconcile() object {
	k.Helper()
	done := k.object("select pawl.reconcile('reconciler')")
	require.Equal(k, true, done["wrapped"])
	return done
}

var nothing = object{"engine": 0.0, "foreign": 0.0}

func TestHealthyWorkIsNotRepaired(t *testing.T) {
	for name, settings := range map[string]string{"direct": "staged = false", "staged": "staged = true", "pieces": "max_steps_per_transaction = 2"} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.Exec("update pawl.engine_settings set " + settings)
			k.configure("gated_queue", object{"max_concurrency": 1})
			k.Template("rec/mixed", object{"on_failure": "hold"}, step("a"), step("b: a"), step("c: a", object{"queue": "gated_queue"}),
				step("d: a", object{"queue": "gated_queue"}), step("e: b c d"))
			for range 3 {
				k.Submit("rec/mixed")
			}
			k.Submit("rec/mixed", object{"run_at": "2999-01-01T00:00:00Z"})
			offset := time.Duration(0)
			k.Template("rec/blocked", object{"on_failure": "hold"}, step("z", object{"queue": "blocked_queue"}))
			blocked := k.Submit("rec/blocked")
			k.Rest()
			k.fail("blocked_queue", k.ClaimOne("blocked_queue"))
			k.Rest()
			require.Equal(t, "blocked_by_failures", k.State(blocked))
			check := func() {
				offset += 2 * time.Minute
				k.Later(offset)
				require.Equal(t, nothing, k.reconcile()["repaired"], list[string](k, "select kind || found from pawl.repairs"))
			}
			for range 12 {
				check()
				k.Rest()
				check()
				for i, d := range k.Claim("work_queue") {
					if i == 1 {
						k.Report("work_queue", d, object{"status": "failed", "error": object{"type": "busy"}})
						continue
					}
					k.Finish("work_queue", d)
				}
				k.Finish("gated_queue", k.Claim("gated_queue")...)
				check()
				k.release()
				k.Tick()
			}
			require.Zero(t, get[int](k, "select count(*)::int from pawl.repairs"))
		})
	}
}

func TestLostMessageIsEndedAsACrashInALaterPass(t *testing.T) {
	k := newKit(t)
	k.Template("rec/one", nil, step("a"))
	task := k.Submit("rec/one")
	k.Exec("select pgmq.pop('work_queue')")
	require.EqualValues(t, 0, k.reconcile()["noted"], "it may be at work still")
	k.Later(2 * time.Minute)
	require.EqualValues(t, 1, k.reconcile()["noted"])
	require.Equal(t, "enqueued", k.steps(task)["a"])
	require.Equal(t, object{"engine": 0.0, "foreign": 1.0}, k.reconcile()["repaired"])
	require.Equal(t, "waiting_for_retry", k.steps(task)["a"])
	require.Equal(t, nothing, k.reconcile()["repaired"])
	require.Equal(t, []string{"lost_message foreign"}, list[string](k, "select kind || ' ' || cause from pawl.repairs"))
	k.Later(10 * time.Minute)
	k.Tick()
	require.Equal(t, 2, k.ClaimOne("work_queue").Attempt)
	k.sound()
}

func TestResultOnItsWayIsWaitedFor(t *testing.T) {
	k := newKit(t)
	k.Template("rec/one", nil, step("a"))
	task := k.Submit("rec/one")
	// A worker that knows PGMQ alone sends its result and deletes the message; the result-processor is behind.
	k.Exec(`with m as (select * from pgmq.pop('work_queue'))
		select pgmq.send('orchestration_step_results', m.message - '{handler,input,dependencies,config,token,correlation_id,by_reference}'::text[] || '{"status": "complete", "result": 5}') from m`)
	k.Exec("select pgmq.set_vt('orchestration_step_results', 1, 600)")
	k.Later(2 * time.Minute)
	require.EqualValues(t, 1, k.reconcile()["noted"])
	for range 3 {
		require.Equal(t, nothing, k.reconcile()["repaired"])
	}
	k.Expire("orchestration_step_results")
	k.Rest()
	require.Equal(t, "complete", k.State(task))
	k.reconcile()
	require.Empty(t, list[string](k, "select step from pawl.reconciler_notes"))
}

func TestStepThatMovedOnIsNotRepaired(t *testing.T) {
	k := newKit(t)
	k.Template("rec/one", nil, step("a"))
	task := k.Submit("rec/one")
	kept := get[object](k, "select message from pgmq.q_work_queue")
	k.Exec("select pgmq.pop('work_queue')")
	k.Later(2 * time.Minute)
	require.EqualValues(t, 1, k.reconcile()["noted"])
	k.Exec("select pgmq.send('work_queue', $1::jsonb)", kept) // somebody puts it back
	require.Equal(t, nothing, k.reconcile()["repaired"])
	require.Empty(t, list[string](k, "select step from pawl.reconciler_notes"))
	k.work("work_queue")
	require.Equal(t, "complete", k.State(task))
}

func TestMessageOverItsDeliveriesEndsItsAttemptWithoutAClaim(t *testing.T) {
	k := newKit(t)
	k.Template("rec/one", nil, step("a", object{"max_deliveries": 2}))
	task := k.Submit("rec/one")
	for range 2 {
		require.EqualValues(t, 0, k.reconcile()["ended"])
		k.Exec("select pgmq.read('work_queue', 30, 1)")
		require.EqualValues(t, 0, k.reconcile()["ended"], "somebody works on it")
		k.Expire("work_queue")
	}
	require.EqualValues(t, 1, k.reconcile()["ended"])
	k.Rest()
	require.Equal(t, "waiting_for_retry", k.steps(task)["a"])
	require.Equal(t, "crash", get[string](k, "select error->>'type' from pawl.steps"))
}

func TestStaleMessagesAreAbsorbedWhereNobodyClaims(t *testing.T) {
	k := newKit(t)
	k.Template("rec/one", nil, step("a"))
	task := k.Submit("rec/one")
	k.object("select pawl.cancel_task($1, 'ann', 'r')", task)
	require.EqualValues(t, 0, k.reconcile()["absorbed"])
	k.Exec("update pgmq.q_work_queue set enqueued_at = enqueued_at - interval '1 hour'")
	require.EqualValues(t, 1, k.reconcile()["absorbed"])
	require.Zero(t, get[int](k, "select count(*)::int from pgmq.q_work_queue"))
}

func TestTasksThatDoNotFollowFromTheirStepsAreSettled(t *testing.T) {
	for name, damage := range map[string]string{
		"counters":     "update pawl.tasks set active_count = 5",
		"state":        "update pawl.tasks set state = 'waiting_for_dependencies', revision = revision + 1",
		"unfinished":   "update pawl.steps set state = 'cancelled', revision = revision + 1, worker = null where state <> 'complete'",
		"needs":        "update pawl.steps set needs_open = 2 where step = 'b'",
		"not started":  "update pawl.steps set state = 'pending', revision = revision + 1 where step = 'a'",
		"without time": "update pawl.steps set state = 'waiting_for_retry', revision = revision + 2 where step = 'a'",
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.Template("rec/chain", nil, step("a"), step("b: a"))
			task := k.Submit("rec/chain")
			k.Exec(damage)
			require.Equal(t, nothing, k.reconcile()["repaired"], "it is not idle")
			k.Later(2 * time.Minute)
			require.Equal(t, object{"engine": 1.0, "foreign": 0.0}, k.reconcile()["repaired"])
			require.Equal(t, nothing, k.reconcile()["repaired"])
			k.Tick()
			k.work("work_queue")
			require.Equal(t, map[bool]string{true: "error", false: "complete"}[name == "unfinished"], k.State(task))
			k.sound()
		})
	}
}

func TestReconcilerGoesOnWhereThePageEnded(t *testing.T) {
	k := newKit(t)
	k.Template("rec/one", nil, step("a"))
	for range 5 {
		k.Submit("rec/one")
	}
	k.Exec("select pgmq.purge_queue('work_queue')")
	k.Later(2 * time.Minute)
	for _, want := range []float64{2, 2, 1, 2} {
		page := k.object("select pawl.reconcile('r', 2)")
		require.EqualValues(t, want == 1, page["wrapped"])
		if want == 1 {
			require.EqualValues(t, 1, page["looked_at"])
		}
	}
	require.Equal(t, 2, get[int](k, "select count(*)::int from pawl.repairs"), "the first page of the second pass")
	for range 2 {
		k.object("select pawl.reconcile('r', 2)")
	}
	require.Equal(t, 5, get[int](k, "select count(*)::int from pawl.repairs"))
}

func TestOneReconcilerAtATimeAndItWaitsForNoTask(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("rec/chain", nil, step("a"), step("b: a"))
	task := k.Submit("rec/chain")
	k.Exec("update pawl.tasks set active_count = 5")
	k.Later(2 * time.Minute)
	holder := k.begin()
	holder.Exec("select from pawl.tasks where task_id = $1 for no key update", task)
	one := k.begin()
	require.Equal(t, nothing, one.reconcile()["repaired"], "somebody works on it")
	require.Equal(t, object{"busy": true}, k.object("select pawl.reconcile()"))
	one.commit()
	holder.commit()
	require.Equal(t, object{"engine": 1.0, "foreign": 0.0}, k.reconcile()["repaired"])
	k.sound()
}

// A report that is committed while a pass looks for messages has the next id of the results, whatever the pass knew before.
func TestAReportThatComesDuringAPassIsWaitedFor(t *testing.T) {
	k := newCommittingKit(t)
	setting(k, "direct = false")
	k.Template("rec/one", nil, step("a"))
	task := k.Submit("rec/one")
	d := k.ClaimOne("work_queue")
	k.Later(2 * time.Minute)
	worker, pass := k.begin(), k.begin()
	worker.Exec("lock table pgmq.q_work_queue")
	pid := pass.pid()
	passed := pass.start("select pawl.reconcile('r')")
	k.untilWaiting(pid)
	worker.Finish("work_queue", d)
	worker.commit()
	pass.ended(passed)
	pass.commit()
	for range 2 {
		require.EqualValues(t, 0, k.reconcile()["repaired"].(object)["foreign"])
	}
	k.Rest()
	require.Equal(t, "complete", k.State(task))
}
