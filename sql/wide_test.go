package sql_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// A plan is made for tasks as they are on average. One that finds a step by its task alone, because tasks have had four steps
// so far, reads half a million rows for a task of a thousand. The bound is on blocks, which do not depend on the machine.
func TestAWideTaskReadsEachStepByItsKey(t *testing.T) {
	const (
		wide  = 600
		bound = 150 // blocks of steps, edges and their indexes for each step of one task: no phase takes 100
	)
	for name, small := range map[string]int{"without statistics": 0, "with statistics of small tasks": 30} {
		t.Run(name, func(t *testing.T) {
			k := newCountingKit(t)
			k.Template("narrow/chain", nil, step("a"), step("b: a"), step("c: b"), step("d: c"))
			for range small {
				k.Submit("narrow/chain")
			}
			k.work("work_queue")
			k.Exec("analyze pawl.steps, pawl.tasks, pawl.template_steps, pawl.template_edges")

			task, second := uuid.Nil, uuid.Nil
			operate := func(call string) {
				k.Exec("select "+call, second)
				k.Rest()
			}
			for _, phase := range []struct {
				does string
				do   func()
			}{
				{"registering", func() { k.Template("wide/fan", nil, fan(wide)...) }},
				{"submitting two", func() { task, second = k.Submit("wide/fan"), k.Submit("wide/fan"); k.Rest() }},
				{"the fans begin, in pieces", func() {
					k.Exec("update pawl.engine_settings set max_steps_per_transaction = 100")
					begun := k.Claim("work_queue")
					k.Finish("work_queue", begun[0])
					k.fail("work_queue", begun[1])
					k.Rest()
				}},
				{"reconciling", func() { k.Exec("select pawl.reconcile_tasks(array[$1, $2]::uuid[], '0')", task, second) }},
				{"explaining", func() { k.Exec("select pawl.get_step_readiness_status($1)", task) }},
				{"working off the first", func() { k.work("work_queue") }},
				{"retrying the second", func() { operate("pawl.retry_task($1, null, 'ann', 'again')") }},
				{"failing it again", func() { k.fail("work_queue", k.ClaimOne("work_queue")); k.Rest() }},
				{"all anew", func() { operate("pawl.retry_task($1, 'root', 'ann', 'again')") }},
				{"its fan", func() { k.Finish("work_queue", k.ClaimOne("work_queue")); k.Rest() }},
				{"cancelling", func() { operate("pawl.cancel_task($1, 'ann', 'enough')") }},
			} {
				require.LessOrEqual(t, k.blocks(phase.do)/wide, bound, phase.does)
			}
			require.Equal(t, "complete", k.State(task))
			require.Equal(t, "cancelled", k.State(second))
		})
	}
}

// What a failure leaves behind is cancelled a generation at a time, and a chain has as many as it has steps.
func TestAFailureReadsEachStepOfALongTaskByItsKey(t *testing.T) {
	const (
		long  = 500
		bound = 60 // as above
	)
	for name, steps := range map[string]func(int) []object{"a chain": chain, "a fan": fan} {
		for _, policy := range []string{"finish", "fail_fast"} {
			t.Run(name+", "+policy, func(t *testing.T) {
				k := newCountingKit(t)
				k.Template("long/task", object{"on_failure": policy}, steps(long)...)
				task := k.Submit("long/task")
				if name == "a fan" {
					k.Finish("work_queue", k.ClaimOne("work_queue"))
					k.Rest()
				}
				var last delivery
				for claimed := k.Claim("work_queue"); len(claimed) > 0; claimed = k.Claim("work_queue") {
					last = claimed[len(claimed)-1]
				}
				require.LessOrEqual(t, k.blocks(func() { k.fail("work_queue", last) })/long, bound)
				require.Equal(t, name == "a chain" || policy == "fail_fast", k.State(task) == "error")
			})
		}
	}
}

// newCountingKit works in one session of a database of its own, so that blocks counts what that session reads.
func newCountingKit(t *testing.T) *kit {
	t.Helper()
	k := newCommittingKit(t)
	conn, err := k.pool.Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(conn.Release)
	return kitOn(t, conn, nil)
}

// Whether a task's steps are there was decided when it was created, and the bound may have moved since.
func TestALargeTaskThatWasPutOffIsBuiltThoughTheBoundHasMoved(t *testing.T) {
	for name, bounds := range map[string][2]int{"up": {2, 2000}, "down": {2000, 2}} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.Template("wide/later", nil, chain(3)...)
			k.Exec("update pawl.engine_settings set max_steps_per_transaction = $1", bounds[0])
			task := k.Submit("wide/later", object{"run_at": time.Now().Add(time.Minute).Format(time.RFC3339)})
			k.Exec("update pawl.engine_settings set max_steps_per_transaction = $1", bounds[1])
			k.Later(2 * time.Minute)
			k.Tick()
			k.Rest()
			require.Equal(t, []string{"s0", "s1", "s2"}, k.work("work_queue"))
			require.Equal(t, "complete", k.State(task))
		})
	}
}

// blocks of steps, edges and their indexes that something reads.
func (k *kit) blocks(do func()) int {
	k.Helper()
	read := func() int {
		k.Exec("select pg_stat_force_next_flush()")
		return get[int](k, `select sum(pg_stat_get_blocks_fetched(c.oid))::int from pg_class c
			where c.relnamespace = 'pawl'::regnamespace and c.relname ~ '^(steps|template_edges)'`)
	}
	before := read()
	do()
	return read() - before
}

// chain is n steps, each of which needs the one before it.
func chain(n int) []object {
	steps := []object{step("s0")}
	for i := 1; i < n; i++ {
		steps = append(steps, step(fmt.Sprintf("s%d: s%d", i, i-1)))
	}
	return steps
}

// fan is one step, n that need it, and one that needs all of those.
func fan(n int) []object {
	all := "join:"
	steps := []object{step("root")}
	for i := range n {
		steps = append(steps, step(fmt.Sprintf("s%d: root", i)))
		all += fmt.Sprintf(" s%d", i)
	}
	return append(steps, step(all))
}
