package sql_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// R13: one batch of a sweep looks at a page of step keys, twenty for each that it may delete, however many there are; the
// batches together see all of them.
func TestASweepGoesOverStepKeysInPages(t *testing.T) {
	k := newKit(t)
	clock := k.freeze()
	keep := func(key, expires string) {
		k.Exec(`insert into pawl.step_identities (scope, key, task_id, step, status, expires_at)
			select 's', $1 || n, $2, 'a', 'completed', pawl.now() + $3::interval from generate_series(101, 200) n`, key, uuid.New(), expires)
	}
	keep("a", "1 day")
	keep("b", "1 minute")
	keep("c", "1 day")
	k.Exec(`insert into pawl.step_identities (scope, key, task_id, step, status) values ('t', 'orphan', $1, 'a', 'running')`, uuid.New())
	k.Exec(`insert into pawl.step_key_waiters (scope, key, task_id, step) select 's', 'b150', $1, 'a'`, uuid.New())
	clock(time.Hour)
	var deleted []int
	for cursor, more := (object{}), true; more; {
		swept := k.object("select pawl.sweep(2, 'sweeper', $1)", cursor)
		deleted = append(deleted, int(swept["step_keys"].(float64)))
		cursor, more = swept["cursor"].(object), swept["more"].(bool)
		require.LessOrEqual(t, len(deleted), 10, "the sweep ends")
	}
	require.Equal(t, []int{0, 0, 20, 39, 40, 0, 0, 1}, deleted, "301 keys in pages of 40")
	require.Equal(t, 201, get[int](k, "select count(*)::int from pawl.step_identities"))
	require.Equal(t, []string{"b150"}, list[string](k, "select key from pawl.step_identities where expires_at <= pawl.now()"), "somebody waits for it")
	require.Zero(t, k.sweep("step_keys"))
}

// However large the tables are, and whatever the planner was told of them, a page costs what is in it.
func TestAPageOfStepKeysReadsNoMoreThanItself(t *testing.T) {
	k := newKit(t)
	keyed(k)
	task := k.Submit("shop/render", object{"input": object{"url": "u"}})
	k.Exec(`insert into pawl.step_identities (scope, key, task_id, step, status, expires_at)
		select 's', 'k' || n, $1, 'fetch', 'running', case when n % 2 = 0 then pawl.now() + interval '1 day' end
		from generate_series(1, 20000) n`, task)
	k.Exec(`insert into pawl.step_key_waiters (scope, key, task_id, step) select 's', 'w' || n, $1, 'fetch' from generate_series(1, 20000) n`, task)
	read := func() int {
		return get[int](k, `select sum(pg_stat_get_xact_blocks_fetched(c.oid))::int from pg_class c
			where c.relnamespace = 'pawl'::regnamespace and c.relname ~ '^(steps|step_identities|step_key_waiters)'`)
	}
	for _, statistics := range []string{"select", "analyze pawl.step_identities, pawl.step_key_waiters, pawl.steps"} {
		k.Exec(statistics)
		before := read()
		k.object("select pawl.sweep(10, 'sweeper')")
		require.Less(t, read()-before, 10*200, "200 keys are looked at: their rows, steps and waiters")
	}
}
