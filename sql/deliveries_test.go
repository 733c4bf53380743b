package sql_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	engine "github.com/pawl-dev/pawl/test/kit"
)

func TestARedeliveryIsTheSameAttemptAndFencesTheFirstHolder(t *testing.T) {
	k := newKit(t)
	k.Template("shop/diamond", nil, diamond()...)
	task := k.Submit("shop/diamond")
	first := k.ClaimOne(queue)
	k.Expire(queue)
	second := k.ClaimOne(queue)
	require.Equal(k, first.Attempt, second.Attempt)
	require.Equal(k, 2, second.ReadCount)

	require.False(k, k.Report(queue, first, object{"status": "complete", "result": "late"}), "the fence holds")
	require.Equal(k, "in_progress", k.steps(task)["a"])
	require.Equal(k, []object{{"msg_id": float64(first.ID), "status": "lost"}}, k.extend(first))
	require.Equal(k, []object{{"msg_id": float64(second.ID), "status": "extended"}}, k.extend(second))

	k.Finish(queue, second)
	require.False(k, k.Report(queue, second, object{"status": "complete"}), "reporting twice does nothing twice")
	require.Equal(k, []string{"a: enqueued", "a: started", "a: redelivered", "a: completed"}, k.events(task)[1:5])
	k.sound()
}

// extend is a heartbeat for one claimed step.
func (k *kit) extend(d delivery) []object {
	k.Helper()
	return get[[]object](k, "select pawl.extend_leases($1, jsonb_build_array(jsonb_build_object('msg_id', $2::bigint, 'read_ct', $3::int)))",
		queue, d.ID, d.ReadCount)
}

func TestTwoReportsOfOneMessageMeetTheirOwnFences(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	task := k.Submit("shop/one")
	first := k.ClaimOne(queue)
	k.Expire(queue)
	second := k.ClaimOne(queue)
	require.Equal(k, first.ID, second.ID)
	answers := get[[]object](k, `select pawl.report_steps('work_queue', jsonb_build_array(
		jsonb_build_object('msg_id', $1::bigint, 'read_ct', 1, 'status', 'complete', 'result', 'stale'::text),
		jsonb_build_object('msg_id', $1::bigint, 'read_ct', 2, 'status', 'complete', 'result', 'current'::text)), 'w')`, first.ID)
	require.Equal(k, []any{false, true}, []any{answers[0]["accepted"], answers[1]["accepted"]})
	require.Equal(k, "current", get[string](k, "select result #>> '{}' from pawl.tasks where task_id = $1", task))
}

func TestAReleasedStepIsBackAtOnce(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	k.Submit("shop/one")
	d := k.ClaimOne(queue)
	require.Empty(k, k.Claim(queue))
	k.Exec("select pawl.release_steps($1, jsonb_build_array(jsonb_build_object('msg_id', $2::bigint, 'read_ct', $3::int)))",
		queue, d.ID, d.ReadCount)
	require.Equal(k, 2, k.ClaimOne(queue).ReadCount)
}

func TestDeliveriesOverTheLimitBecomeACrash(t *testing.T) {
	k := newKit(t)
	k.Template("shop/crashing", nil, step("a", object{"max_deliveries": 2, "retry": object{"max_attempts": 1}}))
	task := k.Submit("shop/crashing")
	for range 2 {
		k.ClaimOne(queue)
		k.Expire(queue)
	}
	require.Empty(k, k.Claim(queue), "the third delivery is one too many")
	k.Rest()
	require.Equal(k, "error", k.State(task))
	require.Equal(k, "crash", k.object("select error from pawl.tasks where task_id = $1", task)["type"])
	require.Zero(k, get[int](k, "select count(*)::int from pgmq.q_work_queue"))
	k.sound()
}

func TestStaleDeliveriesAreAbsorbedByWhoReadsThem(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	task := k.Submit("shop/one")
	copies := get[int](k, `with sent as (insert into pgmq.q_work_queue (vt, message) select clock_timestamp(), message from pgmq.q_work_queue
		returning 1) select count(*)::int from sent`)
	require.Equal(k, 1, copies)
	claimed := k.Claim(queue)
	require.NotEmpty(k, claimed)
	k.Finish(queue, claimed[0])
	k.Expire(queue)
	require.Empty(k, k.Claim(queue))
	require.Equal(k, "complete", k.State(task))
	require.Equal(k, 1, get[int](k, "select count(*)::int from pawl.absorbed where task_id = $1 and reason = 'stale delivery'", task))
	require.Zero(k, get[int](k, "select count(*)::int from pgmq.q_work_queue"))
	k.sound()
}

func TestAWorkerThatKnowsOnlyPGMQNeedsNoClaim(t *testing.T) {
	k := newKit(t)
	k.Template("shop/diamond", nil, diamond()...)
	task := k.Submit("shop/diamond")
	for range 4 {
		for _, m := range list[object](k, "select to_jsonb(r) from pgmq.read('work_queue', 30, 10) r") {
			body := m["message"].(object)
			k.Exec("select pgmq.send('orchestration_step_results', $1::jsonb)", object{"task_id": body["task_id"], "step": body["step"],
				"attempt": body["attempt"], "status": "complete", "result": object{"by": body["step"]}})
			k.Exec("select pgmq.delete('work_queue', $1::bigint)", m["msg_id"])
		}
		k.Rest()
	}
	require.Equal(k, "complete", k.State(task))
	require.Equal(k, []string{"a: enqueued", "a: started", "a: completed"}, k.events(task)[3:6])
	k.sound()
}

func TestResultsMeetTheirStep(t *testing.T) {
	for name, c := range map[string]struct {
		attempt  int
		status   string
		absorbed string
		dead     string
	}{
		"older":   {0, "complete", "result of an older attempt", ""},
		"newer":   {2, "complete", "", "result of an attempt that has not begun"},
		"current": {1, "complete", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.Template("shop/one", nil, step("a"))
			task := k.Submit("shop/one")
			k.Exec("select pgmq.send('orchestration_step_results', $1::jsonb)",
				object{"task_id": task, "step": "a", "attempt": c.attempt, "status": c.status})
			k.Rest()
			require.Equal(k, c.absorbed == "" && c.dead == "", k.State(task) == "complete")
			require.Equal(k, c.absorbed, get[string](k, "select coalesce(max(reason), '') from pawl.absorbed"))
			require.Equal(k, c.dead, get[string](k, "select coalesce(max(reason), '') from pawl.dead_letters"))
			k.sound()
		})
	}
}

func TestDuplicateResultsOfOneAttemptCountOnce(t *testing.T) {
	k := newKit(t)
	k.Template("shop/diamond", nil, diamond()...)
	task := k.Submit("shop/diamond")
	for range 3 {
		k.Exec("select pgmq.send('orchestration_step_results', $1::jsonb)", object{"task_id": task, "step": "a", "attempt": 1, "status": "complete"})
	}
	k.Rest()
	require.Equal(k, map[string]string{"a": "complete", "b": "enqueued", "c": "enqueued", "d": "pending"}, k.steps(task))
	require.Equal(k, 2, get[int](k, "select count(*)::int from pawl.absorbed"))
	k.sound()
}

func TestGarbageOnTheQueuesBecomesDeadLettersAndWorkGoesOn(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	garbage := []string{
		`null`, `[]`, `[1, 2]`, `{}`, `"text"`, `7`, `true`, `{"task_id": 5}`, `{"task_id": "x", "step": "a", "attempt": 1}`,
		`{"task_id": "` + uuid.NewString() + `"}`, `{"task_id": "` + uuid.NewString() + `", "step": 1, "attempt": 1e100000}`,
		`{"task_id": "` + uuid.NewString() + `", "step": "a", "attempt": "one", "status": "complete"}`,
		`{"task_id": "` + uuid.NewString() + `", "step": "a", "attempt": 99999999999, "status": "complete"}`,
		`{"task_id": "` + uuid.NewString() + `", "step": "a", "attempt": 1, "status": "complete", "index": "x"}`,
		`{"task_id": "` + uuid.NewString() + `", "step": "a", "attempt": 1, "status": "great"}`,
		`{"v": 1, "task_id": null, "step": null}`,
	}
	for _, g := range garbage {
		for _, q := range []string{"orchestration_step_results", "orchestration_step_enqueues", "orchestration_task_finalizations", queue} {
			k.Exec("select pgmq.send($1, $2::jsonb)", q, g)
		}
	}
	task := k.Submit("shop/one")
	require.Equal(k, []string{"a"}, k.work(queue))
	require.Equal(k, "complete", k.State(task))
	for _, q := range []string{"orchestration_step_results", "orchestration_step_enqueues", "orchestration_task_finalizations", queue} {
		require.Zero(k, get[int](k, "select count(*)::int from pgmq.q_"+q), q)
	}
	require.Positive(k, get[int](k, "select count(*)::int from pawl.dead_letters where reason <> ''"))
	k.sound()
}

func TestMessagesOfANewerVersionArePutBackForAMinute(t *testing.T) {
	k := newKit(t)
	for q, function := range map[string]string{"orchestration_step_results": "apply_step_results",
		"orchestration_step_enqueues": "process_step_enqueues", "orchestration_task_finalizations": "finalize_tasks"} {
		id := get[int64](k, "select pgmq.send($1, '{\"v\": 2, \"task_id\": \"00000000-0000-0000-0000-000000000000\"}')", q)
		k.Exec(fmt.Sprintf("select pawl.%s(array[$1::bigint], 'kit')", function), id)
		require.True(k, get[bool](k, "select vt > clock_timestamp() + interval '50 s' from pgmq.q_"+q+" where msg_id = $1", id), q)
	}
	require.Zero(k, get[int](k, "select count(*)::int from pawl.dead_letters"))
}

func TestAStepSomebodyHoldsIsSkippedNotWaitedFor(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("shop/one", nil, step("a"))
	task := k.Submit("shop/one")
	holder := k.begin()
	holder.Exec("select from pawl.steps where task_id = $1 for update", task)
	require.Empty(k, k.Claim(queue))
	require.True(k, get[bool](k, "select vt <= clock_timestamp() + interval '1 s' from pgmq.q_work_queue"))
	holder.commit()
	k.Expire(queue)
	require.Equal(k, "a", k.ClaimOne(queue).Step)
}

func TestAReportWaitsForNoTask(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("shop/one", nil, step("a"))
	task, free := k.Submit("shop/one"), k.Submit("shop/one")
	require.Len(k, k.Claim(queue), 2)
	holder := k.begin()
	holder.Exec("select from pawl.tasks where task_id = $1 for update", task)
	k.Exec(`select pawl.report_steps('work_queue', jsonb_agg(jsonb_build_object('msg_id', q.msg_id, 'read_ct', q.read_ct, 'status', 'complete')), 'w')
		from pgmq.q_work_queue q`)
	require.Equal(k, 1, get[int](k, "select count(*)::int from pgmq.q_orchestration_step_results"), "the held task's result goes through its queue")
	require.Equal(k, "complete", k.State(free), "the other's counts at once")
	holder.commit()
	k.Rest()
	require.Equal(k, "complete", k.State(task))
	k.sound()
}

func TestRawUpdatesMeetTheGuards(t *testing.T) {
	k := newKit(t)
	k.Template("shop/diamond", nil, diamond()...)
	task := k.Submit("shop/diamond")
	k.refused("PW001", "update pawl.tasks set state = 'complete', finalized_at = now(), open_count = 0 where task_id = $1", task)
	k.refused("PW001", "update pawl.tasks set revision = revision + 1 where task_id = $1", task)
	k.refused("PW001", "update pawl.steps set state = 'skipped' where task_id = $1 and step = 'a'", task)
	k.refused("PW001", "update pawl.steps set state = 'in_progress', worker = 'me', revision = revision + 2 where task_id = $1 and step = 'a'", task)
	k.refused("23514", "update pawl.steps set worker = 'me' where task_id = $1 and step = 'a'", task)
	k.refused("23514", "update pawl.tasks set open_count = -1 where task_id = $1", task)
	k.refused("PW001", "insert into pawl.tasks select (jsonb_populate_record(t, jsonb_build_object('task_id', gen_random_uuid(), 'revision', 7))).* from pawl.tasks t where task_id = $1", task)
	k.refused("PW001", "update pawl.steps set index = 7, revision = revision + 1 where task_id = $1 and step = 'a'", task)
	k.sound()

	byHand := []string{
		"update pawl.steps set state = 'resolved_manually', revision = revision + 1 where task_id = $1 and step = 'a'",
		"update pawl.tasks set state = 'resolved_manually', revision = revision + 1, finalized_at = now() where task_id = $1",
	}
	for _, sql := range byHand { // only an operator's functions, which say who acts
		k.refused("PW001", sql, task)
	}
	k.Exec("select set_config('pawl.actor', 'test', true)")
	for _, sql := range byHand {
		k.Exec(sql, task)
	}
	require.Contains(k, k.events(task), "a: resolved")
}

func TestAMalformedReportDeletesNothing(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	k.Submit("shop/one")
	d := k.ClaimOne(queue)
	for _, bad := range []any{object{}, `"x"`, object{"msg_id": d.ID, "read_ct": 1, "status": "great"}, object{"msg_id": d.ID, "status": "complete"},
		object{"msg_id": d.ID, "read_ct": 1, "status": "failed"}, nil} {
		k.refused("PW016", "select pawl.report_steps($1, jsonb_build_array($2::jsonb), 'w')", queue, bad)
	}
	k.refused("PW010", "select pawl.claim_steps('work_quue', 1, 'w')")
	k.refused("PW014", "select pawl.claim_steps('work_queue', 1, '')")
	k.Finish(queue, d)
}

func TestOneBadMessageCostsNoOtherItsClaim(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	k.Exec("select pgmq.send('work_queue', '{\"task_id\": \"no uuid\"}')")
	k.Submit("shop/one")
	k.Submit("shop/one")
	require.Len(k, k.Claim(queue), 2)
	require.Equal(k, 1, get[int](k, "select count(*)::int from pawl.dead_letters where queue = 'work_queue'"))
}

func TestTheClockOfLeasesIsMovedByHeartbeats(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a", object{"lease_ms": 120_000}))
	k.Submit("shop/one")
	d := k.ClaimOne(queue)
	far := "select vt > clock_timestamp() + $1::interval from pgmq.q_work_queue"
	require.True(k, get[bool](k, far, 110*time.Second), "the step's lease is the visibility timeout")
	k.Exec("select pawl.extend_leases($1, jsonb_build_array(jsonb_build_object('msg_id', $2::bigint, 'read_ct', 1)), 600000)", queue, d.ID)
	require.True(k, get[bool](k, far, 590*time.Second))
}

// Somebody may hold a step for longer than its deliveries last: what never began is no delivery.
func TestAStepThatSomebodyHoldsIsNotDelivered(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("held/one", nil, step("a", object{"max_deliveries": 3}))
	task := k.Submit("held/one")
	k.ClaimOne("work_queue") // and dies
	holder := k.begin()
	holder.Exec("select from pawl.steps where task_id = $1 for update", task)
	for range 12 {
		k.Expire("work_queue")
		require.Empty(t, k.Claim("work_queue"))
	}
	require.Empty(t, k.ids("orchestration_step_results"))
	holder.commit()
	k.Expire("work_queue")
	d := k.ClaimOne("work_queue")
	require.Equal(t, 2, d.ReadCount, "the first one counts")
	k.Finish("work_queue", d)
	require.Equal(t, "complete", k.State(task))
}

func TestTheAuditSaysWhyEachAttemptFailed(t *testing.T) {
	k := newKit(t)
	k.Template("why/again", nil, step("a", object{"retry": object{"max_attempts": 3, "base_ms": 0}}))
	task := k.Submit("why/again")
	for range 3 {
		require.True(t, k.Report("work_queue", k.ClaimOne("work_queue"), engine.Failed(true, 0)))
		k.Later(time.Minute)
		k.Tick()
		k.Rest()
	}
	require.Equal(t, "error", k.State(task))
	require.Equal(t, []string{"1 boom: it broke", "2 boom: it broke", "3 boom: it broke"}, list[string](k, `select attempt || ' ' || reason from pawl.audit
		where task_id = $1 and to_state in ('waiting_for_retry', 'error') and step = 'a' order by revision`, task))
}
