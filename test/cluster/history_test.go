package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/client"
)

func TestOutcomesOfCalls(t *testing.T) {
	t.Parallel()
	require.Equal(t, OK, outcome(nil))
	require.Equal(t, Failed, outcome(&client.InvalidRequestError{}))
	require.Equal(t, Failed, outcome(&client.CommandError{Code: "PW020"}))
	require.Equal(t, Unknown, outcome(errors.New("the connection is gone")))
	require.Equal(t, Unknown, outcome(context.DeadlineExceeded))
}

// A checker that cannot fail is worthless.
func TestTheHistoryIsCompared(t *testing.T) {
	t.Parallel()
	id, other := uuid.New(), uuid.New()
	none := map[uuid.UUID]bool{}
	for _, c := range []struct {
		asked Asked
		tasks map[uuid.UUID]string
		wrong string
	}{
		{Asked{Outcome: OK}, map[uuid.UUID]string{id: "complete"}, ""},
		{Asked{Outcome: Unknown}, nil, ""},
		{Asked{Outcome: Unknown}, map[uuid.UUID]string{id: "complete"}, ""},
		{Asked{Outcome: OK, Cancel: Unknown}, map[uuid.UUID]string{id: "cancelled"}, ""},
		{Asked{Outcome: OK}, nil, "is lost"},
		{Asked{Outcome: OK, Invalid: true}, nil, "was not answered"},
		{Asked{Outcome: Failed}, map[uuid.UUID]string{id: "complete"}, "was refused and has a task"},
		{Asked{Outcome: OK, Cancel: OK, Cancelled: true}, map[uuid.UUID]string{id: "complete"}, "was cancelled, and is complete"},
		{Asked{Outcome: OK}, map[uuid.UUID]string{id: "cancelled"}, "nobody asked for it"},
		{Asked{Outcome: OK}, map[uuid.UUID]string{id: "error"}, "nobody told it to"},
		{Asked{Outcome: OK, Fail: true}, map[uuid.UUID]string{id: "complete"}, "was told to fail"},
		{Asked{Outcome: OK}, map[uuid.UUID]string{id: "steps_in_process"}, "is steps_in_process"},
		{Asked{Outcome: OK, state: "complete"}, map[uuid.UUID]string{id: "error"}, "nobody told it to"},
		{Asked{Outcome: OK, Cancel: OK, state: "complete"}, map[uuid.UUID]string{id: "cancelled"}, "was complete, and is cancelled"},
		{Asked{Outcome: OK}, map[uuid.UUID]string{id: "complete", other: "complete"}, "nobody asked for task"},
	} {
		h := NewHistory()
		c.asked.ID = id
		h.ask(c.asked)
		found := h.compare(facts{tasks: c.tasks, absorbed: none, dead: none})
		if c.wrong == "" {
			require.Empty(t, found)
			continue
		}
		require.Len(t, found, 1)
		require.Contains(t, found[0], c.wrong)
	}

	h := NewHistory()
	h.ask(Asked{ID: id})
	h.read(client.Task{ID: id, State: "complete", FinalizedAt: time.Now()})
	h.read(client.Task{ID: id, State: "steps_in_process"})
	require.Len(t, h.compare(facts{tasks: map[uuid.UUID]string{id: "complete"}}), 1)
}
