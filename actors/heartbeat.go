package actors

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/internal/store"
)

// heartbeat says that this process is alive, on a pool of its own: work that waits for locks must not make it look dead.
type heartbeat struct{ *environment }

func (h *heartbeat) run(ctx context.Context) (time.Duration, error) {
	return h.config.HeartbeatEvery, store.BeatProcessor(ctx, h.config.Heartbeats, h.config.Processor)
}
