package sql_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Reading a message only to put it back is no delivery: nobody worked it. What was counted before stays counted.
func TestWhatIsPutBackWasNotDelivered(t *testing.T) {
	k := newKit(t)
	for q, function := range map[string]string{"orchestration_step_results": "apply_step_results",
		"orchestration_step_enqueues": "process_step_enqueues", "orchestration_task_finalizations": "finalize_tasks"} {
		id := get[int64](k, "select pgmq.send($1, '{\"v\": 2}')", q)
		deliveries := "select read_ct from pgmq.q_" + q + " where msg_id = $1"
		k.Exec("update pgmq.q_"+q+" set read_ct = 2 where msg_id = $1", id)
		for range 12 {
			k.Exec("update pgmq.q_"+q+" set vt = clock_timestamp() where msg_id = $1", id)
			k.Exec(fmt.Sprintf("select pawl.%s(array(select r.msg_id from unnest(pawl_queues.read_%s(1, 30000, 1000)) r), 'kit')", function, q))
			require.Equal(t, 2, get[int](k, deliveries, id), q)
		}
	}
}

// A request that somebody else reads meanwhile is theirs, and is counted for them.
func TestARequestIsPutBackByItsReaderAlone(t *testing.T) {
	k := newKit(t)
	const q = "pgmq.q_orchestration_task_requests"
	mine, theirs := get[int64](k, "select pgmq.send('orchestration_task_requests', '{}')"), get[int64](k, "select pgmq.send('orchestration_task_requests', '{}')")
	k.Exec("update " + q + " set read_ct = 3, vt = clock_timestamp()")
	k.Exec("update "+q+" set read_ct = 4 where msg_id = $1", theirs)
	for range 2 { // R9: repeated, it changes nothing more
		k.Exec("select pawl.put_back_requests($1, array[3, 3])", []int64{mine, theirs})
		require.Equal(t, []int{2, 4}, list[int](k, "select read_ct from "+q+" order by msg_id"))
		require.Equal(t, []int64{mine}, list[int64](k, "select msg_id from "+q+" where vt > clock_timestamp() + interval '50 s'"))
	}
}

// A message that somebody has locked for a moment, as a read with an older snapshot does, is of its version all the same.
func TestALockedMessageOfANewerVersionIsPutBack(t *testing.T) {
	for q, function := range map[string]string{"orchestration_step_results": "apply_step_results",
		"orchestration_step_enqueues": "process_step_enqueues", "orchestration_task_finalizations": "finalize_tasks"} {
		t.Run(function, func(t *testing.T) {
			k := newCommittingKit(t)
			id := get[int64](k, "select pgmq.send($1, '{\"v\": 2}')", q)
			holder, work := k.begin(), k.begin()
			pid := work.pid()
			holder.Exec("select from pgmq.q_"+q+" where msg_id = $1 for update", id)
			done := work.start(fmt.Sprintf("select pawl.%s(array[$1::bigint], 'kit')", function), id)
			k.untilWaiting(pid)
			holder.commit()
			k.ended(done)
			work.commit()
			require.Equal(t, []int64{id}, k.ids(q))
			require.Zero(t, get[int](k, "select count(*)::int from pawl.dead_letters"))
		})
	}
}
