package sql_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// crowd gives a pool of 32 connections.
func crowd(k *kit) *pgxpool.Pool {
	config := k.pool.Config()
	config.MaxConns = 32
	pool, err := pgxpool.NewWithConfig(k.Context(), config)
	require.NoError(k, err)
	k.t.Cleanup(pool.Close)
	return pool
}

// processAll lets 32 connections process all requests at once; gives how many ended in which outcome.
func processAll(k *kit, pool *pgxpool.Pool, template int) map[string]int64 {
	var created, attached, other atomic.Int64
	var wait sync.WaitGroup
	for range 32 {
		wait.Go(func() {
			for {
				var outcomes []object
				err := pool.QueryRow(context.WithoutCancel(k.Context()), `select pawl.process_task_requests((select jsonb_agg(jsonb_build_object('msg_id', r.msg_id, 'template_id', $1::int))
					from unnest(pawl_queues.read_orchestration_task_requests(7, 60000, 1000000)) r))`, template).Scan(&outcomes)
				if err != nil || len(outcomes) == 0 {
					require.NoError(k, err)
					return
				}
				for _, o := range outcomes {
					switch o["outcome"] {
					case "created":
						created.Add(1)
					case "attached":
						attached.Add(1)
					default:
						other.Add(1)
					}
				}
			}
		})
	}
	wait.Wait()
	return map[string]int64{"created": created.Load(), "attached": attached.Load(), "other": other.Load()}
}

func TestThousandConcurrentSubmitsOfOneKeyMakeOneTask(t *testing.T) {
	k := newCommittingKit(t)
	plain := identityTemplates(k)
	pool := crowd(k)
	k.Exec(`select pgmq.send_batch('orchestration_task_requests', array_fill('{"key": "k", "input": 1}'::jsonb, array[1000]))`)
	require.Equal(t, map[string]int64{"created": 1, "attached": 999, "other": 0}, processAll(k, pool, plain))
	require.Equal(t, 1, get[int](k, "select count(*) from pawl.tasks"))

	k.endStep(get[uuid.UUID](k, "select task_id from pawl.tasks"), failed) // and so does a key that is open again
	k.Exec(`select pgmq.send_batch('orchestration_task_requests', array_fill('{"key": "k", "input": 2}'::jsonb, array[1000]))`)
	require.Equal(t, map[string]int64{"created": 1, "attached": 999, "other": 0}, processAll(k, pool, plain))
	require.Equal(t, []int{1, 2}, list[int](k, "select epoch from pawl.tasks order by epoch"))
}

func TestExpiredKeyIsTakenOverOnce(t *testing.T) {
	k := newCommittingKit(t)
	plain := identityTemplates(k)
	pool := crowd(k)
	task := k.Submit("id/plain", object{"key": "k", "input": 1})
	k.endStep(task, done)
	k.Exec("update pawl.task_identities set expires_at = pawl.now()")
	k.Exec(`select pgmq.send_batch('orchestration_task_requests', array_fill('{"key": "k", "input": 1}'::jsonb, array[200]))`)
	require.Equal(t, map[string]int64{"created": 1, "attached": 199, "other": 0}, processAll(k, pool, plain))
}

func TestStormOfDuplicatesLeavesNoDeadRows(t *testing.T) {
	k := newCommittingKit(t)
	plain := identityTemplates(k)
	pool := crowd(k)
	k.Submit("id/plain", object{"key": "k", "input": 1})
	k.Exec(`select pgmq.send_batch('orchestration_task_requests', array_fill('{"key": "k", "input": 1}'::jsonb, array[2000]))`)
	require.Equal(t, map[string]int64{"created": 0, "attached": 2000, "other": 0}, processAll(k, pool, plain))
	pool.Close() // its sessions tell their counts when they end
	require.Equal(t, "0", get[string](k, "select xmax::text from pawl.task_identities"), "nobody locked the row")
	require.Eventually(t, func() bool {
		return get[bool](k, `select n_tup_ins = 1 from pg_stat_user_tables where schemaname = 'pawl' and relname = 'task_identities'`)
	}, time.Minute, 20*time.Millisecond)
	require.Equal(t, []int64{0, 0, 0}, get[[]int64](k, `select array[n_tup_upd, n_tup_del, n_dead_tup] from pg_stat_user_tables
		where schemaname = 'pawl' and relname = 'task_identities'`))
}
