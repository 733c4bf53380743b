package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A step that raises whenever it is released does not keep those behind it: it stands behind them.
func TestAStepThatRaisesDoesNotStopItsGate(t *testing.T) {
	for name, limit := range map[string]object{
		"slot": {"max_concurrency": 1}, "tokens": {"rate_limit": "10/hour", "burst": 10}, "none": {"paused": true},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.configure("gated_queue", limit)
			k.Exec("delete from pgmq.q_orchestration_step_enqueues")
			tasks := k.many(3)
			k.poison(tasks[0])
			if name == "none" {
				k.configure("gated_queue", object{"paused": false})
			}
			for i := 1; i < 3; {
				opened := k.object("select pawl.release_held(100, 'gate')")
				require.NotZero(t, opened["released"])
				for _, d := range k.Claim("gated_queue") {
					k.Finish("gated_queue", d)
					require.NotEqual(t, tasks[0], d.Task)
					i++
				}
			}
			require.Equal(t, []string{"complete", "complete"}, []string{k.State(tasks[1]), k.State(tasks[2])})
			opened := k.object("select pawl.release_held(100, 'gate')")
			require.Equal(t, []any{0.0, 1000.0}, []any{opened["released"], opened["next_ms"]})
			raised := opened["raised"].(object)
			require.Equal(t, []any{"gated_queue", "P0001", "poisoned"}, []any{raised["queue"], raised["sqlstate"], raised["message"]})
			k.Exec("drop trigger poisoned on pawl.steps")
			k.Release()
			require.Equal(t, tasks[0], k.ClaimOne("gated_queue").Task)
			k.sound()
		})
	}
}
