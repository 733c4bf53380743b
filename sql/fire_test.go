package sql_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// Keys, claims, failures, cancels, timeouts, janitors and the reconciler at once, from many connections: nothing waits in a
// circle, nothing is left behind.
func TestKeysAndClaimsUnderFire(t *testing.T) {
	k := newCommittingKit(t)
	k.Exec(`create table invoices (number text primary key, status text not null, version int not null default 1)`)
	k.Exec(`insert into invoices select 'I-' || n, 'sent', 1 from generate_series(0, 4) n`)
	k.Exec("select pawl.register_entity('invoice', $1, 'ann', 'first use')", entity(object{"claim_limit": "1 second"}))
	k.Exec("select pawl.beat_janitor('billing')")
	claim := object{"claim": object{"default": payClaim(object{"on_success": "overdue", "on_busy": "wait"})}, "on_crash": "retry"}
	key := object{"key": "${input.url}", "handler": "do.fetch"}
	template := k.Template("fire/all", object{"on_failure": "fail_fast"}, step("fetch", key, object{"timeout_ms": 500}),
		step("pay: fetch", claim), step("again: fetch", key), step("last: pay again", object{"retry": object{"max_attempts": 2, "base_ms": 10}}))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	config := k.pool.Config()
	config.MaxConns = 10
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)

	var wait sync.WaitGroup
	for n := range uint64(10) {
		wait.Go(func() {
			dice := rand.New(rand.NewPCG(seed, n))
			for range 60 {
				sql, args := blow(dice, template)
				if _, err := pool.Exec(t.Context(), sql, args...); err != nil && !isCode(err, "PW021") && !isCode(err, "55P03") {
					require.NoError(t, err, sql)
				}
			}
		})
	}
	wait.Wait()
	k.Exec("update invoices set status = 'sent' where status = 'overdue'")
	require.Eventually(t, func() bool {
		k.Later(time.Duration(rand.IntN(60)+60) * time.Minute) // what waits for a time or a limit
		k.Exec("update invoices set status = 'sent' where status = 'overdue'")
		for _, queue := range []string{"work_queue", "orchestration_step_enqueues", "orchestration_step_results"} {
			k.Expire(queue)
		}
		k.Tick()
		k.Exec("select pawl.revert_stale_claims('billing')")
		k.work("work_queue")
		return get[int](k, "select count(*) from pawl.tasks where finalized_at is null") == 0
	}, time.Minute, 10*time.Millisecond, "every task should end")
	k.Rest()
	k.sound()
	require.Zero(t, get[int](k, "select count(*) from pawl.entity_claims"))
	require.Zero(t, get[int](k, "select count(*) from invoices where status = 'paying'"))
	require.Zero(t, get[int](k, "select pawl.reconcile_step_keys()"))
	require.Zero(t, get[int](k, "select count(*) from pawl.step_key_waiters w join pawl.steps s using (task_id, step, index) where s.state = 'waiting'"))
	require.Empty(t, list[string](k, "select reason from pawl.dead_letters"))
	require.Zero(t, get[int](k, "select deadlocks from pg_stat_database where datname = current_database()"))
}

// blow is something that happens to the engine.
func blow(dice *rand.Rand, template int) (string, []any) {
	some := func(of string) string { return fmt.Sprintf("(select array(select msg_id from %s))", of) }
	switch dice.IntN(10) {
	case 0, 1:
		return `with sent as materialized (select pgmq.send('orchestration_task_requests', $1::jsonb) as id)
			select pawl.process_task_requests(jsonb_build_array(jsonb_build_object('msg_id', 0, 'template_id', $2::int))) from sent`,
			[]any{object{"template": "fire/all", "input": object{"url": fmt.Sprint(dice.IntN(6)), "invoice": fmt.Sprintf("I-%d", dice.IntN(5))}}, template}
	case 2:
		return `select pawl.process_task_requests((select coalesce(jsonb_agg(jsonb_build_object('msg_id', r.msg_id, 'template_id', $1::int)), '[]')
			from pgmq.read('orchestration_task_requests', 30, 10) r))`, []any{template}
	case 3, 4, 5:
		status := `{"status": "complete"}`
		if dice.IntN(4) == 0 {
			status = `{"status": "failed", "error": {"type": "net"}}`
		}
		return `select pawl.report_steps('work_queue', (select coalesce(jsonb_agg(jsonb_build_object('msg_id', c->'msg_id', 'read_ct', c->'read_ct') || $1::jsonb), '[]')
			from jsonb_array_elements(pawl.claim_steps('work_queue', $2, 'w')::jsonb) c where random() < 0.9), 'w')`, []any{status, 1 + dice.IntN(5)}
	case 6:
		return "select pawl.apply_step_results(" + some("pgmq.read('orchestration_step_results', 30, 10)") + ")", nil
	case 7:
		return "select pawl.process_step_enqueues(" + some("pgmq.read('orchestration_step_enqueues', 30, 10)") + ")", nil
	case 8:
		return "select pawl.fire_due(20), pawl.revert_stale_claims('billing'), pawl.reconcile_step_keys(50)", nil
	default:
		return `select pawl.cancel_task(t.task_id, 'ann', 'fire') from (select x.task_id from pawl.tasks x where x.finalized_at is null
			order by random() limit 1) t`, nil
	}
}
