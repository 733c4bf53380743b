package sql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

const readResults = "select msg_id || ':' || read_ct from unnest(pawl_queues.read_orchestration_step_results(100, 30000, 1000000))"

// reported makes a task of shop/diamond whose first result waits in the results queue, to be read.
func reported(k *kit) {
	k.Helper()
	k.shop()
	setting(k, "direct = false")
	k.Submit("shop/diamond")
	k.Finish(queue, k.ClaimOne(queue))
}

// R2: reading commits by itself, so that a delivery counts even when working on it dies.
func TestADeliveryCountsWhenItsProcessingDies(t *testing.T) {
	k := newCommittingKit(t)
	reported(k)
	for _, seen := range []string{"1:1", "1:2", "1:3"} {
		require.Equal(t, []string{seen}, list[string](k, readResults))
		require.Empty(t, list[string](k, readResults), "invisible to others")
		dying := k.begin()
		dying.Exec("select pawl.apply_step_results(array[1::bigint], 'dying')")
		require.NoError(t, dying.DB.(pgx.Tx).Rollback(t.Context()))
		k.Expire("orchestration_step_results")
	}
	k.Exec("select pawl.apply_step_results(array[1::bigint], 'next')")
	require.Equal(t, 2, get[int](k, "select count(*)::int from pgmq.q_work_queue"))
}

// R2: the message is the key of what it causes. A batch slower than its visibility timeout is read and worked by another
// while it runs; it has effect once, whoever ends first.
func TestARedeliveryWhileItsBatchRunsDoesNothingTwice(t *testing.T) {
	for _, c := range []struct {
		name   string
		commit bool
		taken  int // by the other
	}{{"the slow one commits", true, 0}, {"the slow one dies", false, 1}} {
		t.Run(c.name, func(t *testing.T) {
			k := newCommittingKit(t)
			reported(k)
			require.Equal(t, []string{"1:1"}, list[string](k, readResults), "by the slow one")
			k.Expire("orchestration_step_results") // before it begins
			require.Equal(t, []string{"1:2"}, list[string](k, readResults), "by the other")
			k.Expire("orchestration_step_results")
			slow, other := k.begin(), k.begin()
			slow.Exec("select pawl.apply_step_results(array[1::bigint], 'slow')")
			require.Empty(t, list[string](k, readResults), "a third finds it taken, and does not wait")
			pid := other.pid()
			taken := make(chan int, 1)
			go func() {
				var n int
				_ = other.DB.(pgx.Tx).QueryRow(t.Context(), "select pawl.apply_step_results(array[1::bigint], 'other')").Scan(&n)
				taken <- n
			}()
			k.untilWaiting(pid)
			if c.commit {
				slow.commit()
			} else {
				require.NoError(t, slow.DB.(pgx.Tx).Rollback(t.Context()))
			}
			require.Equal(t, c.taken, <-taken)
			other.commit()
			require.Equal(t, 1, get[int](k, "select count(*)::int from pawl.audit where step = 'a' and to_state = 'complete'"))
			require.Equal(t, 2, get[int](k, "select count(*)::int from pgmq.q_work_queue"))
			require.Zero(t, get[int](k, "select count(*)::int from pawl.absorbed"))
			k.sound()
		})
	}
}

// R13: a read is so many messages and so many bytes; one that is larger than that comes alone.
func TestAReadIsBoundedInMessagesAndBytes(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	for _, q := range []string{"work_queue", "orchestration_task_requests", "orchestration_step_results", "orchestration_step_enqueues",
		"orchestration_task_finalizations"} {
		k.Exec("select pgmq.send($1, jsonb_build_object('n', n, 'text', (select string_agg(md5(random()::text), '') from generate_series(1, 30)))) from generate_series(1, 10) n", q)
		size := get[int](k, "select min(pg_column_size(message)) from pgmq.q_"+q)
		read := func(messages, bytes int) int {
			return len(list[int64](k, "select msg_id from unnest(pawl_queues.read_"+q+"($1, 0, $2))", messages, bytes))
		}
		require.Equal(t, 4, read(4, 1<<20), q)
		require.Equal(t, 3, read(100, 2*size+size/2), q)
		require.Equal(t, 1, read(100, 1), q)
		require.Equal(t, 10, read(100, 1<<20), q)
	}
	k.Exec("delete from pgmq.q_work_queue")
	for range 3 {
		k.Submit("shop/one", object{"input": strings.Repeat("x", 3000)})
	}
	require.Len(t, get[[]object](k, `select pawl.claim_steps('work_queue', 100, 'w', '{"max_bytes": 1}')`), 1)
	require.Len(t, get[[]object](k, `select pawl.claim_steps('work_queue', 1, 'w')`), 1)
}

// R13: no transaction enqueues more steps than its bound; the rest is a message to the step-enqueuer.
func TestATransactionEnqueuesNoMoreThanItsBound(t *testing.T) {
	for _, way := range []string{"built", "released", "retried"} {
		t.Run(way, func(t *testing.T) {
			k := newCommittingKit(t)
			setting(k, "max_steps_per_transaction = 7")
			steps := make([]object, 0, 30)
			for _, letter := range strings.Split("a b c d e f g h i j k l m n o p q r s t u v w x y", " ") {
				steps = append(steps, step(letter))
			}
			if way == "released" {
				k.configure(queue, object{"max_concurrency": 1000})
			}
			k.Template("shop/wide", object{"on_failure": "finish"}, steps...)
			task := k.Submit("shop/wide")
			k.Rest()
			for way == "released" && k.release() > 0 {
				k.Rest()
			}
			if way == "retried" {
				for _, d := range k.Claim(queue) {
					k.fail(queue, d)
				}
				k.Exec("select pawl.retry_task($1, null, 'ann', 'r')", task)
				k.Rest()
			}
			require.Len(t, k.Claim(queue), 25)
			if way != "released" { // the gate has its own bound, 1,000 for each look
				require.LessOrEqual(t, get[int](k, "select max(n)::int from (select count(*) as n from pawl.audit where step is not null and to_state = 'enqueued' group by xid) x"), 7)
			}
			k.sound()
		})
	}
}

// R13: what is larger than the limit is refused where it enters.
func TestAReportOverTheLimitIsRefused(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	k.Submit("shop/one")
	d := k.ClaimOne(queue)
	report := []object{{"msg_id": d.ID, "read_ct": d.ReadCount, "status": "complete", "result": strings.Repeat("x", 1<<20)}}
	require.Contains(t, k.refused("PW016", "select pawl.report_steps('work_queue', $1, 'w')", report).Hint, "1 MiB")
	k.Finish(queue, d)
}

// R13: the bound holds over a batch of requests, and of pieces of large tasks, not only for each of them.
func TestABatchMakesNoMoreStepsThanItsBound(t *testing.T) {
	k := newCommittingKit(t)
	setting(k, "max_steps_per_transaction = 7")
	wide := func(name string, n int) int {
		var steps []object
		for i := range n {
			steps = append(steps, step(fmt.Sprintf("s%d", i)))
		}
		return k.Template(name, nil, steps...)
	}
	small, large := wide("shop/small", 3), wide("shop/large", 8)
	var wanted []object
	for i, template := range []int{small, small, large, small, large, large, small} {
		id := get[int64](k, "select pgmq.send('orchestration_task_requests', jsonb_build_object('n', $1::int, 'input', '{}'::jsonb))", i)
		wanted = append(wanted, object{"msg_id": id, "template_id": template})
	}
	var taken []int
	for len(wanted) > 0 {
		outcomes := map[float64]string{}
		for _, o := range get[[]object](k, "select pawl.process_task_requests($1::jsonb, 'p')", wanted) {
			outcomes[o["msg_id"].(float64)] = o["outcome"].(string)
		}
		require.Len(t, outcomes, len(wanted), "each request has an outcome")
		rest := wanted[:0:0]
		for _, w := range wanted {
			if outcomes[float64(w["msg_id"].(int64))] == "left" {
				rest = append(rest, w)
			}
		}
		require.Less(t, len(rest), len(wanted), "at least one is taken")
		require.Equal(t, len(rest), get[int](k, "select count(*)::int from pgmq.q_orchestration_task_requests"))
		taken = append(taken, len(wanted)-len(rest))
		wanted = rest
	}
	require.Equal(t, []int{3, 3, 1}, taken, "3 + 3 + 1 steps, then 3 + 1 + 1, then 3: large tasks are built later")
	for built := get[int](k, "select count(*)::int from pawl.steps"); built < 36; {
		k.Exec("select pawl.process_step_enqueues(array(select msg_id from pgmq.q_orchestration_step_enqueues), 'p')")
		now := get[int](k, "select count(*)::int from pawl.steps")
		require.Greater(t, now, built)
		require.LessOrEqual(t, now-built, 7)
		built = now
	}
	k.Rest()
	require.Equal(t, 36, get[int](k, "select count(*)::int from pawl.steps"))
	k.sound()
}
