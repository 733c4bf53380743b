package sql_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// look opens the gates for so many steps: how many came through, and when to look again.
func (k *kit) look(quantity int) (released int, next any) {
	k.Helper()
	opened := k.object("select pawl.release_held($1, 'gate')", quantity)
	return int(opened["released"].(float64)), opened["next_ms"]
}

// resumed makes queues on which steps waited while they were paused; nobody has looked at their gates since.
func (k *kit) resumed(queues, steps int) []string {
	k.Helper()
	names := make([]string, queues)
	for q := range names {
		names[q] = fmt.Sprintf("q%d_queue", q)
		k.configure(names[q], object{"paused": true})
		k.Template(fmt.Sprintf("gate/t%d", q), nil, step("a", object{"queue": names[q]}))
		for range steps {
			k.Submit(fmt.Sprintf("gate/t%d", q))
		}
	}
	k.Rest()
	for _, name := range names {
		k.configure(name, object{"paused": false})
	}
	k.Exec("delete from pgmq.q_orchestration_step_enqueues")
	return names
}

func (k *kit) behind(queue string) int {
	k.Helper()
	return get[int](k, "select count(*)::int from pawl.held_steps where queue = $1 and released_at is null", queue)
}

// R13: the bound of a look at the gates is one for all queues, and what is left over is looked at again at once.
func TestALookAtTheGatesIsBoundedForAllQueues(t *testing.T) {
	k := newKit(t)
	k.resumed(3, 5)
	for _, more := range []any{0.0, 0.0, nil} {
		released, next := k.look(5)
		require.Equal(t, 5, released)
		require.Equal(t, more, next)
	}
	released, next := k.look(5)
	require.Zero(t, released)
	require.Nil(t, next)
	k.sound()
}

// A queue with many held steps does not keep a look from the others.
func TestALookAtTheGatesBeginsAnywhere(t *testing.T) {
	k := newKit(t)
	queues := k.resumed(2, 1)
	for _, last := range queues {
		k.Exec("savepoint all_held")
		seen := false
		for range 100 { // each begins with this queue half of the time
			k.Exec("savepoint this_look")
			released, _ := k.look(1)
			require.Equal(t, 1, released)
			seen = seen || k.behind(last) == 0
			k.Exec("rollback to this_look")
		}
		require.True(t, seen, "%s is always the last", last)
		k.Exec("rollback to all_held")
	}
}

// A gate that raises is left as it was, and counts as work; the others are opened.
func TestAGateThatRaisesDoesNotStopTheOthers(t *testing.T) {
	k := newKit(t)
	queues := k.resumed(3, 4)
	k.Exec(`create function refuse() returns trigger language plpgsql as 'begin raise exception ''full''; end'`)
	k.Exec("create trigger refuse before insert on pgmq.q_q1_queue for each row execute function refuse()")
	for range 100 {
		k.look(4)
		if k.behind(queues[0])+k.behind(queues[2]) == 0 {
			break
		}
	}
	require.Zero(t, k.behind(queues[0])+k.behind(queues[2]))
	opened := k.object("select pawl.release_held(100, 'gate')")
	require.InDelta(t, 0, opened["released"], 0)
	require.InDelta(t, 1000, opened["next_ms"], 0, "no sooner for this queue")
	raised := opened["raised"].(object)
	require.Equal(t, []any{"q1_queue", "P0001", "full"}, []any{raised["queue"], raised["sqlstate"], raised["message"]})
	require.Equal(t, 4, k.behind(queues[1]))
	require.Len(t, k.Claim(queues[0]), 4)

	k.Exec("drop trigger refuse on pgmq.q_q1_queue")
	released, _ := k.look(100)
	require.Equal(t, 4, released)
	k.sound()
}

// What says nothing about one queue is raised as ever.
func TestGatesRaiseWhatIsNoQueuesFault(t *testing.T) {
	for _, code := range []string{"57014", "55P03", "40P01", "53200"} {
		t.Run(code, func(t *testing.T) {
			k := newKit(t)
			k.resumed(2, 1)
			k.failing()
			k.fails(1, code)
			k.refused(code, "select pawl.release_held(10, 'p')")
			k.fails(0, code)
			released, _ := k.look(10)
			require.Equal(t, 2, released)
		})
	}
}

// A user's transaction that holds the task of the oldest held step, and stays open, costs the queue nothing: the free
// slot or token goes to the next one.
func TestAHeldTaskDoesNotStopItsQueue(t *testing.T) {
	for name, limit := range map[string]object{
		"slot": {"max_concurrency": 1}, "token": {"rate_limit": "1/hour", "burst": 1}, "bound": {"max_concurrency": 1000},
	} {
		t.Run(name, func(t *testing.T) {
			k := newCommittingKit(t)
			k.configure("gated_queue", limit)
			k.Exec("delete from pgmq.q_orchestration_step_enqueues")
			tasks := k.many(3)
			holder := k.begin()
			holder.Exec("select from pawl.tasks where task_id = $1 for no key update", tasks[0])
			gate := k.begin()
			gate.Exec("set local lock_timeout = '10s'") // it waits for nobody
			released, _ := gate.look(1)
			gate.commit()
			require.Equal(t, 1, released)
			require.Equal(t, tasks[1], k.ClaimOne("gated_queue").Task)
			holder.commit()
			k.configure("gated_queue", object{"max_concurrency": 100, "rate_limit": nil, "burst": nil})
			released, _ = k.look(1)
			require.Equal(t, 1, released)
			require.Equal(t, tasks[0], k.ClaimOne("gated_queue").Task, "in its turn")
			k.sound()
		})
	}
}

// Nothing but the released tasks is locked: a report of another one does not find its task taken.
func TestALookAtTheGatesLocksWhatItReleases(t *testing.T) {
	k := newCommittingKit(t)
	k.configure("gated_queue", object{"max_concurrency": 2})
	k.Exec("delete from pgmq.q_orchestration_step_enqueues")
	tasks := k.many(5)
	gate, other := k.begin(), k.begin()
	released, _ := gate.look(100)
	require.Equal(t, 2, released)
	require.ElementsMatch(t, tasks[2:], list[uuid.UUID](other, "select task_id from pawl.tasks for no key update skip locked"))
}

// Held rows of tasks that are gone go, too: they would be looked at for ever.
func TestHeldRowsOfGoneTasksAreForgotten(t *testing.T) {
	k := newKit(t)
	k.configure("gated_queue", object{"max_concurrency": 1})
	k.Exec("delete from pgmq.q_orchestration_step_enqueues")
	tasks := k.many(2)
	k.Exec("set local session_replication_role = replica")
	k.Exec("delete from pawl.steps where task_id = $1", tasks[0])
	k.Exec("delete from pawl.tasks where task_id = $1", tasks[0])
	k.Exec("set local session_replication_role = origin")
	released, _ := k.look(100)
	require.Equal(t, 1, released)
	k.work("gated_queue")
	k.look(100)
	require.Zero(t, k.behind("gated_queue"))
	require.Nil(t, k.object("select pawl.release_held()")["next_ms"])
}
