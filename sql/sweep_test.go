package sql_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// sweep calls until there is no more, a page of two at a time, and adds up one of the counts.
func (k *kit) sweep(count string) int {
	k.Helper()
	cursor, sum := object{}, 0
	for range 100 {
		swept := k.object("select pawl.sweep(2, 'sweeper', $1)", cursor)
		sum += int(swept[count].(float64))
		if !swept["more"].(bool) {
			return sum
		}
		cursor = swept["cursor"].(object)
	}
	require.FailNow(k, "the sweep does not end")
	return 0
}

func TestFinishedTasksAreSweptWhenTheirRetentionIsOver(t *testing.T) {
	k := newKit(t)
	k.Template("keep/chain", nil, step("a"), step("b: a"))
	k.Template("keep/short", object{"retention_ms": 3600000}, step("a"))
	k.Template("keep/queue", nil, step("a", object{"queue": "brief_queue"}))
	k.configure("brief_queue", object{"retention": "2d"})
	clock := k.freeze()
	chain, short, brief := k.Submit("keep/chain", object{"key": "k1"}), k.Submit("keep/short"), k.Submit("keep/queue")
	open := k.Submit("keep/chain", object{"run_at": "2999-01-01T00:00:00Z"})
	for _, key := range []string{"k2", "k3", "k4"} {
		k.Submit("keep/short", object{"key": key})
	}
	k.work("work_queue")
	k.work("brief_queue")

	left := func() []uuid.UUID { return list[uuid.UUID](k, "select task_id from pawl.tasks order by 1") }
	require.Zero(t, k.sweep("tasks"))
	clock(time.Hour + time.Second)
	require.Equal(t, 4, k.sweep("tasks"))
	require.Equal(t, []uuid.UUID{chain, brief, open}, left())
	require.Equal(t, []string{"k1"}, list[string](k, "select key from pawl.task_identities"), "their windows were their retention")
	require.Empty(t, k.steps(short))
	clock(47 * time.Hour)
	require.Equal(t, 1, k.sweep("tasks"))
	clock(28 * 24 * time.Hour)
	require.Equal(t, 1, k.sweep("tasks"))
	require.Equal(t, []uuid.UUID{open}, left())
	require.Empty(t, list[string](k, "select key from pawl.task_identities"))
	clock(1000 * 24 * time.Hour)
	require.Zero(t, k.sweep("tasks"), "what is open stays")
}

func TestIdentityOutlivesItsTaskWhenItsWindowIsLonger(t *testing.T) {
	k := newKit(t)
	k.Template("keep/window", object{"retention_ms": 0, "identity": object{"dedup_window_ms": 86400000}}, step("a"))
	clock := k.freeze()
	task := k.Submit("keep/window", object{"key": "k1"})
	k.work("work_queue")
	clock(time.Second)
	require.Zero(t, k.sweep("tasks"), "who waits for the result has a minute to read it")
	clock(time.Minute)
	require.Equal(t, 1, k.sweep("tasks"))
	again := k.Request("keep/window", object{"key": "k1"})
	require.Equal(t, "attached", again["outcome"])
	require.Equal(t, task.String(), again["task_id"])
	clock(24 * time.Hour)
	require.Equal(t, 1, k.sweep("identities"))
	require.Equal(t, "created", k.Request("keep/window", object{"key": "k1"})["outcome"])
}

func TestConfigurationSetsATemplatesRetention(t *testing.T) {
	k := newKit(t)
	k.Template("keep/conf", object{"retention_ms": 3600000}, step("a"))
	configure := "select pawl.configure_template('keep', 'conf', $1, 'ann', 'disk')"
	require.Equal(t, object{"retention": "5m", "stuck_after": object{"waiting_for_retry": 3600000.0}},
		k.object(configure, object{"retention": "5m", "stuck_after": object{"waiting_for_retry": "1h"}})["settings"])
	require.Equal(t, "00:05:00", get[string](k, "select pawl.task_retention(max(template_id))::text from pawl.templates"))
	k.object(configure, object{"retention": nil})
	require.Equal(t, "01:00:00", get[string](k, "select pawl.task_retention(max(template_id))::text from pawl.templates"))
	k.refused("PW024", configure, object{"retain": "5m"})
	k.refused("PW024", configure, object{"stuck_after": object{"complete": "1h"}})
	k.refused("PW020", "select pawl.configure_template('keep', 'unknown', '{}', 'ann', 'disk')")
	k.refused("PW023", "select pawl.configure_template('keep', 'conf', '{}', 'ann', '')")
}

func TestOldRecordsAreSwept(t *testing.T) {
	k := newKit(t)
	k.Template("keep/one", nil, step("a"))
	k.Submit("keep/one", object{"request_id": uuid.NewString(), "key": "k1"})
	require.Equal(t, "attached", k.Request("keep/one", object{"key": "k1"})["outcome"])
	k.deaden(`"bad"`)
	k.object("select pawl.pause_queue('work_queue', 'ann', 'r')")
	k.Exec("select pawl.beat_processor(gen_random_uuid(), 'orchestrator', 'box', 7, '1.0')")
	count := "select array[(select count(*) from pawl.absorbed), (select count(*) from pawl.dead_letters), (select count(*) from pawl.operations), (select count(*) from pawl.processors), (select least(count(*), 1) from pawl.audit)]"
	clock := k.freeze()
	require.Zero(t, k.sweep("old"))
	require.Equal(t, []int64{1, 1, 1, 1, 1}, get[[]int64](k, count))
	clock(8 * 24 * time.Hour)
	k.sweep("old")
	require.Equal(t, []int64{0, 1, 1, 0, 1}, get[[]int64](k, count))
	clock(23 * 24 * time.Hour)
	k.sweep("old")
	require.Equal(t, []int64{0, 0, 1, 0, 1}, get[[]int64](k, count))
	clock(60 * 24 * time.Hour)
	k.sweep("old")
	require.Equal(t, []int64{0, 0, 0, 0, 0}, get[[]int64](k, count))
}

func TestSweepPassesOverWhatSomebodyHolds(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("keep/held", nil, step("a"))
	first, second := k.Submit("keep/held", object{"key": "k1"}), k.Submit("keep/held", object{"key": "k2"})
	k.work("work_queue")
	k.Later(40 * 24 * time.Hour)
	holder := k.begin()
	holder.Exec("select from pawl.tasks where task_id = $1 for no key update", first)
	holder.Exec("select from pawl.task_identities where key = 'k2' for update")
	require.Equal(t, 1, k.sweep("tasks"))
	require.Equal(t, []uuid.UUID{first}, list[uuid.UUID](k, "select task_id from pawl.tasks"))
	require.NotEqual(t, first, second)
	require.Equal(t, []string{"k2"}, list[string](k, "select key from pawl.task_identities"))

	// The other order: what a sweep is deleting is gone for those who come later.
	holder.commit()
	sweeper := k.begin()
	require.Equal(t, 1, sweeper.sweep("tasks"))
	require.Zero(t, k.sweep("tasks"), "a second sweep does not wait")
	waiter := k.begin()
	pid := waiter.pid()
	done := waiter.start("select pawl.retry_task($1, null, 'ann', 'r')", first)
	k.untilWaiting(pid)
	sweeper.commit()
	require.True(t, isCode(<-done, "PW020"))
}

func TestLargeTasksAreSweptInPieces(t *testing.T) {
	k := newKit(t)
	steps := []object{step("s00")}
	for len(steps) < 50 {
		steps = append(steps, step("s"+string(rune('0'+len(steps)/10))+string(rune('0'+len(steps)%10))))
	}
	k.Template("keep/large", nil, steps...)
	for range 5 {
		k.Submit("keep/large")
	}
	k.work("work_queue")
	k.Later(40 * 24 * time.Hour)
	swept := k.object("select pawl.sweep(4)")
	require.EqualValues(t, 2, swept["tasks"], "80 steps at a time")
	require.Equal(t, true, swept["more"])
	require.Equal(t, 3, k.sweep("tasks"))
}

// A sweep has seen a failed task whose time is over, and has not locked it yet, when an operator's retry commits.
func TestTaskThatIsRetriedWhileASweepLooksStays(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("keep/again", nil, step("a"), step("b: a"))
	k.Template("keep/done", nil, step("a"))
	task := k.Submit("keep/again", object{"key": "k1"})
	k.fail("work_queue", k.ClaimOne("work_queue"))
	over := k.Submit("keep/done")
	k.work("work_queue")
	require.Equal(t, []string{"error", "complete"}, []string{k.State(task), k.State(over)})
	k.Later(40 * 24 * time.Hour)
	operator, sweeper := k.begin(), k.begin()
	operator.Exec("lock table pawl.entity_claims") // which a sweep reads when it locks its tasks
	pid := sweeper.pid()
	swept := sweeper.start("select pawl.sweep_tasks(10, '00000000-0000-0000-0000-000000000000')")
	k.untilWaiting(pid)
	operator.object("select pawl.retry_task($1, null, 'ann', 'the bank is back')", task)
	operator.commit()
	sweeper.ended(swept)
	sweeper.commit()
	require.Equal(t, []uuid.UUID{task}, list[uuid.UUID](k, "select task_id from pawl.tasks"))
	require.Equal(t, []string{"a", "b"}, k.work("work_queue"))
	require.Equal(t, "complete", k.State(task))
	k.sound()
}

// A sweep has seen a key whose window is over, and has not locked it yet, when a new task's step takes it over.
func TestStepKeyThatIsTakenOverWhileASweepLooksStays(t *testing.T) {
	k := newCommittingKit(t)
	keyed(k)
	holds := func(url string) uuid.UUID {
		k.Helper()
		return k.Submit("shop/render", object{"input": object{"url": url}})
	}
	holds("u1")
	k.work("work_queue")
	holds("u2")
	holds("u2") // waits
	k.Later(40 * 24 * time.Hour)
	// Who reads the waiters passes a door, after its snapshot was taken.
	k.Exec("alter table pawl.step_key_waiters rename to waiters_behind")
	k.Exec(`create function pawl.door() returns boolean language sql volatile as
		'select pg_advisory_xact_lock_shared(77) is not null'`)
	k.Exec("create view pawl.step_key_waiters as select * from pawl.waiters_behind where (select pawl.door())")
	closer, sweeper := k.begin(), k.begin()
	closer.Exec("select pg_advisory_xact_lock(77)")
	pid := sweeper.pid()
	swept := sweeper.start("select pawl.sweep_step_identities(500, '', '')")
	k.untilWaiting(pid)
	task := closer.Submit("shop/render", object{"input": object{"url": "u1"}})
	closer.commit()
	sweeper.ended(swept)
	sweeper.commit()
	require.Equal(t, []uuid.UUID{task}, list[uuid.UUID](k, "select task_id from pawl.step_identities where key = 'u1'"))
}
