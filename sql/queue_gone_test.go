package sql_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// dropped is a world in which PGMQ's table of gone_queue was dropped while a worker held one step of it, another waited and
// a third was held back; what is left works on work_queue and gated_queue.
type dropped struct {
	*kit
	held, waiting, gated, other uuid.UUID
	late                        delivery
}

func newDropped(t *testing.T) dropped {
	t.Helper()
	d := dropped{kit: newKit(t)}
	d.Template("gone/one", nil, step("a", object{"queue": "gone_queue"}))
	d.Template("gone/other", nil, step("a"), step("b: a"))
	d.held = d.Submit("gone/one")
	d.late = d.ClaimOne("gone_queue")
	d.waiting = d.Submit("gone/one")
	d.configure("gone_queue", object{"max_concurrency": 2})
	d.gated = d.Submit("gone/one")
	d.Rest()
	d.other = d.Submit("gone/other")
	require.True(t, get[bool](d.kit, "select pgmq.drop_queue('gone_queue')"))
	return d
}

func (d dropped) lacks() *string {
	d.Helper()
	return get[*string](d.kit, "select pawl.explain_queue('gone_queue')")
}

// again makes the queue anew as a test says, and works all steps that are left.
func (d dropped) again(install func()) {
	d.Helper()
	d.Later(2 * time.Minute)
	install()
	require.Nil(d, d.lacks())
	d.reconcile()
	require.Equal(d, object{"engine": 0.0, "foreign": 2.0}, d.reconcile()["repaired"], "the attempts whose messages are lost have ended")
	d.Later(time.Hour)
	d.Tick()
	d.release()
	for range 3 {
		d.Rest()
		d.Finish("gone_queue", d.Claim("gone_queue")...)
		d.release()
	}
	for _, task := range []uuid.UUID{d.held, d.waiting, d.gated} {
		require.Equal(d, "complete", d.State(task))
	}
	d.sound()
}

// migrateQueues does what migrating does with queues.
func (k *kit) migrateQueues() {
	k.Helper()
	text, err := os.ReadFile("triggers/queues.sql")
	require.NoError(k, err)
	k.Exec(string(text))
}

func TestReconcilerGoesOnWithoutAQueuesTable(t *testing.T) {
	d := newDropped(t)
	d.Exec("delete from pgmq.q_work_queue")
	d.Later(2 * time.Minute)
	require.EqualValues(t, 1, d.reconcile()["noted"], "what waits for the table is no loss of a worker's")
	require.Equal(t, object{"engine": 0.0, "foreign": 1.0}, d.reconcile()["repaired"])
	require.Equal(t, "waiting_for_retry", d.steps(d.other)["a"])
	require.Equal(t, []string{"in_progress", "enqueued", "pending"},
		[]string{d.steps(d.held)["a"], d.steps(d.waiting)["a"], d.steps(d.gated)["a"]})
	require.Equal(t, []string{"3"}, list[string](d.kit, "select pass::text from pawl.reconciler"))
}

func TestStuckTasksOfAQueueWithoutATableAreReported(t *testing.T) {
	d := newDropped(t)
	d.Exec("select pawl.configure_template('gone', 'one', '{\"stuck_after\": {\"steps_in_process\": \"1m\"}}', 'ann', 'r')")
	d.Later(2 * time.Minute)
	require.EqualValues(t, 2, d.reconcile()["stuck"])
}

func TestGatesOpenBesideAQueueWithoutATable(t *testing.T) {
	for name, settings := range map[string]object{
		"concurrency": {"max_concurrency": 9}, "rate": {"rate_limit": "100/sec", "burst": 9}, "no limit any more": {"max_concurrency": nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDropped(t)
			d.Exec("update pawl.queues set max_concurrency = ($1::jsonb->>'max_concurrency')::int, burst = ($1::jsonb->>'burst')::int, "+
				"rate_limit = case when $1::jsonb ? 'rate_limit' then 100 end, rate_period = case when $1::jsonb ? 'rate_limit' then interval '1 s' end "+
				"where queue = 'gone_queue'", settings)
			d.configure("gated_queue", object{"max_concurrency": 3})
			d.many(2)
			d.Rest()
			done := d.object("select pawl.release_held(100, 'gate')")
			require.Len(t, d.Claim("gated_queue"), 2)
			require.EqualValues(t, 1000, done["next_ms"], "it is looked at again")
			require.Equal(t, "pending", d.steps(d.gated)["a"])
		})
	}
}

func TestQueueWithoutATableIsExplained(t *testing.T) {
	d := newDropped(t)
	for _, task := range []uuid.UUID{d.held, d.waiting, d.gated} {
		require.Equal(t, "queue gone_queue lacks its table: pawl queue resume gone_queue makes it whole", d.why(task, "a"))
	}
	require.Equal(t, "waits for a worker of queue work_queue, 0 messages are before it", d.why(d.other, "a"))
}

func TestDroppedQueueIsMadeAnew(t *testing.T) {
	definition := "(select definition from pawl.templates where name = 'one')"
	for name, install := range map[string]func(d dropped){
		"resume": func(d dropped) {
			require.Equal(d, "configured", d.object("select pawl.resume_queue('gone_queue', 'ann', 'r')")["outcome"])
			require.Equal(d, "unchanged", d.object("select pawl.resume_queue('gone_queue', 'ann', 'r')")["outcome"])
		},
		"the same template": func(d dropped) {
			made := d.object("select pawl.register_template(" + definition + ")")
			require.Equal(d, []any{"gone_queue"}, made["queues_created"])
			require.Equal(d, false, made["created"])
			require.Empty(d, d.object("select pawl.register_template(" + definition + ")")["queues_created"])
		},
		"a new version": func(d dropped) {
			made := d.object("select pawl.register_template(" + definition + " || '{\"version\": \"2\"}')")
			require.Equal(d, []any{"gone_queue"}, made["queues_created"])
		},
		"migrating": func(d dropped) { d.migrateQueues() },
		"after pgmq.create": func(d dropped) {
			d.Exec("select pgmq.create('gone_queue')")
			d.Exec("select pawl.resume_queue('gone_queue', 'ann', 'r')")
		},
		"after a table dropped by hand": func(d dropped) {
			d.Exec("insert into pgmq.meta (queue_name, is_partitioned, is_unlogged) values ('gone_queue', false, false)")
			d.Exec("select pawl.resume_queue('gone_queue', 'ann', 'r')")
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDropped(t)
			d.again(func() { install(d) })
		})
	}
}

// A worker that holds a message of the dropped table knows it by its id and its count: those of the new table never come
// again.
func TestReportOfADroppedTableEndsNothingInTheNewOne(t *testing.T) {
	for name, create := range map[string]string{"resume": "", "after pgmq.create": "select pgmq.create('gone_queue')"} {
		t.Run(name, func(t *testing.T) {
			d := newDropped(t)
			d.Exec(create)
			d.configure("gone_queue", object{"max_concurrency": nil})
			d.Exec("select pawl.cancel_task($1, 'ann', 'r')", d.gated)
			task := d.Submit("gone/one")
			now := d.ClaimOne("gone_queue")
			require.Equal(t, d.late.ReadCount, now.ReadCount)
			d.kit.late("gone_queue", d.late)
			require.Equal(t, "in_progress", d.steps(task)["a"])
			require.Less(t, now.ID, int64(1)<<53, "exact in every language")
			d.Finish("gone_queue", now)
			require.Equal(t, "complete", d.State(task))
		})
	}
}

func TestQueueMadeByHandIsUsedAsItIs(t *testing.T) {
	d := newDropped(t)
	d.Exec("select pgmq.create('gone_queue')")
	require.Equal(t, "queue gone_queue lacks its trigger: pawl queue resume gone_queue makes it whole", *d.lacks())
	d.Later(2 * time.Minute)
	d.reconcile()
	require.Equal(t, object{"engine": 0.0, "foreign": 2.0}, d.reconcile()["repaired"])
	require.Equal(t, 1, d.release())
	d.Finish("gone_queue", d.ClaimOne("gone_queue"))
	require.Equal(t, "complete", d.State(d.gated))
}

func TestPurgedQueuesAttemptsEndAsLost(t *testing.T) {
	k := newKit(t)
	k.configure("gated_queue", object{"max_concurrency": 2})
	tasks := k.many(3)
	k.Rest()
	require.Equal(t, 2, get[int](k, "select pgmq.purge_queue('gated_queue')::int"))
	require.Nil(t, get[*string](k, "select pawl.explain_queue('gated_queue')"))
	k.Later(2 * time.Minute)
	require.EqualValues(t, 2, k.reconcile()["noted"])
	require.Equal(t, object{"engine": 0.0, "foreign": 2.0}, k.reconcile()["repaired"])
	require.Equal(t, 1, k.release(), "their slots are free")
	k.Finish("gated_queue", k.ClaimOne("gated_queue"))
	k.Later(time.Hour)
	k.Tick()
	require.Equal(t, 2, k.release())
	k.Finish("gated_queue", k.Claim("gated_queue")...)
	for _, task := range tasks {
		require.Equal(t, "complete", k.State(task))
	}
	k.sound()
}

// The engine's own queues carry only what follows from tasks and steps, results apart.
func TestDroppedQueueOfTheEngineIsMadeAnew(t *testing.T) {
	k := newKit(t)
	k.Template("gone/other", nil, step("a"), step("b: a"))
	task := k.Submit("gone/other")
	k.Exec("select pgmq.drop_queue('orchestration_step_results'), pgmq.drop_queue('orchestration_step_enqueues')")
	k.migrateQueues()
	require.Empty(t, list[string](k, "select pawl.explain_queue(queue) from pawl.queues where pawl.explain_queue(queue) is not null"))
	require.Equal(t, []string{"a", "b"}, k.work("work_queue"))
	require.Equal(t, "complete", k.State(task))
}

func TestWhatAQueueLacksIsMadeAnew(t *testing.T) {
	for lacks, drop := range map[string]string{
		"its trigger":                     "drop trigger pawl_announce on pgmq.q_work_queue",
		"its trigger ":                    "alter table pgmq.q_work_queue disable trigger pawl_announce",
		"its row in pgmq.meta":            "delete from pgmq.meta where queue_name = 'work_queue'",
		"its function touch_work_queue":   "drop function pawl_queues.touch_work_queue",
		"its trigger, its row in pgmq.me": "drop trigger pawl_announce on pgmq.q_work_queue; delete from pgmq.meta where queue_name = 'work_queue'",
	} {
		t.Run(lacks, func(t *testing.T) {
			k := newKit(t)
			k.Template("gone/one", nil, step("a"))
			task := k.Submit("gone/one")
			k.Exec("select pawl.pause_queue('work_queue', 'ann', 'r')")
			k.Exec(drop)
			require.Contains(t, get[string](k, "select pawl.explain_queue('work_queue')"), "queue work_queue lacks "+strings.TrimSpace(lacks))
			require.Contains(t, get[string](k, "select pawl.explain_queue('work_queue')"), ": pawl queue pause work_queue makes it whole")
			require.Equal(t, "configured", k.object("select pawl.pause_queue('work_queue', 'ann', 'r')")["outcome"])
			require.Nil(t, get[*string](k, "select pawl.explain_queue('work_queue')"))
			k.object("select pawl.resume_queue('work_queue', 'ann', 'r')")
			k.Finish("work_queue", k.ClaimOne("work_queue"))
			require.Equal(t, "complete", k.State(task), "the messages that are there stay")
		})
	}
}

// Nothing is new about a queue that is whole: it is not locked and not written.
func TestWholeQueueIsLeftAlone(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("gone/one", nil, step("a"))
	reader := k.begin()
	reader.Exec("select count(*) from pgmq.q_work_queue")
	other := k.begin()
	other.Exec("set local lock_timeout = '5s'")
	require.False(t, get[bool](other, "select pawl.install_queue('work_queue')"))
	require.Zero(t, get[int](other, "select count(*)::int from pg_locks where pid = pg_backend_pid() and mode = any ($1)",
		[]string{"ShareRowExclusiveLock", "AccessExclusiveLock", "ShareUpdateExclusiveLock"}))
}

func TestDroppedQueueIsMadeAnewOnceByMany(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("gone/one", nil, step("a"))
	k.Exec("select pgmq.drop_queue('work_queue')")
	require.Contains(t, together[bool](k, 8, "select pawl.install_queue('work_queue')"), true)
	require.False(t, get[bool](k, "select pawl.install_queue('work_queue')"))
	task := k.Submit("gone/one")
	require.Equal(t, []string{"a"}, k.work("work_queue"))
	require.Equal(t, "complete", k.State(task))
}

func TestARequestThatAGoneQueueHoldsUpSaysSo(t *testing.T) {
	d := newDropped(t)
	id := uuid.New()
	d.Send("gone/one", object{"request_id": id})
	require.Equal(t, *d.lacks(), d.object("select pawl.explain_request($1)", id)["why"])
}
