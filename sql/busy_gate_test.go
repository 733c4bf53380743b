package sql_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A step that waits for somebody else's claim is put off again and again: it has taken its token, and takes no place meanwhile.
func TestABusyClaimDoesNotCloseTheGateOfItsQueue(t *testing.T) {
	k := newKit(t)
	invoices(k, nil)
	k.Template("billing/wait", object{}, step("pay", object{"claim": object{"default": payClaim(object{"on_busy": "wait"})}}))
	k.pay("A-1", "admin")
	k.ClaimOne("work_queue")
	k.configure("work_queue", object{"rate_limit": "10/sec", "burst": 1})
	clock := k.freeze()
	k.Submit("billing/wait", object{"input": object{"invoice": "A-1"}})
	k.Rest()
	waits := func() {
		require.Empty(t, k.Claim("work_queue"), "it waits")
		k.Exec("update pgmq.q_work_queue set vt = clock_timestamp() + interval '1 h' where read_ct = 0") // however slow the test is
	}
	waits()
	free := k.Submit("billing/wait", object{"input": object{"invoice": "A-2"}})
	k.release() // the gate sees that its token is gone
	clock(100 * time.Millisecond)
	k.release()
	require.Equal(t, free, k.ClaimOne("work_queue").Task)

	// What is put off takes no second token when it is tried again.
	for range 3 {
		k.Exec("update pgmq.q_work_queue set vt = clock_timestamp() where read_ct = 0")
		k.release()
		waits()
		k.release()
	}
	last := k.Submit("billing/wait", object{"input": object{"invoice": "A-2"}})
	k.release()
	clock(100 * time.Millisecond)
	k.release()
	require.Equal(t, "enqueued", k.steps(last)["pay"])
}
