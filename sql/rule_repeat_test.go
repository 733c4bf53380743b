package sql_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// refusedWhenRepeated are commands that find their work done and say so; all others are content.
var refusedWhenRepeated = map[string]string{"retry a task": "PW021", "retry a step": "PW021"}

// R9: nobody knows whether a COMMIT that failed was done. Each operation is sent again, as it was, after it was done: it
// changes nothing more; and after it was rolled back: it is done.
func TestEveryOperationMayBeRepeatedBlindly(t *testing.T) {
	for _, o := range append(append(workOperations(), commandOperations()...), repeatable()...) {
		t.Run(o.name, func(t *testing.T) {
			k := newKit(t)
			k.shop()
			c := o.prepare(k)
			lost, err := k.DB.Begin(t.Context())
			require.NoError(t, err)
			_, err = lost.Exec(t.Context(), c.sql, c.args...)
			require.NoError(t, err)
			require.NoError(t, lost.Rollback(t.Context()))

			require.NoError(t, k.attempt(c), "rolled back, then repeated")
			done := k.content()
			for range 2 {
				if code := refusedWhenRepeated[o.name]; code != "" {
					k.refused(code, c.sql, c.args...)
				} else {
					require.NoError(t, k.attempt(c), "done, then repeated")
				}
				require.Equal(t, done, k.content())
			}
		})
	}
}

// repeatable are operations that move nothing in the tables of the state, or only what others did not.
func repeatable() []operation {
	held := func(sql string) func(k *kit) call {
		return func(k *kit) call {
			k.Submit("shop/diamond")
			return calling(sql, leases(k.Claim(queue)...))
		}
	}
	plain := func(sql string, args ...any) func(*kit) call { return func(*kit) call { return calling(sql, args...) } }
	return []operation{
		{"heartbeat", held("select pawl.extend_leases('work_queue', $1)")},
		{"hand back", held("select pawl.release_steps('work_queue', $1)")},
		{"register the same template", plain(`select pawl.register_template((select definition from pawl.templates where name = 'one'))`)},
		{"install a queue", plain("select pawl.install_queue('shop_queue')")},
		{"resume", func(k *kit) call {
			k.Exec("select pawl.pause_queue('work_queue', 'ann', 'r')")
			return calling("select pawl.resume_queue('work_queue', 'ann', 'r')")
		}},
		{"beat", plain("select pawl.beat_processor($1, 'worker', 'here', 1, '1'), pawl.stop_processor($1)", uuid.New())},
		{"beat of a janitor", plain("select pawl.beat_janitor('billing')")},
		{"janitor", plain("select pawl.revert_stale_claims('billing', 'j')")},
		{"reconcile", plain("select pawl.reconcile('p')")},
		{"sweep", func(k *kit) call {
			k.Template("shop/short", object{"retention_ms": 0}, step("a"))
			k.Submit("shop/short")
			k.work(queue)
			return calling("select pawl.sweep(10, 'p')")
		}},
		{"register an entity", func(k *kit) call {
			k.Exec("create table invoices (number text primary key, status text not null, version int not null default 1)")
			return calling("select pawl.register_entity('invoice', $1, 'ann', 'r')", entity(nil))
		}},
	}
}

// R9: a client whose connection is cut while the server commits sends its request again, on another connection.
func TestARequestWhoseCommitWasLostIsSentAgain(t *testing.T) {
	k := newCommittingKit(t)
	k.shop()
	for n, fields := range []object{{"request_id": uuid.NewString()}, {"request_id": uuid.NewString(), "key": "k"}, {"key": "only"}} {
		first := k.Request("shop/one", fields)
		require.Equal(t, "created", first["outcome"])
		again := k.Request("shop/one", fields)
		require.Equal(t, first["task_id"], again["task_id"], "it meets its own task")
		require.Equal(t, n+1, get[int](k, "select count(*)::int from pawl.tasks"))
	}
	other := k.Request("shop/one", object{"request_id": uuid.NewString(), "key": "only", "input": object{"other": 1}})
	require.Equal(t, "TaskInputMismatch", other["error"].(object)["error"])
	require.Equal(t, "created", k.Request("shop/one", nil)["outcome"])
	require.Equal(t, "created", k.Request("shop/one", nil)["outcome"], "neither request_id nor key: two tasks, as documented")
}

// R9: the answer to a COMMIT is lost, which may have been done or not.
func TestAnOperationWhoseAnswerIsLostIsSentAgain(t *testing.T) {
	for _, done := range []bool{false, true} {
		t.Run(fmt.Sprint("committed: ", done), func(t *testing.T) {
			k := newCommittingKit(t)
			reported(k)
			apply := "select pawl.apply_step_results(array[1::bigint], 'p')"
			cut := k.begin()
			pid := cut.pid()
			cut.Exec(apply)
			if done {
				cut.commit()
			} else {
				k.Exec("select pg_terminate_backend($1)", pid)
				require.Error(t, cut.DB.(pgx.Tx).Commit(t.Context()))
			}
			k.Exec(apply)
			k.Exec(apply)
			require.Equal(t, map[string]string{"a": "complete", "b": "enqueued", "c": "enqueued", "d": "pending"},
				k.steps(get[uuid.UUID](k, "select task_id from pawl.tasks")))
			require.Equal(t, 2, get[int](k, "select count(*)::int from pgmq.q_work_queue"))
			k.sound()
		})
	}
}
