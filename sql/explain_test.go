package sql_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// why tells what explain_task says of the task ("") or of a step.
func (k *kit) why(task uuid.UUID, step string) string {
	k.Helper()
	explained := k.object("select pawl.explain_task($1)", task)
	if step == "" {
		return explained["why"].(string)
	}
	for _, s := range explained["steps"].([]any) {
		if s.(object)["step"] == step {
			return s.(object)["why"].(string)
		}
	}
	require.FailNow(k, "the step is not explained", "%s: %v", step, explained)
	return ""
}

func TestEveryOpenStepIsExplained(t *testing.T) {
	k := newKit(t)
	k.Template("why/chain", nil, step("a"), step("b: a"), step("g", object{"queue": "gated_queue"}))
	k.object("select pawl.pause_queue('gated_queue', 'ann', 'r')")
	k.Submit("why/chain")
	task := k.Submit("why/chain")
	require.Equal(t, "waits for a worker of queue work_queue, 1 messages are before it", k.why(task, "a"))
	require.Equal(t, "needs a (enqueued)", k.why(task, "b"))
	require.Equal(t, "queue gated_queue is paused", k.why(task, "g"))
	k.configure("gated_queue", object{"paused": nil, "max_concurrency": 1})
	k.Rest()
	require.Equal(t, "queue gated_queue runs 1 of 1 attempts at once", k.why(task, "g"))
	k.configure("gated_queue", object{"max_concurrency": nil, "rate_limit": "1/hour"})
	require.Equal(t, "queue gated_queue releases 1 per hour", k.why(task, "g"))

	k.object("select pawl.pause_queue('work_queue', 'ann', 'r')")
	require.Equal(t, "queue work_queue is paused", k.why(task, "a"))
	k.object("select pawl.resume_queue('work_queue', 'ann', 'r')")
	claimed := k.Claim("work_queue")
	require.Equal(t, "worker-1 works on it until then, or longer with its heartbeats", k.why(task, "a"))
	require.NotEmpty(t, k.object("select pawl.explain_task($1)", task)["steps"].([]any)[0].(object)["until"])
	k.Expire("work_queue")
	require.Equal(t, "the lease of worker-1 is over: the next worker that reads the queue takes it", k.why(task, "a"))
	require.Equal(t, "3 steps are open: 1 enqueued or running, 1 held, 0 in back-off, 0 waiting", k.why(task, ""))

	for _, d := range claimed {
		if d.Task == task {
			k.Report("work_queue", d, object{"status": "failed", "error": object{"type": "busy", "message": "come back", "retry_after": 3600}})
		}
	}
	require.Equal(t, "attempt 1 failed (busy: come back); the next one begins then", k.why(task, "a"))
	k.Later(2 * time.Hour)
	k.Tick()
	k.Rest()
	require.Contains(t, k.why(task, "a"), "; the attempt before failed: busy: come back")
	k.object("select pawl.cancel_task($1, 'ann', 'not wanted')", task)
	require.Equal(t, "it has ended: not wanted", k.why(task, ""))
	require.Nil(t, get[*object](k, "select pawl.explain_task($1)", uuid.New()))
}

func TestTasksThatWaitForPersonsAndTimesAreExplained(t *testing.T) {
	k := newKit(t)
	k.Template("why/hold", object{"on_failure": "hold"}, step("a"), step("b: a"))
	task := k.Submit("why/hold")
	k.fail("work_queue", k.ClaimOne("work_queue"))
	require.Contains(t, k.why(task, ""), "a person decides")
	require.Equal(t, "failed: it broke", k.why(task, "a"))
	require.Equal(t, "needs a (error)", k.why(task, "b"))
	later := k.Submit("why/hold", object{"run_at": "2999-01-01T00:00:00Z"})
	require.Equal(t, "it starts then", k.why(later, ""))
	require.Contains(t, k.object("select pawl.explain_task($1)", later)["until"], "2999-01-01")

	lost := k.Submit("why/hold")
	k.Exec("select pgmq.pop('work_queue')")
	require.Contains(t, k.why(lost, "a"), "the reconciler ends this attempt")
	k.Exec("update pawl.engine_settings set max_steps_per_transaction = 1")
	require.Contains(t, k.why(k.Submit("why/hold"), ""), "builds its steps")
}

func TestAStepThatNobodyTakesIsExplained(t *testing.T) {
	k := newKit(t)
	k.Template("why/one", nil, step("a"))
	task := k.Submit("why/one")
	k.Exec("update pgmq.q_work_queue set vt = clock_timestamp() - interval '75.5 s'")
	require.Equal(t, "waits for a worker of queue work_queue, 0 messages are before it; "+
		"no worker holds a message of it, and the first waits for 1m15s: is one running?", k.why(task, "a"))
	require.Len(t, k.Claim("work_queue"), 1)
	other := k.Submit("why/one")
	k.Exec("update pgmq.q_work_queue set vt = clock_timestamp() - interval '75.5 s' where message->>'task_id' = $1", other.String())
	require.Equal(t, "waits for a worker of queue work_queue, 0 messages are before it", k.why(other, "a"))

	k.Expire("work_queue") // the first worker has no such handler, and says nothing
	k.Claim("work_queue")
	require.Equal(t, "worker-1 works on it until then, or longer with its heartbeats; delivery 2: before, workers ended, or had no handler "+
		"do.a and left it to others", k.why(task, "a"))
}

func TestARequestWithoutATaskIsExplained(t *testing.T) {
	k := newKit(t)
	why := func(id uuid.UUID) object {
		said := get[*object](k, "select pawl.explain_request($1)", id)
		if said == nil {
			return nil
		}
		require.Equal(t, id.String(), (*said)["request_id"])
		require.NotEmpty(t, (*said)["since"])
		return *said
	}
	send := func(request object) uuid.UUID {
		id := uuid.New()
		request["request_id"] = id
		k.Exec("select pgmq.send('orchestration_task_requests', $1)", request)
		return id
	}
	unknown := send(object{"template": "why/nothing"})
	said := why(unknown)
	require.Equal(t, "it waits in orchestration_task_requests, and no orchestrator has a heartbeat: start one with orchestrator", said["why"])
	require.Equal(t, true, said["waits"])
	k.Exec("select pawl.beat_processor(gen_random_uuid(), 'orchestrator', 'box', 7, '1')")
	require.Equal(t, "it waits in orchestration_task_requests for an orchestrator", why(unknown)["why"])
	id := k.Template("why/nothing", nil, step("a"))
	k.Exec("update pawl.templates set parked_reason = 'no janitor' where template_id = $1", id)
	require.Equal(t, "it waits for its template to be unparked: no janitor", why(unknown)["why"])
	k.Exec(`select pawl.process_task_requests((select jsonb_agg(jsonb_build_object('msg_id', msg_id, 'invalid',
		'{"error": "UnknownTemplate", "message": "there is none"}'::jsonb)) from pgmq.q_orchestration_task_requests))`)
	require.Contains(t, why(unknown)["why"], "it is dead letter ")
	require.Contains(t, why(unknown)["why"], ": UnknownTemplate: ")
	require.Equal(t, false, why(unknown)["waits"])

	k.Template("why/one", nil, step("a"))
	task := k.Submit("why/one", object{"key": "S-1", "input": object{"n": 1}})
	second := send(object{"template": "why/one", "key": "S-1", "input": object{"n": 1}})
	third := send(object{"template": "why/one", "key": "S-1", "input": object{"n": 1}, "on_duplicate": "reject"})
	k.Rest()
	require.Equal(t, "task "+task.String()+", which holds its key or id, has it", why(second)["why"])
	require.Equal(t, task.String(), why(second)["task_id"])
	require.Equal(t, "it was refused, TaskAlreadyExists: task "+task.String()+" holds its key or id", why(third)["why"])

	k.object("select pawl.drop_dead_letters('{}', 100, 'ann', 'typing error')")
	require.Contains(t, why(unknown)["why"], ", dropped: UnknownTemplate: ")
	require.Nil(t, why(uuid.New()))
}

func TestAnUnknownQueueSaysWhatMakesOne(t *testing.T) {
	k := newKit(t)
	unknown := "select pawl.claim_steps('work_queue', 1, 'w')"
	require.Equal(t, "Apply a template that names it, or send a first request: pawl enqueue HANDLER --queue QUEUE.", k.refused("PW010", unknown).Hint)
	k.Template("why/one", nil, step("a", object{"queue": "shop_queue"}))
	require.Equal(t, "Known queues: shop_queue", k.refused("PW010", unknown).Hint)
}

func TestReadinessOfSteps(t *testing.T) {
	k := newKit(t)
	k.Template("why/diamond", nil, step("a"), step("b: a"), step("c: a", object{"queue": "gated_queue"}), step("d: b c"))
	k.object("select pawl.pause_queue('gated_queue', 'ann', 'r')")
	task := k.Submit("why/diamond")
	readiness := func() []string {
		return list[string](k, "select format('%s %s %s/%s', step, readiness, satisfied, needs) from pawl.get_step_readiness_status($1)", task)
	}
	require.Equal(t, []string{"a running 0/0", "b blocked 0/1", "c blocked 0/1", "d blocked 0/2"}, readiness())
	k.Finish("work_queue", k.ClaimOne("work_queue"))
	require.Equal(t, []string{"a done 0/0", "b running 1/1", "c held 1/1", "d blocked 0/2"}, readiness())
	k.Finish("work_queue", k.ClaimOne("work_queue"))
	require.Equal(t, []string{"a done 0/0", "b done 1/1", "c held 1/1", "d blocked 1/2"}, readiness())
}

func TestTwoCallersGetDifferentReadyTasks(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("why/later", nil, step("a"))
	first := k.Submit("why/later", object{"run_at": "2001-01-01T00:00:00Z"})
	require.Equal(t, "steps_in_process", k.State(first), "a start in the past is now")
	one := k.Submit("why/later", object{"run_at": time.Now().Add(time.Hour)})
	two := k.Submit("why/later", object{"run_at": time.Now().Add(2 * time.Hour)})
	require.Equal(t, "its task has not begun", k.object("select pawl.explain_task($1)", two)["steps"].([]any)[0].(object)["why"])
	ready := "select task_id from pawl.get_next_ready_tasks(1)"
	require.Empty(t, list[uuid.UUID](k, ready))
	k.Later(3 * time.Hour)
	a, b := k.begin(), k.begin()
	require.Equal(t, []uuid.UUID{one}, list[uuid.UUID](a, ready))
	require.Equal(t, []uuid.UUID{two}, list[uuid.UUID](b, "select task_id from pawl.get_next_ready_tasks(5)"))
	a.commit()
	b.commit()
	require.Equal(t, []uuid.UUID{one}, list[uuid.UUID](k, ready))
}

func TestTransitionIsACompareAndSwap(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("why/one", nil, step("a"))
	task := k.Submit("why/one")
	k.Exec("update pawl.tasks set state = 'enqueuing_steps', revision = revision + 1")
	move := "select pawl.transition_task_state_atomic($1, 'enqueuing_steps', 'steps_in_process', 'p')"
	one, two := k.begin(), k.begin()
	pid := two.pid()
	require.Equal(t, true, one.object(move, task)["moved"])
	done := two.start(move, task)
	k.untilWaiting(pid)
	one.commit()
	two.ended(done)
	two.commit()
	require.Equal(t, object{"task_id": task.String(), "moved": false, "state": "steps_in_process"}, k.object(move, task))
	require.Equal(t, 1, get[int](k, "select count(*)::int from pawl.audit where processor = 'p'"), "one of the two moved it")
	k.refused("PW021", "select pawl.transition_task_state_atomic($1, 'steps_in_process', 'complete')", task)
	k.refused("PW021", "select pawl.transition_task_state_atomic($1, 'steps_in_process', 'waiting_for_retry')", task)
	k.refused("PW001", "select pawl.transition_task_state_atomic($1, 'steps_in_process', 'initializing')", task)
	k.refused("PW020", "select pawl.transition_task_state_atomic($1, 'steps_in_process', 'initializing')", uuid.New())
	k.Template("why/many", nil, step("a"), step("b"), step("c"))
	k.Exec("update pawl.engine_settings set max_steps_per_transaction = 2")
	built := k.Submit("why/many")
	require.Equal(t, "initializing", k.State(built))
	k.refused("PW021", "select pawl.transition_task_state_atomic($1, 'initializing', 'enqueuing_steps')", built)
	later := k.Submit("why/one", object{"run_at": "2999-01-01T00:00:00Z"})
	raised := k.refused("PW021", "select pawl.transition_task_state_atomic($1, 'pending', 'enqueuing_steps')", later)
	require.Contains(t, raised.Message, "has not begun")
}

func TestCyclesAreFoundWithTheirPath(t *testing.T) {
	k := newKit(t)
	id := k.Template("why/diamond", nil, step("a"), step("b: a"), step("c: a"), step("d: b c"), step("e: d"))
	path := func(from, to string) []string {
		return get[[]string](k, "select pawl.would_create_cycle($1, $2, $3)", id, from, to)
	}
	require.Nil(t, path("a", "e"))
	require.Nil(t, path("b", "c"))
	require.Equal(t, []string{"b", "b"}, path("b", "b"))
	require.Equal(t, []string{"d", "b", "d"}, path("d", "b"))
	require.Equal(t, []string{"e", "a", "b", "d", "e"}, path("e", "a"))
}

func TestLongPathsAreFollowedToTheirEnd(t *testing.T) {
	k := newKit(t)
	steps := []object{step("s0")}
	for i := 1; i < 300; i++ { // a chain of diamonds: 2^150 paths
		name, before := fmt.Sprint("s", i), fmt.Sprint("s", i-1)
		if i > 1 {
			before += fmt.Sprint(" s", i-2)
		}
		steps = append(steps, step(name+": "+before))
	}
	id := k.Template("why/long", nil, steps...)
	require.NotNil(t, get[[]string](k, "select pawl.would_create_cycle($1, 's299', 's0')", id))
	require.Nil(t, get[[]string](k, "select pawl.would_create_cycle($1, 's0', 's299')", id))
}

func TestStuckTasksAreReportedAndNotMoved(t *testing.T) {
	k := newKit(t)
	k.Template("why/stuck", object{"stuck_after": object{"steps_in_process": 60000}}, step("a"), step("b: a"))
	k.Template("why/calm", nil, step("a"))
	task := k.Submit("why/stuck")
	k.Submit("why/calm")
	clock := k.freeze()
	stuck := func() []object { return get[[]object](k, "select pawl.stuck_tasks()") }
	require.Empty(t, stuck())
	clock(65 * time.Second)
	require.Len(t, stuck(), 1)
	require.EqualValues(t, 1, k.reconcile()["stuck"])
	require.EqualValues(t, 0, k.reconcile()["stuck"], "once")
	found := stuck()[0]
	require.Equal(t, task.String(), found["task_id"])
	require.Equal(t, "open", found["status"])
	require.Contains(t, get[string](k, "select snapshot#>>'{steps,0,why}' from pawl.stuck_reports"), "waits for a worker")

	note := "select pawl.note_stuck_report($1, $2, 'the worker is down', 'ann', 'on call')"
	k.object(note, found["report_id"], "investigating")
	require.Equal(t, "the worker is down", stuck()[0]["notes"])
	k.refused("PW024", note, found["report_id"], "forgotten")
	k.refused("PW020", note, 99, "resolved")
	require.Equal(t, "steps_in_process", k.State(task))

	k.object("select pawl.configure_template('why', 'stuck', '{\"stuck_after\": {\"steps_in_process\": \"1h\"}}', 'ann', 'r')")
	require.Empty(t, stuck(), "configuration overrules the template")
	k.work("work_queue")
	k.reconcile()
	require.Equal(t, "resolved", get[string](k, "select status from pawl.stuck_reports where ended_at is not null"))
}
