package sql_test

import (
	"maps"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// badResults are ends of an attempt that nobody may hand in: as a report, or as a message of the attempt.
var badResults = map[string]string{
	"a vast number":        `{"status": "complete", "result": {"deep": [1, 1e2000]}}`,
	"a vast number's sign": `{"status": "failed", "error": {"type": "net", "at": -1e-2000}}`,
	"an unknown field":     `{"status": "complete", "reslut": 1}`,
	"an unknown status":    `{"status": "fine"}`,
	"an error of no shape": `{"status": "failed", "error": 7}`,
}

// What the queue refuses is refused at the door, whether the task is free, held by somebody, or the engine staged; the worker
// still has its attempt, and may say so otherwise.
func TestBadReportsAreRefusedAtTheDoor(t *testing.T) {
	for name, body := range badResults {
		t.Run(name, func(t *testing.T) {
			k := newCommittingKit(t)
			k.Template("shop/one", nil, step("a"))
			task := k.Submit("shop/one")
			d := k.ClaimOne(queue)
			bad := "select pawl.report_steps('work_queue', jsonb_build_array($1::text::jsonb || jsonb_build_object('msg_id', $2::bigint, 'read_ct', $3::int)), 'w')"
			k.refused("PW016", bad, body, d.ID, d.ReadCount)
			holder := k.begin()
			holder.Exec("select from pawl.tasks where task_id = $1 for update", task)
			k.refused("PW016", bad, body, d.ID, d.ReadCount)
			holder.commit()
			require.Equal(t, "in_progress", k.steps(task)["a"])
			k.Finish(queue, d)
			k.Rest()
			require.Equal(t, "complete", k.State(task))
		})
	}
}

// R8: as a message it is a dead letter, and its attempt ends in the same transaction, whether its task is free or held.
func TestBadResultsEndTheirAttempts(t *testing.T) {
	bodies := map[string]string{"a version as text": `{"v": "2", "status": "complete"}`, "no version": `{"v": null, "status": "complete"}`}
	maps.Copy(bodies, badResults)
	for name, body := range bodies {
		for _, mode := range []string{"direct", "held", "staged"} {
			t.Run(name+", "+mode, func(t *testing.T) {
				k := newCommittingKit(t)
				setting(k, "staged = "+strconv.FormatBool(mode == "staged"))
				k.Template("shop/one", nil, step("a"))
				task := k.Submit("shop/one")
				k.Rest()
				k.Exec("select from pgmq.pop('work_queue')")
				k.Exec(`select pgmq.send('orchestration_step_results', $1::text::jsonb || jsonb_build_object('task_id', $2::uuid, 'step', 'a', 'attempt', 1))`, body, task)
				holder := k.begin()
				if mode == "held" {
					holder.Exec("select from pawl.tasks where task_id = $1 for update", task)
				}
				k.Rest()
				require.Equal(t, 1, get[int](k, "select count(*)::int from pawl.dead_letters where task_id = $1 and step = 'a'", task))
				holder.commit()
				k.Expire("orchestration_step_results")
				k.Rest()
				require.Equal(t, "dead_letter", k.stepError(task, "a"))
				require.Equal(t, "error", k.State(task))
				require.Equal(t, 1, get[int](k, "select count(*)::int from pawl.dead_letters"))
				require.Empty(t, k.ids("orchestration_step_results"))
				k.sound()
			})
		}
	}
}

// Whatever a message is, and however much its text would be, it becomes a dead letter.
func TestNoMessageIsTooMuchForTheDeadLetters(t *testing.T) {
	vast := `(select jsonb_agg(1e131071::numeric) from generate_series(1, 9000))`
	for _, field := range []string{"task_id", "step", "attempt", "index", "status", "error", "result", "worker", "v", "other"} {
		t.Run(field, func(t *testing.T) {
			k := newKit(t)
			k.Template("shop/one", nil, step("a"))
			task := k.Submit("shop/one")
			k.Exec(`select pgmq.send('orchestration_step_results', jsonb_build_object('task_id', $1::uuid, 'step', 'a', 'attempt', 1,
				'status', 'failed') || jsonb_build_object($2::text, `+vast+`))`, task, field)
			k.Rest()
			require.Equal(t, 1, get[int](k, "select count(*)::int from pawl.dead_letters"))
			require.Empty(t, k.ids("orchestration_step_results"))
		})
	}
}
