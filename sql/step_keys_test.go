package sql_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// keyed makes the template shop/render, whose only step before its last holds a key of the input.
func keyed(k *kit) {
	k.Template("shop/render", object{}, step("fetch", object{"key": "${input.url}", "handler": "do.fetch"}), step("show: fetch"))
}

func (k *kit) result(task uuid.UUID, name string) string {
	k.Helper()
	return get[string](k, "select coalesce(result::text, '') from pawl.steps where task_id = $1 and step = $2", task, name)
}

func TestExpressionsTakeValuesOfTheInput(t *testing.T) {
	k := newKit(t)
	for _, c := range []struct {
		expr, input string
		want        *string
	}{
		{"${input.a}", `{"a": "x"}`, new("x")},
		{"a-${input.a}-${input.b.c}", `{"a": 1.50, "b": {"c": true}}`, new("a-1.5-true")},
		{"${input.a}${input.b}", `{"a": "${input.b}", "b": "y"}`, new("${input.b}y")},
		{"${input.a.1}", `{"a": ["x", "y"]}`, new("y")},
		{"${input.a}", `{"b": "x"}`, nil},
		{"${input.a}", `{"a": null}`, nil},
		{"${input.a}", `{"a": {"b": 1}}`, nil},
		{"${input.a}", `null`, nil},
	} {
		require.Equal(t, c.want, get[*string](k, "select pawl.evaluate_expression($1, $2::text::jsonb)", c.expr, c.input), c.expr)
	}
}

func TestStepWithHeldKeyAttachesToTheResult(t *testing.T) {
	k := newKit(t)
	keyed(k)
	first := k.Submit("shop/render", object{"input": object{"url": "u1"}})
	require.Equal(t, []string{"fetch", "show"}, k.work("work_queue"))
	second := k.Submit("shop/render", object{"input": object{"url": "u1"}})
	require.Equal(t, "complete", k.steps(second)["fetch"])
	require.Equal(t, k.result(first, "fetch"), k.result(second, "fetch"))
	require.Contains(t, k.events(second), "fetch: attached")
	other := k.Submit("shop/render", object{"input": object{"url": "u2"}})
	require.Equal(t, "enqueued", k.steps(other)["fetch"])
	k.work("work_queue")
	require.Equal(t, []string{"complete", "complete", "complete"}, []string{k.State(first), k.State(second), k.State(other)})
	k.sound()
}

func TestStepsWithARunningKeyWaitForItsResult(t *testing.T) {
	k := newKit(t)
	keyed(k)
	first := k.Submit("shop/render", object{"input": object{"url": "u"}})
	second := k.Submit("shop/render", object{"input": object{"url": "u"}})
	third := k.Submit("shop/render", object{"input": object{"url": "u"}})
	require.Equal(t, "waiting", k.steps(second)["fetch"])
	require.Equal(t, "waiting_for_dependencies", k.State(third))
	require.Equal(t, []string{"fetch", "show", "show", "show"}, k.work("work_queue"))
	for _, task := range []uuid.UUID{first, second, third} {
		require.Equal(t, "complete", k.State(task))
	}
	require.Zero(t, get[int](k, "select count(*) from pawl.step_key_waiters"))
	k.sound()
}

func TestNextWaiterTakesTheKeyOfAFailedHolder(t *testing.T) {
	k := newKit(t)
	keyed(k)
	first := k.Submit("shop/render", object{"input": object{"url": "u"}})
	second := k.Submit("shop/render", object{"input": object{"url": "u"}})
	third := k.Submit("shop/render", object{"input": object{"url": "u"}})
	k.fail("work_queue", k.ClaimOne("work_queue"))
	k.Rest()
	require.Equal(t, "error", k.State(first))
	states := []string{k.steps(second)["fetch"], k.steps(third)["fetch"]}
	require.ElementsMatch(t, []string{"enqueued", "waiting"}, states)
	k.work("work_queue")
	require.Equal(t, []string{"complete", "complete"}, []string{k.State(second), k.State(third)})
	k.sound()
}

func TestHolderInBackOffKeepsItsKey(t *testing.T) {
	k := newKit(t)
	keyed(k)
	first := k.Submit("shop/render", object{"input": object{"url": "u"}})
	k.Report("work_queue", k.ClaimOne("work_queue"), object{"status": "failed", "error": object{"type": "net"}})
	second := k.Submit("shop/render", object{"input": object{"url": "u"}})
	require.Equal(t, []string{"waiting_for_retry", "waiting"}, []string{k.steps(first)["fetch"], k.steps(second)["fetch"]})
	k.Later(time.Hour)
	k.Tick()
	k.work("work_queue")
	require.Equal(t, []string{"complete", "complete"}, []string{k.State(first), k.State(second)})
}

func TestCancelOfTheHolderFreesItsKey(t *testing.T) {
	k := newKit(t)
	keyed(k)
	first := k.Submit("shop/render", object{"input": object{"url": "u"}})
	second := k.Submit("shop/render", object{"input": object{"url": "u"}})
	k.Exec("select pawl.cancel_task($1, 'ann', 'wrong url')", first)
	k.Rest()
	require.Equal(t, "enqueued", k.steps(second)["fetch"])
	k.work("work_queue")
	require.Equal(t, "complete", k.State(second))
	k.sound()
}

func TestFailFastFreesTheKeysOfWhatItCancels(t *testing.T) {
	k := newKit(t)
	keyed(k)
	k.Template("shop/both", object{"on_failure": "fail_fast"}, step("bad", object{"queue": "bad_queue"}),
		step("fetch", object{"key": "${input.url}", "handler": "do.fetch"}))
	k.Submit("shop/both", object{"input": object{"url": "u"}})
	second := k.Submit("shop/render", object{"input": object{"url": "u"}})
	k.fail("bad_queue", k.ClaimOne("bad_queue"))
	k.Rest()
	require.Equal(t, "enqueued", k.steps(second)["fetch"])
	k.sound()
}

func TestDeadHolderIsFoundByTheReconciler(t *testing.T) {
	k := newKit(t)
	keyed(k)
	first := k.Submit("shop/render", object{"input": object{"url": "u"}})
	second := k.Submit("shop/render", object{"input": object{"url": "u"}})
	require.Zero(t, get[int](k, "select pawl.reconcile_step_keys()"))
	k.Exec("set local session_replication_role = replica")
	k.Exec("delete from pawl.steps where task_id = $1", first)
	k.Exec("set local session_replication_role = origin")
	require.Equal(t, 1, get[int](k, "select pawl.reconcile_step_keys()"))
	k.Rest()
	require.Equal(t, "enqueued", k.steps(second)["fetch"])
}

func TestKeyOfAStepEndsWithItsWindow(t *testing.T) {
	k := newKit(t)
	k.Template("shop/brief", object{"identity": object{"dedup_window_ms": 60_000}},
		step("fetch", object{"key": "${input.url}", "handler": "do.fetch"}))
	k.Submit("shop/brief", object{"input": object{"url": "u"}})
	k.work("work_queue")
	require.Zero(t, get[int](k, "select deleted from pawl.sweep_step_identities(500, '', '')"))
	k.Later(2 * time.Minute)
	second := k.Submit("shop/brief", object{"input": object{"url": "u"}})
	require.Equal(t, "enqueued", k.steps(second)["fetch"])
	k.work("work_queue")
	k.Later(5 * time.Minute)
	require.Equal(t, 1, get[int](k, "select deleted from pawl.sweep_step_identities(500, '', '')"))
}

func TestStepWithoutAValueForItsKeyFails(t *testing.T) {
	k := newKit(t)
	keyed(k)
	task := k.Submit("shop/render")
	require.Equal(t, "error", k.State(task))
	require.Equal(t, map[string]string{"fetch": "error", "show": "cancelled"}, k.steps(task))
	require.Equal(t, "key_missing", get[string](k, "select error->>'type' from pawl.tasks where task_id = $1", task))
	k.sound()
}

func TestKeysInOneTaskFollowEachOther(t *testing.T) {
	k := newKit(t)
	same := object{"key": "${input.url}", "handler": "do.fetch"}
	k.Template("shop/chain", object{}, step("a", same), step("b: a", same), step("c", same), step("d: b c"))
	task := k.Submit("shop/chain", object{"input": object{"url": "u"}})
	require.Equal(t, []string{"a", "d"}, k.work("work_queue"))
	require.Equal(t, "complete", k.State(task))
	k.sound()
}

func TestKeyIsGivenAwayOnceUnderConcurrency(t *testing.T) {
	k := newCommittingKit(t)
	keyed(k)
	const callers, tasks = 8, 12
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			for range tasks {
				_, err := k.pool.Exec(k.Context(), `select pgmq.send('orchestration_task_requests',
					'{"template": "shop/render", "input": {"url": "u"}}'::jsonb)`)
				require.NoError(k, err)
				_, err = k.pool.Exec(k.Context(), `select pawl.process_task_requests((select coalesce(jsonb_agg(jsonb_build_object(
					'msg_id', r.msg_id, 'template_id', 1)), '[]') from unnest(pawl_queues.read_orchestration_task_requests(5, 30000, 1000000)) r))`)
				require.NoError(k, err)
				_, err = k.pool.Exec(k.Context(), `select pawl.report_steps('work_queue', (select jsonb_agg(jsonb_build_object('msg_id', c->'msg_id', 'read_ct', c->'read_ct', 'status', 'complete'))
					from jsonb_array_elements(pawl.claim_steps('work_queue', 3, 'w')::jsonb) c), 'w')`)
				require.NoError(k, err)
			}
		})
	}
	wait.Wait()
	require.Eventually(k, func() bool {
		k.work("work_queue")
		return get[int](k, "select count(*) from pawl.tasks where state = 'complete'") == callers*tasks
	}, time.Minute, 20*time.Millisecond, "every task should finish")
	require.Equal(k, 1, get[int](k, "select count(*) from pawl.audit where step = 'fetch' and event = 'enqueued'"))
	k.sound()
}

func TestManyKeysAreTakenInPieces(t *testing.T) {
	k := newKit(t)
	steps := make([]object, 600)
	for i := range steps {
		steps[i] = step(fmt.Sprintf("s%04d", i), object{"key": fmt.Sprintf("%d-${input.url}", i), "handler": "do.fetch"})
	}
	k.Template("shop/many", object{}, steps...)
	task := k.Submit("shop/many", object{"input": object{"url": "u"}})
	started := func() int {
		return get[int](k, "select count(*) from pawl.steps where task_id = $1 and state = 'enqueued'", task)
	}
	for _, want := range []int{500, 600, 600} {
		require.Equal(t, want, started())
		k.Expire("orchestration_step_enqueues")
		k.Rest()
	}
	k.sound()
}

func TestKeysAndGatesGoTogether(t *testing.T) {
	k := newKit(t)
	keyed(k)
	k.Exec("select pawl.configure_queue('work_queue', '{\"max_concurrency\": 1}', 'ann', 'slow')")
	first := k.Submit("shop/render", object{"input": object{"url": "u"}})
	second := k.Submit("shop/render", object{"input": object{"url": "u"}})
	other := k.Submit("shop/render", object{"input": object{"url": "v"}})
	for range 6 {
		k.Exec("select pawl.release_held(10, 'kit')")
		k.work("work_queue")
	}
	for _, task := range []uuid.UUID{first, second, other} {
		require.Equal(t, "complete", k.State(task))
	}
	require.Equal(t, 2, get[int](k, "select count(*) from pawl.audit where step = 'fetch' and event = 'enqueued'"))
	k.sound()
}
