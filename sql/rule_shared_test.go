package sql_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// together runs n calls at once, each on a connection of its own, and gives what each answers.
func together[T any](k *kit, n int, sql string, args ...any) []T {
	k.Helper()
	answers := make([]T, n)
	var everybody sync.WaitGroup
	for i := range n {
		everybody.Go(func() { answers[i] = get[T](k, sql, args...) })
	}
	everybody.Wait()
	return answers
}

// Namespaces, templates, queues and handlers are shared: found or created by whoever comes first, found by all others.
func TestWhatIsSharedIsFoundOrCreatedOnce(t *testing.T) {
	k := newCommittingKit(t)
	definition := object{"namespace": "new", "name": "thing", "version": "1", "steps": []object{step("a", object{"no": 0, "queue": "thing_queue"})}}
	created := 0
	for _, answer := range together[object](k, 8, "select pawl.register_template($1)", definition) {
		require.InDelta(t, 1, answer["template_id"], 0)
		if answer["created"].(bool) {
			created++
		}
	}
	require.Equal(t, 1, created)
	for _, id := range together[int](k, 8, "select pawl.adhoc_template('new', 'new.handler', null)") {
		require.Equal(t, 2, id)
	}
	made := 0
	for _, isNew := range together[bool](k, 8, "select pawl.install_queue('quite_new_queue')") {
		if isNew {
			made++
		}
	}
	require.Equal(t, 1, get[int](k, "select count(*)::int from pgmq.meta where queue_name = 'quite_new_queue'"))
	require.GreaterOrEqual(t, made, 1)
	other := object{"namespace": "new", "name": "thing", "version": "1", "steps": []object{step("b", object{"no": 0})}}
	k.refused("PW011", "select pawl.register_template($1)", other)
}

// Many workers and many clocks take different work: each step is begun once, each retry fired once.
func TestWorkIsSharedOutWithoutOverlap(t *testing.T) {
	k := newCommittingKit(t)
	k.shop()
	for range 100 {
		k.Submit("shop/flaky")
	}
	var mu sync.Mutex
	var claimed []delivery
	var everybody sync.WaitGroup
	for range 8 {
		everybody.Go(func() {
			for {
				mine := get[[]delivery](k, "select pawl.claim_steps('work_queue', 5, 'w')")
				if len(mine) == 0 {
					return
				}
				mu.Lock()
				claimed = append(claimed, mine...)
				mu.Unlock()
			}
		})
	}
	everybody.Wait()
	seen := map[string]int{}
	for _, d := range claimed {
		seen[fmt.Sprint(d.ID, ":", d.ReadCount)]++
		require.Equal(t, 1, d.ReadCount)
	}
	require.Len(t, claimed, 100)
	require.Len(t, seen, 100, "no step twice")

	k.Exec("select pawl.report_steps('work_queue', $1, 'w')", reportsOf("failed", claimed...))
	k.Later(time.Hour)
	require.Eventually(t, func() bool { // one passes over what another holds, and comes again
		together[object](k, 4, "select pawl.fire_due(10, 'clock')")
		return get[int](k, "select count(*)::int from pawl.steps where attempt = 2 and state = 'enqueued'") == 100
	}, time.Minute, time.Millisecond)
	require.Equal(t, 100, get[int](k, "select count(*)::int from pgmq.q_work_queue where message->>'attempt' = '2'"))
	k.sound()
}

// The processor is written down for each transition and never asked for its right: who comes next goes on from any state.
func TestAnyProcessorGoesOnAndIsWrittenDown(t *testing.T) {
	k := newCommittingKit(t)
	k.shop()
	setting(k, "staged = true")
	task := k.Submit("shop/one")
	dead := "00000000-0000-0000-0000-00000000dead"
	k.Exec("select pawl.beat_processor($1, 'orchestrator', 'gone', 1, '1')", dead)
	k.Exec("update pawl.processors set heartbeat_at = now() - interval '1 day'")
	for i, c := range []struct{ queue, function string }{
		{"step_enqueues", "process_step_enqueues"}, {"step_results", "apply_step_results"}, {"task_finalizations", "finalize_tasks"},
	} {
		if c.queue == "step_results" {
			k.Finish(queue, k.ClaimOne(queue))
		}
		dying := k.begin()
		dying.Exec("select pawl."+c.function+"($1, $2)", k.ids("orchestration_"+c.queue), dead)
		k.Exec("select pg_terminate_backend($1)", dying.pid())
		k.Exec("select pawl."+c.function+"($1, $2)", k.ids("orchestration_"+c.queue), fmt.Sprint("next ", i))
	}
	require.Equal(t, "complete", k.State(task))
	require.ElementsMatch(t, []string{"kit", "next 0", "worker-1", "next 1", "next 2"}, list[string](k,
		"select distinct processor from pawl.audit where task_id = $1", task))
	k.sound()
}

// Nothing partial of a task: whatever a request's creation fails at, the request is still there and nothing else is.
func TestATaskIsCreatedWholeOrNotAtAll(t *testing.T) {
	k := newKit(t)
	k.shop()
	k.Exec(`create function refuse_d() returns trigger language plpgsql as $$ begin
		if new.step = 'd' then raise exception 'no'; end if; return new; end $$`)
	k.Exec("create trigger refuse_d before insert on pawl.steps for each row execute function refuse_d()")
	k.Exec(`select pgmq.send('orchestration_task_requests', '{"template": "shop/diamond", "input": {}, "key": "one"}')`)
	before := k.content()
	k.refused("P0001", `select pawl.process_task_requests(jsonb_build_array(jsonb_build_object('msg_id', $1::bigint, 'template_id',
		(select template_id from pawl.templates where name = 'diamond'))), 'p')`, k.ids("orchestration_task_requests")[0])
	require.Equal(t, before, k.content())
	k.refused("PW012", "select pawl.register_template($1)", object{"namespace": "a", "name": "cycle", "version": "1", "steps": []object{
		{"no": 0, "name": "a", "handler": "h", "queue": "cycle_queue", "needs": []int{1}}, {"no": 1, "name": "b", "handler": "h", "queue": "cycle_queue", "needs": []int{0}}}})
	require.Equal(t, before, k.content(), "no template, no step, no queue of a cycle")
}
