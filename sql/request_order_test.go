package sql_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	engine "github.com/pawl-dev/pawl/test/kit"
)

func TestRequestsTakeTheirIdsInOneOrder(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("shop/one", nil, step("a"))
	low, high := object{"request_id": "01" + uuid.NewString()[2:]}, object{"request_id": "f1" + uuid.NewString()[2:]}
	first, batch, last := k.begin(), k.begin(), k.begin()
	batchPID, lastPID := batch.pid(), last.pid()
	highFirst, lowLater := k.Send("shop/one", high), k.Send("shop/one", low)
	lowAgain, highAgain := k.Send("shop/one", low), k.Send("shop/one", high)
	first.Exec(engine.ProcessRequests, []int64{highAgain})
	waits := batch.start(engine.ProcessRequests, []int64{highFirst, lowLater})
	k.untilWaiting(batchPID)
	also := last.start(engine.ProcessRequests, []int64{lowAgain})
	k.untilWaiting(lastPID) // for the batch, which has the low id and waits for the high one
	first.commit()
	batch.ended(waits)
	batch.commit()
	last.ended(also)
	last.commit()
	require.Equal(t, 2, get[int](k, "select count(*) from pawl.tasks"))
	require.Equal(t, 2, get[int](k, "select count(*) from pawl.absorbed where reason = 'duplicate request'"))
	k.sound()
}
