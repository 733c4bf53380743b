package sql_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// R12: tasks without key, limit and claim touch none of the tables that are for those; and what they do touch they update
// within its page.
func TestWhatIsNotUsedCostsNoRow(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("shop/diamond", nil, diamond()...)
	k.Template("shop/chain", nil, step("a"), step("b: a"), step("c: b"))
	k.Exec("select pg_stat_reset()")
	var everybody sync.WaitGroup
	for range 3 {
		everybody.Go(func() {
			for range 40 {
				k.Submit("shop/diamond")
				k.Submit("shop/chain")
				k.Finish(queue, k.Claim(queue)...)
			}
		})
	}
	everybody.Wait()
	k.work(queue)
	require.Equal(t, 240, get[int](k, "select count(*)::int from pawl.tasks where state = 'complete'"))

	type use struct {
		Table              string
		Written, Moved, In int
	}
	var used map[string]use
	require.Eventually(t, func() bool { // servers tell of their work a little later
		used = map[string]use{}
		k.Exec("select pg_stat_force_next_flush()")
		for _, o := range list[object](k, `select to_jsonb(s) from (select schemaname || '.' || relname as name, n_tup_ins as ins, n_tup_upd as upd,
			n_tup_hot_upd as hot, n_tup_del as del from pg_stat_user_tables) s`) {
			n := func(field string) int { return int(o[field].(float64)) }
			used[o["name"].(string)] = use{Written: n("ins") + n("upd") + n("del"), Moved: n("upd") - n("hot"), In: n("upd")}
		}
		return used["pawl.steps"].In >= 240*6
	}, time.Minute, 100*time.Millisecond)
	require.Zero(t, used["pawl.queues"].In)
	for _, table := range []string{"task_identities", "step_identities", "step_key_waiters", "held_steps", "entity_claims", "absorbed",
		"dead_letters", "reconciler_notes", "repairs", "stuck_reports", "operations", "engine_settings"} {
		require.Zero(t, used["pawl."+table].Written, table)
	}
	for _, q := range []string{"orchestration_step_enqueues", "orchestration_task_finalizations"} {
		require.Zero(t, used["pgmq.q_"+q].Written, "no hop without need: %s", q)
	}
	for _, table := range []string{"pawl.tasks", "pawl.steps", "pgmq.q_work_queue"} {
		share := 1 - float64(used[table].Moved)/float64(used[table].In)
		t.Logf("%s: %.1f %% of %d updates within the page", table, 100*share, used[table].In)
		require.Greater(t, share, 0.8, table)
	}
}

// R12: no index and no predicate of one names what every transition changes.
func TestNoIndexNamesAState(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	require.Empty(t, list[string](k, `select indexrelid::regclass::text from pg_index
		where indrelid in ('pawl.tasks'::regclass, 'pawl.steps'::regclass)
			and pg_get_indexdef(indexrelid) ~ '\m(state|revision|state_since|worker|deliveries|needs_open|open_count|active_count)\M'`))
	require.Empty(t, list[string](k, `select indexrelid::regclass::text from pg_index join pg_class c on c.oid = indrelid
		where c.relnamespace = 'pgmq'::regnamespace and c.relname like 'q\_%' and pg_get_indexdef(indexrelid) ~ '\m(vt|read_ct)\M'`))
	require.ElementsMatch(t, []string{"due_at IS NOT NULL", "due_at IS NOT NULL"}, list[string](k, `select btrim(pg_get_expr(indpred, indrelid), '()')
		from pg_index where indrelid in ('pawl.tasks'::regclass, 'pawl.steps'::regclass) and indpred is not null`))
}

// R12: a task without a key locks no identity, one without a gate no queue.
func TestWhatIsNotUsedIsNotLocked(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("shop/diamond", nil, diamond()...)
	k.Submit("shop/diamond", object{"key": "one"}) // so that there are rows to be locked
	stranger, mine := k.begin(), k.begin()
	stranger.Exec("lock pawl.task_identities, pawl.step_identities, pawl.held_steps, pawl.entity_claims in share row exclusive mode")
	stranger.Exec("select from pawl.queues for update")
	mine.Exec("set local lock_timeout = '10s'")
	task := mine.Submit("shop/diamond")
	for range 3 {
		for _, d := range mine.Claim(queue) {
			if d.Task == task {
				mine.Finish(queue, d)
			}
		}
	}
	require.Equal(t, "complete", mine.State(task))
}
