package sql_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A transaction held open keeps dead messages in every reader's way. A session that noticed begins its reads behind them,
// and still finds, a little later, what becomes visible among them.
func TestAReadPassesTheDeadMessagesThatAnOpenTransactionKeeps(t *testing.T) {
	k := newCommittingKit(t)
	conn, err := k.pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	session := kitOn(t, conn, k.pool)
	const queue = "orchestration_step_enqueues"
	send := func() int64 { return get[int64](k, "select * from pgmq.send($1, '{}')", queue) }
	read := func() []int64 {
		return list[int64](session, "select msg_id from unnest(pawl_queues.read_orchestration_step_enqueues(1, 60000, 1000000))")
	}
	early := send()
	require.Equal(t, []int64{early}, read(), "leased")

	open := k.begin()
	_, err = open.DB.Exec(t.Context(), "set transaction isolation level repeatable read")
	require.NoError(t, err)
	require.Equal(t, 1, get[int](open, "select 1 from pawl.engine_settings"), "its snapshot keeps what dies from now on")
	floor := func() int64 {
		return get[int64](session, "select coalesce((nullif(current_setting('pawl.floor_'||$1, true), '')::jsonb->>'floor')::bigint, 0)", queue)
	}
	for rounds := 0; floor() <= early; rounds++ { // as many as it takes for a read to be slow
		require.Less(t, rounds, 40, "4,000,000 dead messages do not make a read slow")
		_, err = k.DB.Exec(t.Context(), "insert into pgmq.q_orchestration_step_enqueues (vt, message) select clock_timestamp(), '{}' from generate_series(1, 100000)")
		require.NoError(t, err)
		_, err = k.DB.Exec(t.Context(), "delete from pgmq.q_orchestration_step_enqueues where msg_id > $1", early)
		require.NoError(t, err)
		require.Empty(t, read())
	}
	late := send()
	_, err = k.DB.Exec(t.Context(), "select from pgmq.set_vt($1::text, $2::bigint, 0)", queue, early) // its lease is over
	require.NoError(t, err)
	require.Equal(t, []int64{late}, read(), "the read began behind what is dead")
	require.Eventually(t, func() bool { got := read(); return len(got) == 1 && got[0] == early }, time.Minute, 20*time.Millisecond,
		"a full look finds what became visible below")
}
