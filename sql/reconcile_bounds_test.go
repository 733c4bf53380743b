package sql_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What one call of the reconciler does is bounded: one that is too slow is rolled back and begins the same page for ever.

func TestStuckTasksAreReportedSomeAtATime(t *testing.T) {
	k := newKit(t)
	k.Template("bounds/stuck", object{"stuck_after": object{"steps_in_process": 60000}}, step("a"))
	for range 45 {
		k.Submit("bounds/stuck")
	}
	k.freeze()(65 * time.Second)
	k.Exec("set local track_functions = 'all'")
	explained := func() int {
		return get[int](k, "select coalesce(pg_stat_get_xact_function_calls('pawl.explain_task(uuid)'::regprocedure), 0)::int")
	}
	for _, want := range []int{20, 20, 5, 0} {
		before := explained()
		require.EqualValues(t, want, k.reconcile()["stuck"])
		require.Equal(t, want, explained()-before, "a snapshot looks through whole queues: who has a report needs none")
	}
	require.Equal(t, 45, get[int](k, "select count(distinct task_id)::int from pawl.stuck_reports where ended_at is null"))
}

func TestReportsOfEachPageAreEndedWithIt(t *testing.T) {
	k := newKit(t)
	k.Template("bounds/stuck", object{"stuck_after": object{"steps_in_process": 60000}}, step("a"))
	for range 4 {
		k.Submit("bounds/stuck")
	}
	clock := k.freeze()
	clock(65 * time.Second)
	require.EqualValues(t, 4, k.reconcile()["stuck"])
	k.work("work_queue")
	k.Submit("bounds/stuck")
	ended := func() int {
		return get[int](k, "select count(*)::int from pawl.stuck_reports where status = 'resolved'")
	}
	k.Exec("update pawl.reconciler set after_task = (select task_id from pawl.tasks order by task_id offset 1 limit 1)")
	require.Equal(t, true, k.reconcile()["wrapped"])
	require.Equal(t, 2, ended())
	k.reconcile()
	require.Equal(t, 4, ended())
}

func TestAPageIsBoundedBySteps(t *testing.T) {
	k := newKit(t)
	k.Template("bounds/wide", nil, fan(28)...)
	k.Template("bounds/wider", nil, fan(98)...)
	for _, template := range []string{"wide", "wide", "wide", "wider", "wider", "wide"} {
		k.Submit("bounds/" + template)
	}
	k.Exec("update pawl.tasks set active_count = 5")
	k.Later(2 * time.Minute)
	var pages []float64
	repaired := 0.0
	for wrapped := false; !wrapped; {
		page := k.object("select pawl.reconcile('r', 3)") // 60 steps
		pages = append(pages, page["looked_at"].(float64))
		repaired += page["repaired"].(object)["engine"].(float64)
		wrapped = page["wrapped"].(bool)
	}
	require.Equal(t, []float64{2, 2, 1, 1}, pages, "the task with which a page is full belongs to it")
	require.EqualValues(t, 6, repaired, "a pass looks at all tasks")
}

func TestLongQueuesTakeTurns(t *testing.T) {
	k := newKit(t)
	const queues = 4
	for i := range queues {
		queue := fmt.Sprintf("long_%d", i)
		k.Template("bounds/"+queue, nil, step("a", object{"queue": queue}))
		k.Submit("bounds/" + queue)
		k.Exec("delete from pgmq.q_" + queue)
		k.Exec("insert into pgmq.q_" + queue + " (vt, message) select clock_timestamp(), '{}' from generate_series(1, 80000)")
	}
	k.Later(2 * time.Minute)
	require.EqualValues(t, 3, k.reconcile()["noted"], "one call looks through about 200,000 messages")
	repaired := 0.0
	for range 30 {
		repaired += k.reconcile()["repaired"].(object)["foreign"].(float64)
	}
	require.EqualValues(t, queues, repaired)
	require.Empty(t, list[string](k, "select step from pawl.reconciler_notes"))
}

func TestTheTurnOfEveryQueueComes(t *testing.T) {
	k := newKit(t)
	var queues []string
	for i := range 1100 {
		queues = append(queues, fmt.Sprintf("none_%d", i)) // no table
	}
	for i := range 12 {
		queue := fmt.Sprintf("turn_%d", i)
		k.Exec("select pgmq.create($1)", queue)
		k.Exec("insert into pgmq.q_" + queue + " (vt, message) select clock_timestamp(), '{}' from generate_series(1, 30000)")
		queues = append(queues, queue)
	}
	seen := map[string]int{}
	for range 30 {
		turn := list[string](k, "select unnest(pawl.queues_in_turn($1))", queues)
		require.Len(t, turn, 7)
		for _, queue := range turn {
			seen[queue]++
		}
		k.Exec("update pawl.reconciler set pass = pass + 1")
	}
	require.Len(t, seen, 12, "%v", seen)
}

func TestLostAttemptsAreEndedSomeAtATime(t *testing.T) {
	k := newKit(t)
	k.Exec("update pawl.engine_settings set max_steps_per_transaction = 3000")
	var steps []object
	for i := range 2100 {
		steps = append(steps, step(fmt.Sprint("s", i)))
	}
	k.Template("bounds/many", nil, steps...)
	k.Submit("bounds/many")
	k.Exec("select pgmq.purge_queue('work_queue')")
	k.Later(2 * time.Minute)
	require.EqualValues(t, 2100, k.reconcile()["noted"])
	for _, want := range []float64{2000, 100, 0} {
		require.Equal(t, object{"engine": 0.0, "foreign": want}, k.reconcile()["repaired"])
	}
}

func TestStaleMessagesAreAbsorbedSomeAtATime(t *testing.T) {
	k := newKit(t)
	for i := range 3 {
		queue := fmt.Sprintf("stale_%d", i)
		k.Template("bounds/"+queue, nil, step("a", object{"queue": queue}))
		k.Exec("insert into pgmq.q_" + queue + ` (vt, enqueued_at, message) select now(), now() - interval '1 hour',
			jsonb_build_object('task_id', gen_random_uuid(), 'step', 'a', 'attempt', 1) from generate_series(1, 900)`)
	}
	for _, want := range []int{2000, 700, 0} {
		require.EqualValues(t, want, k.reconcile()["absorbed"])
	}
}
