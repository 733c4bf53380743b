package sql_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Workers, orchestrators, gates, operators and the reconciler at once, on few tasks, so that they meet: no deadlock, no
// defect for the reconciler to find, and in the end every task has an end.
func TestEverybodyAtOnceLeavesNothingWrong(t *testing.T) {
	k := newCommittingKit(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	k.configure("gated_queue", object{"max_concurrency": 3})
	k.Template("storm/mixed", object{"on_failure": "hold"}, step("a"), step("b: a"), step("c: a", object{"queue": "gated_queue"}),
		step("d: b c", object{"retry": object{"max_attempts": 2, "base_ms": 1}}))
	var tasks []uuid.UUID
	for range 12 {
		tasks = append(tasks, k.Submit("storm/mixed"))
	}
	drain := func(queue, function string) string {
		return "select pawl." + function + "(array(select msg_id from pgmq.q_orchestration_" + queue +
			" where vt <= clock_timestamp() order by msg_id limit 10), 'p')"
	}
	work := func(queue, status string) string {
		return `select pawl.report_steps('` + queue + `', (select coalesce(jsonb_agg(jsonb_build_object('msg_id', c->'msg_id', 'read_ct',
			c->'read_ct', 'status', '` + status + `', 'error', '{"type": "x", "retry_after": 0}'::jsonb)), '[]')
			from json_array_elements(pawl.claim_steps('` + queue + `', 3, 'w')) c), 'w')`
	}
	plain := []string{
		work("work_queue", "complete"), work("work_queue", "complete"), work("gated_queue", "complete"), work("work_queue", "failed"),
		drain("step_results", "apply_step_results"), drain("step_enqueues", "process_step_enqueues"),
		drain("task_finalizations", "finalize_tasks"), "select pawl.fire_due(10, 'p')", "select pawl.release_held(10, 'p')",
		"select pawl.reconcile('p', grace => '0')", "select pawl.sweep(10, 'p')",
	}
	commands := []string{
		"select pawl.cancel_task($1, 'ann', 'r')", "select pawl.retry_task($1, null, 'ann', 'r')", "select pawl.retry_task($1, 'a', 'ann', 'r')",
		"select pawl.retry_step($1, 'b', 0, 'ann', 'r')", "select pawl.resolve_step($1, 'c', 0, 'ann', 'r')",
		"select pawl.complete_step($1, 'd', 0, '1', 'ann', 'r')",
	}
	run := func(random *rand.Rand) {
		for range 150 {
			var err error
			if random.IntN(4) > 0 {
				_, err = k.pool.Exec(k.Context(), plain[random.IntN(len(plain))])
			} else {
				_, err = k.pool.Exec(k.Context(), commands[random.IntN(len(commands))], tasks[random.IntN(len(tasks))])
			}
			var raised *pgconn.PgError
			if err != nil && assert.ErrorAs(k, err, &raised) {
				assert.Contains(k, []string{"PW021"}, raised.Code, raised.Error())
			}
		}
	}
	var everybody sync.WaitGroup
	for i := range uint64(6) {
		everybody.Go(func() { run(rand.New(rand.NewPCG(seed, i))) })
	}
	everybody.Wait()

	// Then in peace.
	require.Eventually(t, func() bool {
		for _, statement := range plain {
			if !assert.NoError(t, exec(k, statement)) {
				return true
			}
		}
		for _, task := range list[uuid.UUID](k, "select task_id from pawl.tasks where state = 'blocked_by_failures'") {
			k.object("select pawl.retry_task($1, null, 'ann', 'r')", task)
		}
		k.Expire("work_queue")
		k.Expire("gated_queue")
		return get[bool](k, "select not exists (select from pawl.tasks where finalized_at is null)")
	}, time.Minute, time.Millisecond)
	require.Empty(t, list[string](k, "select cause || ' ' || kind || ' ' || coalesce(found::text, '') from pawl.repairs"))
	require.Zero(t, get[int](k, "select deadlocks::int from pg_stat_database where datname = current_database()"))
	k.sound()
}

func exec(k *kit, statement string) error {
	_, err := k.pool.Exec(context.Background(), statement)
	return err
}
