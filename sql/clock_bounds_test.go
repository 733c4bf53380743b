package sql_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// fired looks at the clock once: how many tasks it fired, and whether there are more.
func (k *kit) fired() (int, bool) {
	k.Helper()
	rang := k.Tick()
	return int(rang["fired"].(float64)), rang["more"].(bool)
}

// inARow makes n steps in a row.
func inARow(n int, fields ...object) []object {
	steps := []object{step("s0", fields...)}
	for i := 1; i < n; i++ {
		steps = append(steps, step(fmt.Sprintf("s%d: s%d", i, i-1), fields...))
	}
	return steps
}

// R13: one look at the clock takes as many tasks as their steps fit its bound, whatever makes them due, but one at least.
func TestALookAtTheClockIsBoundedInSteps(t *testing.T) {
	ways := map[string]func(k *kit, steps int) (end string){
		"start": func(k *kit, steps int) string {
			k.Template("clock/chain", nil, inARow(steps)...)
			for range 6 {
				k.Submit("clock/chain", object{"run_at": time.Now().Add(30 * time.Minute).Format(time.RFC3339)})
			}
			return "started_at is not null"
		},
		"task's timeout": func(k *kit, steps int) string {
			k.Template("clock/chain", object{"timeout_ms": 60_000}, inARow(steps)...)
			for range 6 {
				k.Submit("clock/chain")
			}
			return "state = 'timed_out'"
		},
		"attempt's timeout": func(k *kit, steps int) string {
			k.Template("clock/chain", nil, inARow(steps, object{"timeout_ms": 60_000, "retry": object{"max_attempts": 1}})...)
			for range 6 {
				k.Submit("clock/chain")
			}
			k.Claim(queue)
			return "state = 'error'"
		},
		"retry": func(k *kit, steps int) string {
			k.Template("clock/chain", nil, inARow(steps)...)
			for range 6 {
				k.Submit("clock/chain")
			}
			for _, d := range k.Claim(queue) {
				require.True(k, k.Report(queue, d, object{"status": "failed", "error": object{"type": "net"}}))
			}
			return "active_count = 1"
		},
	}
	for name, prepare := range ways {
		for steps, atOnce := range map[int]int{4: 2, 12: 1} {
			t.Run(fmt.Sprintf("%s, %d steps", name, steps), func(t *testing.T) {
				k := newKit(t)
				end := prepare(k, steps)
				setting(k, "max_steps_per_transaction = 10")
				k.Later(time.Hour)
				for done := atOnce; done <= 6; done += atOnce {
					fired, more := k.fired()
					require.Equal(t, atOnce, fired)
					require.Equal(t, done < 6, more)
					require.Equal(t, done, get[int](k, "select count(*)::int from pawl.tasks where "+end))
				}
				fired, _ := k.fired()
				require.Zero(t, fired)
				k.sound()
			})
		}
	}
}

// One task alone may have more attempts due than fit: the rest are fired by the next look.
func TestTimeoutsOfOneTaskAreFiredInPieces(t *testing.T) {
	k := newKit(t)
	limit := object{"timeout_ms": 60_000, "retry": object{"max_attempts": 1}}
	k.Template("clock/wide", nil, step("a", limit), step("b", limit), step("c", limit), step("d", limit), step("e", limit))
	task := k.Submit("clock/wide")
	require.Len(t, k.Claim(queue), 5)
	setting(k, "max_steps_per_transaction = 2")
	k.Later(time.Hour)
	for _, want := range []int{2, 4, 5} {
		k.Tick()
		require.Equal(t, want, get[int](k, "select count(*)::int from pawl.steps where state = 'error'"))
	}
	require.Equal(t, "error", k.State(task))
	k.sound()
}

// What somebody holds leaves its place in the look to others: a task, or the claim of one that somebody reports.
func TestAHeldTaskDoesNotStopTheClock(t *testing.T) {
	for _, held := range []string{
		"select from pawl.tasks where task_id = $1 for no key update",
		"select from pawl.entity_claims where task_id = $1 for update",
	} {
		t.Run(held, func(t *testing.T) {
			k := newCommittingKit(t)
			setting(k, "max_steps_per_transaction = 1")
			k.Template("clock/late", object{"timeout_ms": 60_000}, step("a"))
			tasks := []uuid.UUID{k.Submit("clock/late"), k.Submit("clock/late"), k.Submit("clock/late")}
			k.Exec(`insert into pawl.entity_claims (entity, entity_id, task_id, step, attempt, version, revert_to, on_success, claimed_at, lease_until)
				values ('invoice', 'I-1', $1, 'a', 1, 1, 'sent', 'paid', now(), now() + interval '1 day')`, tasks[0])
			k.Later(time.Hour)
			holder := k.begin()
			holder.Exec(held, tasks[0])
			for _, more := range []bool{true, true, false} {
				clock := k.begin()
				clock.Exec("set local lock_timeout = '10s'") // it waits for nobody
				fired, is := clock.fired()
				clock.commit()
				require.Equal(t, more, fired == 1)
				require.Equal(t, more, is)
			}
			require.Equal(t, []string{"timed_out", "timed_out"}, []string{k.State(tasks[1]), k.State(tasks[2])})
			holder.commit()
			fired, _ := k.fired()
			require.Equal(t, 1, fired)
			require.Equal(t, "timed_out", k.State(tasks[0]))
		})
	}
}

// A task that raises is put off by itself; all others fire, and nobody looks at it again at once.
func TestATaskThatRaisesDoesNotStopTheClock(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("clock/gone", nil, step("a", object{"queue": "gone_queue"}))
	k.Template("clock/good", nil, step("a"))
	k.Template("clock/late", object{"timeout_ms": 60_000}, step("a"))
	soon := object{"run_at": time.Now().Add(30 * time.Minute).Format(time.RFC3339)}
	gone := k.Submit("clock/gone", soon)
	good := k.Submit("clock/good", soon)
	late := k.Submit("clock/late")
	back := k.Submit("clock/gone")
	require.True(t, k.Report("gone_queue", k.ClaimOne("gone_queue"), object{"status": "failed", "error": object{"type": "net"}}))
	k.Exec("drop table pgmq.q_gone_queue")
	at := time.Now().Add(time.Hour)
	k.Later(time.Hour)

	rang := k.Tick()
	require.InDelta(t, 2, rang["fired"], 0)
	require.InDelta(t, 2, rang["put_off"], 0)
	require.Contains(t, rang["raised"].(object)["message"], "gone_queue")
	require.Equal(t, false, rang["more"])
	require.Equal(t, []string{"pending", "steps_in_process", "timed_out", "waiting_for_retry"},
		[]string{k.State(gone), k.State(good), k.State(late), k.State(back)})
	fired, more := k.fired()
	require.Zero(t, fired)
	require.False(t, more)
	require.Equal(t, 2, get[int](k, `select (select count(*) from pawl.tasks where due_at > $1)::int
		+ (select count(*) from pawl.steps where due_at > $1)::int`, at), "put off")

	k.Exec("select pgmq.create('gone_queue')")
	k.Later(2 * time.Hour)
	rang = k.Tick()
	require.InDelta(t, 2, rang["fired"], 0)
	require.InDelta(t, 0, rang["put_off"], 0)
	require.Equal(t, []string{"steps_in_process", "steps_in_process"}, []string{k.State(gone), k.State(back)})
	k.sound()
}

// Tasks that raise count as work, too: a look at many of them ends.
func TestTasksThatRaiseAreBoundedInSteps(t *testing.T) {
	k := newKit(t)
	k.Template("clock/gone", nil, inARow(4, object{"queue": "gone_queue"})...)
	for range 6 {
		k.Submit("clock/gone", object{"run_at": time.Now().Add(30 * time.Minute).Format(time.RFC3339)})
	}
	k.Exec("drop table pgmq.q_gone_queue")
	setting(k, "max_steps_per_transaction = 10")
	k.Later(time.Hour)
	for _, more := range []bool{true, true, false} {
		rang := k.Tick()
		require.InDelta(t, 2, rang["put_off"], 0)
		require.Equal(t, more, rang["more"])
	}
}

// What says nothing about one task is raised as ever: the look is repeated.
func TestTheClockRaisesWhatIsNoTasksFault(t *testing.T) {
	for _, code := range []string{"57014", "55P03", "40P01", "53200"} {
		t.Run(code, func(t *testing.T) {
			k := newKit(t)
			k.Template("clock/late", object{"timeout_ms": 60_000}, step("a"))
			task := k.Submit("clock/late")
			k.Later(time.Hour)
			k.failing()
			k.fails(1, code)
			k.refused(code, "select pawl.fire_due(10, 'p')")
			k.fails(0, code)
			require.Equal(t, "steps_in_process", k.State(task))
			fired, _ := k.fired()
			require.Equal(t, 1, fired)
		})
	}
}
