package client_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/messaging"
)

// A task that comes into being while it is asked for is not there, or there with its steps and its history.
func TestATaskIsNeverThereWithoutItsStepsAndHistory(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	k.apply(free)
	for name, count := range map[string]func(context.Context, uuid.UUID) (int, error){
		"steps": func(ctx context.Context, id uuid.UUID) (int, error) {
			steps, err := k.client.Steps(ctx, id)
			return len(steps), err
		},
		"history": func(ctx context.Context, id uuid.UUID) (int, error) {
			history, err := k.client.History(ctx, id)
			return len(history), err
		},
	} {
		for range 100 {
			request := client.Request{ID: messaging.NewRequestID(), Template: "shop/free", Input: sum{1, 2}}
			submitted := make(chan error, 1)
			go func() {
				_, err := k.client.Submit(k.ctx, request)
				submitted <- err
			}()
			for {
				n, err := count(k.ctx, request.ID)
				if err == nil {
					require.NotZero(t, n, name)
					break
				}
				require.ErrorIs(t, err, client.ErrNotFound)
			}
			require.NoError(t, <-submitted)
		}
	}
}
