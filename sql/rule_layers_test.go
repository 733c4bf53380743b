package sql_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/workflow"
)

// The database layer by itself: no guard, no function; keys and CHECKs refuse what must not be there twice or at all.
func TestKeysAndChecksHoldWithoutGuardsAndFunctions(t *testing.T) {
	k := newKit(t)
	k.shop()
	task := k.Submit("shop/diamond", object{"key": "one"})
	k.ClaimOne(queue)
	k.Exec("insert into pawl.held_steps (task_id, step, queue, attempt, held_at) values ($1, 'd', 'work_queue', 1, now())", task)
	k.Exec("insert into pawl.entity_claims (entity, entity_id, task_id, step, attempt, version, revert_to, on_success, claimed_at, lease_until) values ('e', '1', $1, 'a', 1, 1, 'x', 'y', now(), now())", task)
	k.Exec("insert into pawl.step_identities (scope, key, task_id, step, status) values ('s', 'k', $1, 'a', 'running')", task)
	k.bypassGuards()
	for _, table := range []string{"tasks", "steps", "task_identities", "held_steps", "entity_claims", "step_identities", "queues",
		"template_steps", "template_edges", "engine_settings"} {
		columns := get[string](k, `select string_agg(format('%I', attname), ', ') from pg_attribute
			where attrelid = ('pawl.' || $1)::regclass and attnum > 0 and not attisdropped and attgenerated = ''`, table)
		k.refused("23505", fmt.Sprintf("insert into pawl.%s (%s) select %[2]s from pawl.%[1]s", table, columns))
	}
	k.refused("23505", `insert into pawl.templates (namespace, name, version, definition, digest, step_count) values ('shop', 'diamond', '1', '{}', '', 1)`)
	for _, change := range []string{
		"update pawl.tasks set state = 'complete'",                                                         // without its time
		"update pawl.tasks set finalized_at = now()",                                                       // without its state
		"update pawl.tasks set state = 'complete', finalized_at = now()",                                   // with open steps
		"update pawl.tasks set state = 'complete', finalized_at = now(), open_count = 0, failed_count = 1", // with failed ones
		"update pawl.tasks set open_count = -1", "update pawl.tasks set active_count = -1", "update pawl.tasks set held_count = -1",
		"update pawl.tasks set retrying_count = -1", "update pawl.tasks set waiting_count = -1", "update pawl.tasks set failed_count = -1",
		"update pawl.steps set worker = null where step = 'a'", // in progress by nobody
		"update pawl.steps set worker = 'w' where step = 'd'",  // by somebody, but not in progress
		"update pawl.steps set needs_open = -1", "update pawl.steps set attempt = -1", "update pawl.steps set deliveries = -1", "update pawl.steps set failures = -1",
		"update pawl.task_identities set key = ''", "update pawl.task_identities set key = repeat('x', 256)",
		"update pawl.task_identities set status = 'odd'", "update pawl.queues set rate_limit = 5", "update pawl.queues set queue = 'Bad'",
	} {
		k.refused("23514", change)
	}
}

// The database layer by itself: row locks and compare-and-swap let one of many through, although no guard looks.
func TestCompareAndSwapLetsOneThroughWithoutGuards(t *testing.T) {
	k := newCommittingKit(t)
	k.bypassGuards()
	k.shop()
	setting(k, "direct = false")
	k.Submit("shop/diamond")
	k.Finish(queue, k.ClaimOne(queue))
	k.Exec("insert into pgmq.q_orchestration_step_results (vt, message) select clock_timestamp(), message from pgmq.q_orchestration_step_results, generate_series(1, 7)")
	// Where eight at once take longer than a result waits for its task, some are put off.
	for ids := k.ids("orchestration_step_results"); len(ids) > 0; ids = k.ids("orchestration_step_results") {
		var everybody sync.WaitGroup
		for _, id := range ids {
			everybody.Go(func() { k.Exec("select pawl.apply_step_results(array[$1::bigint], 'p')", id) })
		}
		everybody.Wait()
	}
	require.Equal(t, object{"a": "1", "revision": "3"}, k.object(`select jsonb_build_object('a', count(*)::text, 'revision', max(revision)::text)
		from pawl.steps where step = 'a' and state = 'complete'`))
	require.Equal(t, 2, get[int](k, "select count(*)::int from pgmq.q_work_queue"), "b and c, once each")
	require.Equal(t, 7, get[int](k, "select count(*)::int from pawl.absorbed"))
	require.Equal(t, 3, get[int](k, "select open_count from pawl.tasks"))
}

// The state machine by itself: CHECKs dropped, functions bypassed. Of all pairs of states a raw update makes exactly the
// legal ones, and those that are an operator's only with an operator's name.
func TestGuardsRefuseEveryIllegalPairWithoutChecksAndFunctions(t *testing.T) {
	k := newKit(t)
	k.shop()
	task := k.Submit("shop/diamond")
	k.bypassChecks()
	legal := map[string]workflow.Transition{}
	for _, l := range workflow.LegalTransitions() {
		legal[fmt.Sprint(l.Entity, " ", l.From, " ", l.To)] = l
	}
	try := func(entity, table, from, to string) {
		k.Exec("set local session_replication_role = replica")
		k.Exec(fmt.Sprintf("update pawl.%s set state = $2::text::pawl.%s_state, revision = 5 where task_id = $1", table, entity), task, from)
		k.Exec("set local session_replication_role = origin")
		l, ok := legal[fmt.Sprint(entity, " ", from, " ", to)]
		hops := max(l.Hops, 1)
		move := fmt.Sprintf("update pawl.%s set state = '%s', revision = revision + %%d where task_id = '%s'", table, to, task)
		if from == to && !ok {
			k.refused("PW001", fmt.Sprintf(move, 1))
			return
		}
		if !ok {
			k.refused("PW001", fmt.Sprintf(move, hops))
			return
		}
		k.refused("PW001", fmt.Sprintf(move, hops+1)) // a revision left out
		if l.OperatorOnly {
			k.refused("PW001", fmt.Sprintf(move, hops))
			k.Exec("select set_config('pawl.actor', 'ann', true)")
		}
		require.NoError(k, k.attempt(calling(fmt.Sprintf(move, hops))), "%s %s → %s", entity, from, to)
		k.Exec("select set_config('pawl.actor', '', true)")
	}
	for _, from := range workflow.TaskStates() {
		for _, to := range workflow.TaskStates() {
			try("task", "tasks", string(from), string(to))
		}
	}
	for _, from := range workflow.StepStates() {
		for _, to := range workflow.StepStates() {
			try("step", "steps", string(from), string(to))
		}
	}
}

// The application layer by itself: guards and CHECKs off. Duplicates, late comers and strangers find a state that is not
// theirs to change.
func TestFunctionsFilterByStateWithoutGuardsAndChecks(t *testing.T) {
	k := newKit(t)
	k.bypassGuards()
	k.bypassChecks()
	k.shop()
	send := func(queue string, body object) { k.Exec("select pgmq.send($1, $2::jsonb)", queue, body) }
	id := uuid.New()
	request := object{"request_id": id.String(), "key": "one"}
	require.Equal(t, "created", k.Request("shop/diamond", request)["outcome"])
	unchanged := func(why string, act func()) {
		before := k.content()
		act()
		k.Rest()
		require.Equal(t, before, k.content(), why)
	}
	unchanged("the request again", func() { k.Request("shop/diamond", request) })
	unchanged("the key again", func() { k.Request("shop/diamond", object{"key": "one"}) })
	d := k.ClaimOne(queue)
	unchanged("a claim of what is claimed", func() { require.Empty(t, k.Claim(queue)) })
	result := object{"task_id": id, "step": "a", "status": "complete", "result": 1}
	unchanged("a result of an older attempt", func() { send("orchestration_step_results", merged(result, object{"attempt": 0})) })
	unchanged("another look at a task that has all it needs", func() { send("orchestration_step_enqueues", object{"task_id": id, "reason": "x"}) })
	unchanged("a finalizer that comes too soon", func() { send("orchestration_task_finalizations", object{"task_id": id, "reason": "x"}) })
	unchanged("the clock", func() { k.Tick() })
	unchanged("the gate", func() { k.release() })
	k.Finish(queue, d)
	unchanged("a report again", func() { require.False(t, k.Report(queue, d, object{"status": "complete"})) })
	unchanged("its result again", func() { send("orchestration_step_results", merged(result, object{"attempt": 1})) })
	unchanged("its failure after its success", func() {
		send("orchestration_step_results", merged(result, object{"attempt": 1, "status": "failed", "error": object{"type": "late"}}))
	})
	k.work(queue)
	require.Equal(t, "complete", k.State(id))
	unchanged("a result after the end", func() { send("orchestration_step_results", merged(result, object{"step": "d", "attempt": 1})) })
	unchanged("a finalizer after the end", func() { send("orchestration_task_finalizations", object{"task_id": id, "reason": "x"}) })
	unchanged("another look after the end", func() { send("orchestration_step_enqueues", object{"task_id": id, "reason": "x"}) })
	unchanged("the request after the end", func() { k.Request("shop/diamond", request) })
}
