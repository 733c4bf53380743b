package sql_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	engine "github.com/pawl-dev/pawl/test/kit"
)

// A task that somebody holds keeps its own messages waiting, and no others: neither in its batch nor behind it.
func TestMessagesOfHeldTasksHoldUpNoOthers(t *testing.T) {
	ways := map[string]struct {
		queue   string
		prepare func(k *kit) []uuid.UUID // the tasks with a message each; every one has steps b and c that the message starts
	}{
		"apply_step_results": {"orchestration_step_results", func(k *kit) (tasks []uuid.UUID) {
			setting(k, "direct = false")
			for range 7 {
				tasks = append(tasks, k.Submit("held/fan"))
			}
			k.Finish(queue, k.Claim(queue)...)
			return tasks
		}},
		"process_step_enqueues": {"orchestration_step_enqueues", func(k *kit) (tasks []uuid.UUID) {
			setting(k, "staged = true")
			for range 7 {
				tasks = append(tasks, k.Submit("held/fan"))
			}
			k.Rest()
			k.Finish(queue, k.Claim(queue)...)
			k.Exec("select pawl.apply_step_results(array(select msg_id from pgmq.q_orchestration_step_results), 'kit')")
			return tasks
		}},
	}
	for function, way := range ways {
		t.Run(function, func(t *testing.T) {
			k := newCommittingKit(t)
			k.Template("held/fan", nil, step("a"), step("b: a"), step("c: a"))
			tasks := way.prepare(k)
			table := "pgmq.q_" + way.queue
			require.Len(t, k.ids(way.queue), 7)
			holder := k.begin()
			holder.Exec("select from pawl.tasks where task_id = any ($1) for update", tasks[:6])
			k.Exec("update " + table + " set read_ct = 3, vt = clock_timestamp() + interval '1 hour'")
			for range 2 { // R9
				work := k.begin()
				work.Exec("set local lock_timeout = '1min'") // it does not come to that
				work.Exec(fmt.Sprintf("select pawl.%s(array(select msg_id from %s), 'kit')", function, table))
				work.commit()
				require.Equal(t, map[string]string{"a": "complete", "b": "enqueued", "c": "enqueued"}, k.steps(tasks[6]))
			}
			require.Equal(t, "pending", k.steps(tasks[0])["b"])
			require.Len(t, k.ids(way.queue), 6)
			require.Equal(t, 6, get[int](k, "select count(*)::int from "+table+" where read_ct = 1 and vt < clock_timestamp() + interval '640 ms'"),
				"nobody worked them; they are back before the last look of who read them")
			holder.commit()
			k.Expire(way.queue)
			k.Rest()
			require.Len(t, k.Claim(queue), 14)
			require.Zero(t, get[int](k, "select count(*)::int from pawl.dead_letters"))
			k.sound()
		})
	}
}

// Who holds a task as long as the engine does, a moment, is waited for: its messages are not put off.
func TestAMomentsLockIsWaitedFor(t *testing.T) {
	k := newCommittingKit(t)
	setting(k, "direct = false")
	k.Template("held/chain", nil, step("a"), step("b: a"))
	task := k.Submit("held/chain")
	require.True(t, k.Report(queue, k.ClaimOne(queue), engine.Complete(1)))
	waited := false
	for range 1000 { // on a busy machine the moment may be too long
		holder, late := k.begin(), k.begin()
		pid := late.pid()
		holder.Exec("select from pawl.tasks where task_id = $1 for update", task)
		done := late.start("select pawl.apply_step_results(array(select msg_id from pgmq.q_orchestration_step_results), 'kit')")
		for seen := false; !seen && len(done) == 0; {
			seen = get[bool](k, "select exists (select from pg_locks where pid = $1 and not granted)", pid)
		}
		holder.commit()
		k.ended(done)
		late.commit()
		if waited = len(k.ids("orchestration_step_results")) == 0; waited {
			break
		}
	}
	require.True(t, waited)
	require.Equal(t, "enqueued", k.steps(task)["b"])
	k.sound()
}
