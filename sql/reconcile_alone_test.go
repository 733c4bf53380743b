package sql_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// Messages that say nothing about an attempt, and whoever may send them, keep no lost one from its repair; one of its own task does.
func TestOthersResultsDoNotKeepALostAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		message  string
		repaired float64
	}{
		"a newer version, put back for ever": {`{"v": 2}`, 1},
		"no object":                          {`[7]`, 1},
		"another task's":                     {`{"task_id": "00000000-0000-0000-0000-000000000001", "step": "a", "attempt": 1, "status": "complete"}`, 1},
		"its own":                            {`{"task_id": "%s", "v": 2}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.Template("rec/one", nil, step("a"))
			task := k.Submit("rec/one")
			k.Exec("select pgmq.pop('work_queue')")
			if name == "its own" {
				c.message = fmt.Sprintf(c.message, task)
			}
			k.Exec("select pgmq.send('orchestration_step_results', $1::text::jsonb, 600)", c.message)
			k.Later(2 * time.Minute)
			require.EqualValues(t, 1, k.reconcile()["noted"])
			require.Equal(t, object{"engine": 0.0, "foreign": c.repaired}, k.reconcile()["repaired"])
		})
	}
}

// A results queue that is too long to be looked through is waited for.
func TestALongResultsQueueIsWaitedFor(t *testing.T) {
	k := newKit(t)
	k.Template("rec/one", nil, step("a"))
	k.Submit("rec/one")
	k.Exec("select pgmq.pop('work_queue')")
	k.Exec(`insert into pgmq.q_orchestration_step_results (vt, message) select clock_timestamp(), '{}' from generate_series(1, 100001)`)
	k.Later(2 * time.Minute)
	require.EqualValues(t, 1, k.reconcile()["noted"])
	require.Equal(t, nothing, k.reconcile()["repaired"])
	k.Exec("delete from pgmq.q_orchestration_step_results where msg_id = (select max(msg_id) from pgmq.q_orchestration_step_results)")
	require.Equal(t, object{"engine": 0.0, "foreign": 1.0}, k.reconcile()["repaired"])
}

// poison lets every change of a task's steps raise.
func (k *kit) poison(task uuid.UUID) {
	k.Helper()
	k.Exec(fmt.Sprintf(`create function poisoned() returns trigger language plpgsql as 'begin if new.task_id = ''%s'' then
		raise exception ''poisoned''; end if; return new; end'`, task))
	k.Exec("create trigger poisoned before update on pawl.steps for each row execute function poisoned()")
}

// A task that raises whenever it is repaired stays as it is; those on its page are repaired.
func TestATaskThatRaisesDoesNotStopTheReconciler(t *testing.T) {
	t.Run("lost messages", func(t *testing.T) {
		k := newKit(t)
		k.Template("rec/wide", nil, step("a"), step("b"))
		tasks := []uuid.UUID{k.Submit("rec/wide"), k.Submit("rec/wide"), k.Submit("rec/wide")}
		k.Exec("delete from pgmq.q_work_queue")
		k.poison(tasks[1])
		k.Later(2 * time.Minute)
		require.EqualValues(t, 6, k.reconcile()["noted"])
		for _, want := range []float64{4, 0} {
			page := k.reconcile()
			require.Equal(t, object{"engine": 0.0, "foreign": want}, page["repaired"])
			require.Equal(t, true, page["wrapped"])
		}
		require.Equal(t, 4, get[int](k, "select count(*)::int from pawl.repairs where task_id <> $1", tasks[1]))
		require.Equal(t, map[string]string{"a": "enqueued", "b": "enqueued"}, k.steps(tasks[1]))
		k.Exec("drop trigger poisoned on pawl.steps")
		require.Equal(t, object{"engine": 0.0, "foreign": 2.0}, k.reconcile()["repaired"])
		require.Equal(t, 6, get[int](k, "select count(*)::int from pawl.repairs"))
		k.sound()
	})
	t.Run("defects", func(t *testing.T) {
		k := newKit(t)
		k.Template("rec/chain", nil, step("a"), step("b: a"))
		tasks := []uuid.UUID{k.Submit("rec/chain"), k.Submit("rec/chain"), k.Submit("rec/chain")}
		k.Exec("update pawl.steps set state = 'pending', revision = revision + 1 where step = 'a'")
		k.poison(tasks[1])
		k.Later(2 * time.Minute)
		for _, want := range []float64{2, 0} {
			page := k.reconcile()
			require.Equal(t, object{"engine": want, "foreign": 0.0}, page["repaired"])
			require.Equal(t, true, page["wrapped"])
		}
		require.Zero(t, get[int](k, "select count(*)::int from pawl.repairs where task_id = $1", tasks[1]))
		k.Exec("drop trigger poisoned on pawl.steps")
		require.Equal(t, object{"engine": 1.0, "foreign": 0.0}, k.reconcile()["repaired"])
		k.sound()
	})
}

// What ends between the look at a queue and the deed has ended: its successor is in good health.
func TestADeliveryTooManyEndsItsOwnAttemptAlone(t *testing.T) {
	k := newKit(t)
	k.Template("rec/one", nil, step("a", object{"max_deliveries": 1}))
	task := k.Submit("rec/one")
	k.Exec("select pgmq.read('work_queue', 0, 1)")
	k.bypassGuards()
	k.Exec(`create function meanwhile() returns trigger language plpgsql as
		'begin update pawl.steps set attempt = attempt + 1; return old; end'`)
	k.Exec("create trigger meanwhile before delete on pgmq.q_work_queue for each row execute function meanwhile()")
	page := k.reconcile()
	require.Equal(t, []any{0.0, 1.0}, []any{page["ended"], page["absorbed"]})
	require.Empty(t, k.ids("orchestration_step_results"))
	require.Equal(t, 2, get[int](k, "select attempt from pawl.steps where task_id = $1", task))
}

// Headers are anybody's: what is no number says nothing.
func TestJunkHeadersDoNotStopTheReconciler(t *testing.T) {
	k := newKit(t)
	k.Template("rec/one", nil, step("a"))
	all := append([]string{`{"max_deliveries": "1e5"}`, `{"max_deliveries": 99999999999}`, `{"max_deliveries": null}`}, garbageHeaders...)
	for _, headers := range all {
		k.Submit("rec/one")
		k.Exec("update pgmq.q_work_queue set headers = $1::text::jsonb, read_ct = 10 where headers is null", headers)
	}
	require.EqualValues(t, len(all), k.reconcile()["ended"])
}

// R13: what a queue's bodies weigh counts as well as how many they are.
func TestHeavyQueuesTakeTurns(t *testing.T) {
	k := newKit(t)
	k.Exec("select pgmq.create('heavy')")
	k.Exec("alter table pgmq.q_heavy alter column message set storage external")
	k.Exec("insert into pgmq.q_heavy (vt, message) select clock_timestamp(), to_jsonb(repeat('x', 1024 * 1024)) from generate_series(1, 100)")
	turn := "select pawl.queues_in_turn(array['heavy'])"
	require.Empty(t, get[[]string](k, turn))
	k.Exec("delete from pgmq.q_heavy where msg_id > 60")
	require.Equal(t, []string{"heavy"}, get[[]string](k, turn))
}
