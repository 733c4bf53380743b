package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A read whose snapshot is older than a claim locks the claimed message for a moment without taking it. Whoever holds the
// message must wait for that reader, not be told that it was late: nobody else has it.
func TestAHolderIsNotLateBecauseAReaderHasTheMessageLocked(t *testing.T) {
	for name, sql := range map[string]string{
		"report": `select pawl.report_steps('work_queue', jsonb_build_array(jsonb_build_object('msg_id', $1::bigint, 'read_ct', 1,
			'status', 'complete')), 'w')::jsonb -> 0 -> 'accepted' = 'true'`,
		"extend":  `select pawl.extend_leases('work_queue', jsonb_build_array(jsonb_build_object('msg_id', $1::bigint, 'read_ct', 1)))::jsonb -> 0 ->> 'status' = 'extended'`,
		"release": `select pawl.release_steps('work_queue', jsonb_build_array(jsonb_build_object('msg_id', $1::bigint, 'read_ct', 1)))::jsonb -> 0 -> 'released' = 'true'`,
	} {
		t.Run(name, func(t *testing.T) {
			k := newCommittingKit(t)
			k.Template("shop/one", nil, step("a"))
			k.Submit("shop/one")
			d := k.ClaimOne(queue)
			reader, holder := k.begin(), k.begin()
			reader.Exec("select from pgmq.q_work_queue where msg_id = $1 for update", d.ID)
			pid := holder.pid()
			done := make(chan bool, 1)
			failed := make(chan error, 1)
			go func() {
				rows, err := holder.DB.Query(holder.Context(), sql, d.ID)
				if err != nil {
					failed <- err
					return
				}
				defer rows.Close()
				var good bool
				rows.Next()
				if err := rows.Scan(&good); err != nil {
					failed <- err
					return
				}
				done <- good
			}()
			k.untilWaiting(pid)
			reader.commit()
			select {
			case good := <-done:
				require.True(k, good)
			case err := <-failed:
				require.NoError(k, err)
			}
		})
	}
}
