package sql_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func (k *kit) configure(queue string, settings object) object {
	k.Helper()
	return k.object("select pawl.configure_queue($1, $2, 'ann', 'tuning')", queue, settings)
}

// release opens the gates and tells how many steps came through.
func (k *kit) release() int {
	k.Helper()
	return int(k.object("select pawl.release_held(100, 'gate')")["released"].(float64))
}

// many submits one-step tasks of a template on gated_queue.
func (k *kit) many(n int) []uuid.UUID {
	k.Helper()
	k.Template("gate/one", nil, step("a", object{"queue": "gated_queue"}))
	tasks := make([]uuid.UUID, n)
	for i := range tasks {
		tasks[i] = k.Submit("gate/one")
	}
	return tasks
}

func TestQueueSettingsAreCheckedFieldByField(t *testing.T) {
	k := newKit(t)
	done := k.configure("gated_queue", object{"rate_limit": "100/sec", "burst": 5, "max_concurrency": 3, "retention": "1d12h", "paused": true})
	require.Equal(t, "configured", done["outcome"])
	want := object{"rate_limit": "100/sec", "burst": 5.0, "max_concurrency": 3.0, "retention": "1d12h", "paused": true}
	require.Equal(t, want, done["settings"])
	require.Equal(t, "unchanged", k.configure("gated_queue", object{"burst": 5})["outcome"])
	want["rate_limit"], want["paused"] = "30/min", false
	require.Equal(t, want, k.configure("gated_queue", object{"rate_limit": "30/min", "paused": nil})["settings"])
	none := k.configure("gated_queue", object{"rate_limit": nil, "burst": nil, "max_concurrency": nil, "retention": nil})["settings"]
	require.Equal(t, object{"rate_limit": nil, "burst": nil, "max_concurrency": nil, "retention": nil, "paused": false}, none)
	require.False(t, get[bool](k, "select gated from pawl.queues where queue = 'gated_queue'"))

	for setting, value := range map[string]any{"rate": "1/sec", "rate_limit": "100/day", "burst": 0, "max_concurrency": 1.5, "retention": "a week", "paused": "yes"} {
		refused := k.refused("PW024", "select pawl.configure_queue('gated_queue', $1, 'ann', 'r')", object{setting: value})
		require.NotEmpty(t, refused.Hint)
	}
	k.refused("PW024", "select pawl.configure_queue('gated_queue', '[]', 'ann', 'r')")
	k.refused("PW010", "select pawl.configure_queue('Bad', '{}', 'ann', 'r')")
	k.refused("PW010", "select pawl.configure_queue('orchestration_task_requests', '{\"paused\": true}', 'ann', 'r')")
	k.refused("PW010", "select pawl.pause_queue('unknown_queue', 'ann', 'r')")
	k.refused("PW023", "select pawl.pause_queue('gated_queue', '', 'r')")
}

func TestDurationsAreReadAsTheyAreWritten(t *testing.T) {
	k := newKit(t)
	for text, ms := range map[string]int64{"0": 0, "250ms": 250, "30s": 30000, "5m": 300000, "1h30m": 5400000, "7d": 604800000} {
		require.Equal(t, ms, get[int64](k, "select (extract(epoch from pawl.parse_duration($1)) * 1000)::bigint", text))
		require.Equal(t, text, get[string](k, "select pawl.show_duration(pawl.parse_duration($1))", text))
	}
	for _, text := range []string{"", "7", "7 days", "m5", "5m1h", "-1s", "4000d", "1.5h"} {
		k.refused("PW024", "select pawl.parse_duration($1)", text)
	}
}

func TestPausedQueueStartsNothingAndHandsOutNothing(t *testing.T) {
	k := newKit(t)
	tasks := k.many(1)
	k.object("select pawl.pause_queue('gated_queue', 'ann', 'broken')")
	require.Empty(t, k.Claim("gated_queue"), "what was sent before the pause stays too")
	tasks = append(tasks, k.many(2)...)
	k.Rest()
	require.Equal(t, "enqueuing_steps", k.State(tasks[1]))
	require.Nil(t, k.object("select pawl.release_held()")["next_ms"])

	k.object("select pawl.resume_queue('gated_queue', 'ann', 'mended')")
	k.Rest()
	require.Len(t, k.Claim("gated_queue"), 3)
	require.Empty(t, list[string](k, "select queue from pawl.held_steps"))
	require.Equal(t, []string{"pause_queue by ann: broken", "resume_queue by ann: mended"}, list[string](k,
		"select format('%s by %s: %s', command, actor, reason) from pawl.operations where queue = 'gated_queue' order by operation_id"))
	k.sound()
}

func TestConcurrencyLimitHoldsUntilAnAttemptEnds(t *testing.T) {
	k := newKit(t)
	tasks := k.many(1) // under way when the limit comes: it counts
	k.configure("gated_queue", object{"max_concurrency": 2})
	tasks = append(tasks, k.many(3)...)
	k.Rest()
	running := k.Claim("gated_queue")
	require.Len(t, running, 2)
	require.Zero(t, k.release())

	k.Finish("gated_queue", running[0])
	k.Rest() // the freed slot asks for a look by itself
	require.Len(t, k.Claim("gated_queue"), 1)

	// A failed attempt frees its slot for a first attempt; its retry waits behind those.
	require.True(t, k.Report("gated_queue", running[1], object{"status": "failed", "error": object{"type": "busy", "retry_after": 0}}))
	k.Rest()
	k.Tick()
	k.Rest()
	fresh := k.ClaimOne("gated_queue")
	require.Equal(t, 1, fresh.Attempt)
	k.object("select pawl.cancel_task($1, 'ann', 'r')", fresh.Task)
	require.Equal(t, 1, k.release(), "a cancelled attempt has no slot")
	require.Equal(t, 2, k.ClaimOne("gated_queue").Attempt)
	require.Equal(t, 2, get[int](k, "select count(*)::int from pawl.held_steps where released_at is not null"))
	require.Equal(t, "steps_in_process", k.State(running[1].Task))
	k.sound()
	require.Len(t, tasks, 4)
}

func TestRateLimitReleasesBurstThenRate(t *testing.T) {
	k := newKit(t)
	k.configure("gated_queue", object{"rate_limit": "10/sec", "burst": 4})
	k.many(30)
	clock := k.freeze()
	k.Rest()
	require.Len(t, k.Claim("gated_queue"), 4, "a burst")
	require.Zero(t, k.release())
	for range 3 {
		clock(100 * time.Millisecond)
		require.Equal(t, 1, k.release())
		require.Zero(t, k.release())
		require.Len(t, k.Claim("gated_queue"), 1)
	}
	require.InDelta(t, 100, k.object("select pawl.release_held()")["next_ms"], 1)

	// Nobody claims: never deeper than the burst, and when they come back there is one burst, not two.
	for range 20 {
		clock(100 * time.Millisecond)
		k.release()
	}
	clock(10 * time.Second)
	require.Len(t, k.Claim("gated_queue"), 4)
	require.Zero(t, k.release(), "no tokens for the time in which a burst was unclaimed")
	clock(100 * time.Millisecond)
	require.Equal(t, 1, k.release())
	k.sound()
}

// freeze stops the engine's clock and gives a function that moves it.
func (k *kit) freeze() func(time.Duration) {
	k.Helper()
	at := get[time.Time](k, "select pawl.now()")
	set := func(d time.Duration) {
		at = at.Add(d)
		k.Exec(fmt.Sprintf(`create or replace function pawl.now() returns timestamptz language sql volatile as 'select ''%s''::timestamptz'`,
			at.Format(time.RFC3339Nano)))
	}
	set(0)
	return set
}

// Whatever workers and gate do, and however seldom the gate looks, no window holds more starts than limit plus burst.
func TestNoWindowSeesMoreStartsThanLimitPlusBurst(t *testing.T) {
	for name, burst := range map[string]int{"burst 1": 1, "burst 3": 3, "burst 10": 10} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.configure("gated_queue", object{"rate_limit": "10/sec", "burst": burst})
			k.many(70)
			clock := k.freeze()
			var starts []int // in milliseconds
			seed := uint32(burst)
			at := 0
			for at < 5000 {
				seed = seed*1664525 + 1013904223
				pause := int(seed>>16) % 70
				clock(time.Duration(pause) * time.Millisecond)
				at += pause
				idle := at > 1500 && at < 3000 // workers are stopped, and the gate looks only now and then
				if seed%3 != 0 && !idle || idle && seed%11 == 0 {
					k.release()
				}
				if seed%2 == 0 && !idle {
					for range k.Claim("gated_queue") {
						starts = append(starts, at)
					}
				}
			}
			require.Greater(t, len(starts), 10)
			for i := range starts {
				for j := i; j < len(starts); j++ {
					limit := float64(burst) + float64(starts[j]-starts[i])/100
					require.LessOrEqual(t, float64(j-i+1), limit+1e-3, "from %d to %d ms", starts[i], starts[j])
				}
			}
		})
	}
}

func TestUngatedQueueReleasesWhatItHeld(t *testing.T) {
	k := newKit(t)
	k.configure("gated_queue", object{"rate_limit": "1/hour"})
	k.many(5)
	k.Rest()
	require.Len(t, k.Claim("gated_queue"), 1)
	k.configure("gated_queue", object{"rate_limit": nil})
	k.Rest()
	require.Len(t, k.Claim("gated_queue"), 4)
	require.Empty(t, list[string](k, "select queue from pawl.held_steps"))
	k.sound()
}

// One gate at a time counts a queue; another does not wait for it, and neither waits for a task.
func TestGatesOfTwoOrchestratorsDoNotWaitAndDoNotReleaseTwice(t *testing.T) {
	k := newCommittingKit(t)
	k.configure("gated_queue", object{"max_concurrency": 2})
	tasks := k.many(4)
	k.Exec("delete from pgmq.q_orchestration_step_enqueues")
	one, two := k.begin(), k.begin()
	require.Equal(t, 2, one.release())
	require.Zero(t, two.release(), "the first counts this queue")
	two.commit()
	one.commit()
	require.Zero(t, k.release())

	// A task that somebody holds is passed over.
	k.configure("gated_queue", object{"max_concurrency": 4})
	holder := k.begin()
	holder.Exec("select from pawl.tasks where task_id = $1 for no key update", tasks[2])
	require.Equal(t, 1, k.release())
	holder.commit()
	require.Equal(t, 1, k.release())
	require.Len(t, k.Claim("gated_queue"), 4)
	k.sound()
}
