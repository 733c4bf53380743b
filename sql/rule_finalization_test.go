package sql_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// finalizing makes a task that waits for its finalizer, and n messages that ask for it. Returns the task and the messages.
func finalizing(k *kit, n int) (task any, ids []int64) {
	k.Helper()
	k.shop()
	task = k.evaluating()
	k.Exec("insert into pgmq.q_orchestration_task_finalizations (vt, message) select clock_timestamp(), message from pgmq.q_orchestration_task_finalizations, generate_series(2, $1)", n)
	return task, k.ids("orchestration_task_finalizations")
}

const finalize = "select pawl.finalize_tasks(array[$1::bigint], $2)->0->>'outcome'"

// finalizedOnce asserts one transition to the end, one reply's worth of it, and nothing left.
func finalizedOnce(k *kit, task any) {
	k.Helper()
	require.Equal(k, 1, get[int](k, "select count(*)::int from pawl.audit where task_id = $1 and step is null and to_state = 'complete'", task))
	require.Equal(k, "completed", get[string](k, "select status from pawl.task_identities where key = 'final'"))
	require.Empty(k, k.ids("orchestration_task_finalizations"))
	require.Zero(k, get[int](k, "select count(*)::int from pawl.dead_letters"))
	k.sound()
}

// The second waits for the first, then sees the final state and returns gracefully.
func TestTwoFinalizersAtOnceAreBothContent(t *testing.T) {
	k := newCommittingKit(t)
	task, ids := finalizing(k, 2)
	first, second := k.begin(), k.begin()
	pid := second.pid()
	require.Equal(t, "finalized", get[string](first, finalize, ids[0], "first"))
	outcome, failed := make(chan string, 1), make(chan error, 1)
	go func() {
		var o string
		err := second.DB.(pgx.Tx).QueryRow(t.Context(), finalize, ids[1], "second").Scan(&o)
		outcome <- o
		failed <- err
	}()
	k.untilWaiting(pid)
	first.commit()
	require.Equal(t, "already_final", <-outcome)
	require.NoError(t, <-failed)
	second.commit()
	finalizedOnce(k, task)
}

// A finalizer that waits no longer than its lock_timeout leaves its message and holds nothing.
func TestAFinalizerRespectsItsLockTimeout(t *testing.T) {
	k := newCommittingKit(t)
	task, ids := finalizing(k, 1)
	holder, waiter := k.begin(), k.begin()
	holder.Exec("select from pawl.tasks where task_id = $1 for update", task)
	waiter.Exec("set local lock_timeout = '50ms'")
	waiter.refused("55P03", finalize, ids[0], "waiter")
	require.Empty(t, list[string](waiter, "select mode from pg_locks where pid = pg_backend_pid() and locktype in ('tuple', 'advisory')"))
	waiter.commit()
	require.Equal(t, ids, k.ids("orchestration_task_finalizations"))
	require.Equal(t, "evaluating_results", get[string](k, "select state::text from pawl.tasks where task_id = $1", task))
	holder.commit()
	require.Equal(t, "finalized", get[string](k, finalize, ids[0], "later"))
	finalizedOnce(k, task)
}

// No claim columns: a claim outlives its holder, a lock does not.
func TestAFinalizerThatDiesInTheMiddleHoldsNothing(t *testing.T) {
	k := newCommittingKit(t)
	task, ids := finalizing(k, 1)
	require.Empty(t, list[string](k, "select attname from pg_attribute where attrelid = 'pawl.tasks'::regclass and attname like '%claim%'"))
	dying := k.begin()
	pid := dying.pid()
	require.Equal(t, "finalized", get[string](dying, finalize, ids[0], "dying"))
	k.Exec("select pg_terminate_backend($1)", pid)
	require.Equal(t, "finalized", get[string](k, finalize, ids[0], "next"))
	require.Equal(t, []string{"next"}, list[string](k, "select distinct processor from pawl.audit where task_id = $1 and step is null and to_state = 'complete'", task))
	finalizedOnce(k, task)
}

const (
	finalizerURL     = "PAWL_TEST_FINALIZER_URL" // tells the test binary to be a finalizer
	finalizerMessage = "PAWL_TEST_FINALIZER_MESSAGE"
	barrier          = 7301 // advisory lock that holds the finalizers until all are there
)

// Sixteen processes, the test's own binary, all hold a message about one task when the barrier opens.
func TestSixteenProcessesFinalizeOneTaskOnce(t *testing.T) {
	k := newCommittingKit(t)
	task, ids := finalizing(k, 16)
	gate := k.begin()
	gate.Exec("select pg_advisory_xact_lock($1)", barrier)
	outputs := make([]bytes.Buffer, len(ids))
	processes := make([]*osexec.Cmd, len(ids))
	for i, id := range ids {
		p := osexec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFinalizerProcess$", "-test.count=1")
		p.Env = append(os.Environ(), finalizerURL+"="+k.pool.Config().ConnString(), fmt.Sprint(finalizerMessage, "=", id))
		p.Stdout, p.Stderr = &outputs[i], &outputs[i]
		require.NoError(t, p.Start())
		processes[i] = p
	}
	require.Eventually(t, func() bool {
		var waiting int
		err := k.pool.QueryRow(t.Context(), "select count(*) from pg_locks where locktype = 'advisory' and objid = $1 and not granted", barrier).Scan(&waiting)
		return err == nil && waiting == len(ids)
	}, time.Minute, 20*time.Millisecond)
	gate.commit()
	outcomes := map[string]int{}
	for i, p := range processes {
		require.NoError(t, p.Wait(), "%s", &outputs[i])
		for line := range strings.Lines(outputs[i].String()) {
			if outcome, ok := strings.CutPrefix(line, "outcome: "); ok {
				outcomes[strings.TrimSpace(outcome)]++
			}
		}
	}
	require.Equal(t, map[string]int{"finalized": 1, "already_final": 15}, outcomes)
	finalizedOnce(k, task)
	require.Zero(t, get[int](k, "select deadlocks::int from pg_stat_database where datname = current_database()"))
}

// TestFinalizerProcess is one of the sixteen processes; by itself it does nothing.
func TestFinalizerProcess(t *testing.T) {
	url := os.Getenv(finalizerURL)
	if url == "" {
		t.Skip("run by TestSixteenProcessesFinalizeOneTaskOnce")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	db, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	_, err = db.Exec(ctx, "select pg_advisory_lock_shared($1), set_config('lock_timeout', '50s', false)", barrier)
	require.NoError(t, err)
	var outcome string
	require.NoError(t, db.QueryRow(ctx, finalize, os.Getenv(finalizerMessage), fmt.Sprint("process ", os.Getpid())).Scan(&outcome))
	fmt.Println("outcome:", outcome)
	require.NoError(t, db.Close(ctx))
}
