package sql_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
	engine "github.com/pawl-dev/pawl/test/kit"
)

const queue = "work_queue"

func diamond() []object {
	return []object{step("a"), step("b: a"), step("c: a"), step("d: b c")}
}

func TestADiamondRunsEveryStepAfterItsNeeds(t *testing.T) {
	k := newKit(t)
	k.Template("shop/diamond", nil, diamond()...)
	task := k.Submit("shop/diamond", object{"input": object{"n": 1}})

	first := k.ClaimOne(queue)
	require.Equal(k, "a", first.Step)
	require.JSONEq(k, `{"n": 1}`, string(first.Input))
	require.Equal(k, task.String()+"/a", first.Token)
	require.Empty(k, k.Claim(queue), "nothing else is ready")
	k.Finish(queue, first)

	middle := k.Claim(queue)
	require.Len(k, middle, 2)
	require.JSONEq(k, `{"a": {"by": "a"}}`, string(middle[0].Dependencies))
	k.Finish(queue, middle[0])
	require.Empty(k, k.Claim(queue), "d needs b and c")
	k.Finish(queue, middle[1])

	last := k.ClaimOne(queue)
	require.JSONEq(k, `{"b": {"by": "b"}, "c": {"by": "c"}}`, string(last.Dependencies))
	k.Finish(queue, last)
	require.Equal(k, "complete", k.State(task))
	require.Equal(k, object{"by": "d"}, k.object("select result from pawl.tasks where task_id = $1", task))
	require.Equal(k, []string{
		"created", "evaluated", "finalized",
		"a: enqueued", "a: started", "a: completed", "b: enqueued", "b: started", "b: completed",
		"c: enqueued", "c: started", "c: completed", "d: enqueued", "d: started", "d: completed",
	}, k.events(task))
	k.sound()
}

// The three ways of the engine: results applied by who reports them, through the results queue, and every hop through
// its queue as the seeds describe it.
func TestAllWaysGiveEqualTasksStepsAndAudit(t *testing.T) {
	ways := map[string]string{
		"direct": "direct = true, staged = false",
		"queued": "direct = false, staged = false",
		"staged": "staged = true",
	}
	shapes := map[string]func() []object{
		"one":     func() []object { return []object{step("a")} },
		"diamond": diamond,
		"fan": func() []object {
			return []object{step("a"), step("b: a"), step("c: a"), step("d: a"), step("e: a"), step("z: b c d e")}
		},
		"failing": func() []object { return []object{step("a"), step("bad: a"), step("never: bad"), step("c: a")} },
		"retried": func() []object { return []object{step("a"), step("flaky: a"), step("z: flaky")} },
	}
	type outcome struct {
		Task, Steps string
		Events      []string
	}
	t.Parallel()
	seen := map[string]map[string]outcome{}
	for way, settings := range ways {
		seen[way] = map[string]outcome{}
		for shape, steps := range shapes {
			t.Run(way+"/"+shape, func(t *testing.T) {
				k := kitOn(t, pgtest.Tx(t), nil)
				k.Exec("update pawl.engine_settings set " + settings)
				k.Template("shop/"+shape, nil, steps()...)
				task := k.Submit("shop/" + shape)
				workWithFailures(k)
				seen[way][shape] = outcome{
					Task: get[string](k, `select concat_ws(' ', state, revision, open_count, active_count, failed_count, result, error)
						from pawl.tasks where task_id = $1`, task),
					Steps: get[string](k, `select string_agg(concat_ws(' ', step, state, revision, attempt, failures, result, error), e'\n' order by step)
						from pawl.steps where task_id = $1`, task),
					Events: list[string](k, `select concat_ws(' ', step, from_state, to_state, event, revision, attempt, reason) from pawl.audit
						where task_id = $1 order by step nulls first, revision`, task),
				}
				k.sound()
			})
		}
	}
	for shape := range shapes {
		require.NotEmpty(t, seen["direct"][shape].Events, shape)
		require.Equal(t, seen["direct"][shape], seen["queued"][shape], shape)
		require.Equal(t, seen["direct"][shape], seen["staged"][shape], shape)
	}
}

// workWithFailures works until nothing is left: steps named bad fail for good, steps named flaky fail once.
func workWithFailures(k *kit) {
	k.Helper()
	for range 100 {
		k.Rest()
		claimed := k.Claim(queue)
		for _, d := range claimed {
			switch {
			case d.Step == "bad":
				k.fail(queue, d)
			case d.Step == "flaky" && d.Attempt == 1:
				k.Report(queue, d, object{"status": "failed", "error": object{"type": "boom", "message": "later", "retry_after": 0}})
			default:
				k.Finish(queue, d)
			}
		}
		k.Rest()
		k.Tick()
		if len(claimed) == 0 && get[int](k, "select count(*)::int from pawl.tasks where finalized_at is null") == 0 {
			return
		}
	}
	require.FailNow(k, "the work does not end")
}

func TestAFailurePolicyDecidesWhatFollowsAFailedStep(t *testing.T) {
	for policy, want := range map[string]struct {
		state string
		steps map[string]string
	}{
		"finish":    {"error", map[string]string{"bad": "error", "never": "cancelled", "other": "complete", "after": "complete"}},
		"fail_fast": {"error", map[string]string{"bad": "error", "never": "cancelled", "other": "cancelled", "after": "cancelled"}},
		"hold":      {"blocked_by_failures", map[string]string{"bad": "error", "never": "pending", "other": "complete", "after": "complete"}},
	} {
		t.Run(policy, func(t *testing.T) {
			k := newKit(t)
			k.Template("shop/failing", object{"on_failure": policy}, step("bad"), step("never: bad"), step("other"), step("after: other"))
			task := k.Submit("shop/failing")
			for _, d := range k.Claim(queue) {
				if d.Step == "bad" {
					k.fail(queue, d)
				}
			}
			k.Expire(queue)
			k.work(queue)
			require.Equal(k, want.state, k.State(task))
			require.Equal(k, want.steps, k.steps(task))
			k.sound()
		})
	}
}

func TestAFailedAttemptWaitsItsBackOffAndTriesAgainUntilItsAttemptsAreSpent(t *testing.T) {
	k := newKit(t)
	k.Template("shop/flaky", nil, step("a", object{"retry": object{"max_attempts": 2, "backoff": "fixed", "base_ms": 60000, "jitter": 0}}))
	task := k.Submit("shop/flaky")
	failed := object{"status": "failed", "error": object{"type": "boom", "message": "it broke"}}
	require.True(k, k.Report(queue, k.ClaimOne(queue), failed))
	require.Equal(k, "waiting_for_retry", k.State(task))
	require.EqualValues(k, 0, k.Tick()["fired"], "the back-off is not over")
	require.Empty(k, k.Claim(queue))

	k.Later(61 * time.Second)
	require.EqualValues(k, 1, k.Tick()["fired"])
	again := k.ClaimOne(queue)
	require.Equal(k, 2, again.Attempt)
	require.Equal(k, task.String()+"/a", again.Token, "the token is stable over attempts")
	require.True(k, k.Report(queue, again, failed))
	require.Equal(k, "error", k.State(task))
	require.Equal(k, "boom", k.object("select error from pawl.tasks where task_id = $1", task)["type"])
	k.sound()
}

func TestTimeoutsEndAttemptsAndTasksWhateverTheWorkerDoes(t *testing.T) {
	k := newKit(t)
	k.Template("shop/slow", object{"timeout_ms": 600_000}, step("a", object{"timeout_ms": 10_000,
		"retry": object{"max_attempts": 5, "backoff": "none"}}))
	task := k.Submit("shop/slow")
	first := k.ClaimOne(queue)
	k.Later(11 * time.Second)
	k.Tick()
	require.False(k, k.Report(queue, first, object{"status": "complete"}) && k.State(task) == "complete", "a late result does not count")
	k.Rest()
	k.Tick()
	require.Equal(k, 2, k.ClaimOne(queue).Attempt)
	k.Later(601 * time.Second)
	k.Tick()
	require.Equal(k, "timed_out", k.State(task))
	require.Equal(k, map[string]string{"a": "cancelled"}, k.steps(task))
	k.sound()
}

func TestATaskWithAStartTimeWaitsForIt(t *testing.T) {
	k := newKit(t)
	k.Template("shop/diamond", nil, diamond()...)
	task := k.Submit("shop/diamond", object{"run_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)})
	require.Equal(k, "pending", k.State(task))
	k.Tick()
	require.Empty(k, k.Claim(queue))
	k.Later(2 * time.Hour)
	k.Tick()
	require.Len(k, k.work(queue), 4)
	require.Equal(k, "complete", k.State(task))
	k.sound()
}

func TestLargeTasksAreBuiltAndEnqueuedPieceByPiece(t *testing.T) {
	for _, bound := range []int{7, 2000} {
		t.Run(fmt.Sprint(bound), func(t *testing.T) {
			k := newKit(t)
			k.Exec("update pawl.engine_settings set max_steps_per_transaction = $1", bound)
			steps := []object{step("first")}
			join := "last:"
			for i := range 50 {
				steps = append(steps, step(fmt.Sprintf("s%d: first", i)))
				join += fmt.Sprintf(" s%d", i)
			}
			k.Template("shop/wide", nil, append(steps, step(join))...)
			task := k.Submit("shop/wide")
			worked := k.work(queue)
			require.Len(k, worked, 52)
			require.Equal(k, "first", worked[0])
			require.Equal(k, "last", worked[51])
			require.Equal(k, "complete", k.State(task))
			k.sound()
		})
	}
}

func TestAChainOfFiveHundredSteps(t *testing.T) {
	k := newKit(t)
	steps := []object{step("s0")}
	for i := 1; i < 500; i++ {
		steps = append(steps, step(fmt.Sprintf("s%d: s%d", i, i-1)))
	}
	k.Template("shop/chain", nil, steps...)
	task := k.Submit("shop/chain")
	worked := k.work(queue)
	require.Len(k, worked, 500)
	for i, name := range worked {
		require.Equal(k, fmt.Sprintf("s%d", i), name)
	}
	require.Equal(k, "complete", k.State(task))
}

func TestLargeInputsTravelByReference(t *testing.T) {
	k := newKit(t)
	k.Template("shop/diamond", nil, diamond()...)
	large := make([]string, 4000)
	for i := range large {
		large[i] = uuid.NewString()
	}
	task := k.Submit("shop/diamond", object{"input": object{"list": large}})
	claimed := k.ClaimOne(queue)
	require.Greater(k, len(claimed.Input), 100_000, "the claim brings what the message left out")
	message := k.object("select message from pgmq.q_work_queue")
	require.Equal(k, true, message["by_reference"])
	require.NotContains(k, message, "input")

	require.True(k, k.Report(queue, claimed, engine.Complete(object{"list": large})))
	unpacked := func() int {
		return get[int](k, `select sum(pg_stat_get_xact_blocks_fetched(c.reltoastrelid))::int from pg_class c
			where c.oid in ('pawl.tasks'::regclass, 'pawl.steps'::regclass)`)
	}
	before := unpacked()
	k.Exec("select pawl.send_step_messages(array[($1, 'b', 0), ($1, 'c', 0)]::pawl.step_ref[])", task)
	require.Equal(k, before, unpacked(), "nothing is unpacked only to be left out")
	again := k.Claim(queue)
	require.Len(k, again, 2, "of four messages the first two")
	require.Greater(k, len(again[0].Dependencies), 100_000)
	require.Greater(k, unpacked(), before, "or the test would not see it")
}
