package sql_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Who worked longer than a cancelled task was kept is late, as anybody is whose task has ended: nobody has to look at a dead letter.
func TestAReportOfATaskThatWasSweptIsLate(t *testing.T) {
	for _, way := range []string{"direct = true, staged = false", "direct = false, staged = false", "direct = true, staged = true"} {
		t.Run(way, func(t *testing.T) {
			k := newKit(t)
			setting(k, way)
			k.Template("shop/one", object{"retention_ms": 0}, step("a"))
			task := k.Submit("shop/one")
			other := k.Submit("shop/one")
			k.Rest()
			claimed := k.Claim(queue)
			require.Len(t, claimed, 2)
			k.Exec("select pawl.cancel_task($1, 'ann', 'r')", task)
			k.Later(time.Hour)
			require.Equal(t, 1, k.sweep("tasks"))
			reports := []object{}
			for _, d := range claimed {
				reports = append(reports, object{"msg_id": d.ID, "read_ct": d.ReadCount, "status": "complete", "result": 1})
			}
			for _, answer := range get[[]object](k, "select pawl.report_steps('work_queue', $1, 'w')", reports) {
				require.Equal(t, float64(claimed[1].ID) == answer["msg_id"], answer["accepted"], "%v", answer)
			}
			k.Rest()
			require.Equal(t, "complete", k.State(other))
			require.Zero(t, get[int](k, "select count(*) from pawl.dead_letters"))
			require.Equal(t, []string{"a 1 task is gone"}, list[string](k, "select concat_ws(' ', step, attempt, reason) from pawl.absorbed where task_id = $1", task))
		})
	}
}
