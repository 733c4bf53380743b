package actors

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/internal/store"
)

// idlePoll finds what no notification told of: one query for all queues, seldom while the listener is proven.
type idlePoll struct {
	*environment
	doors map[string][]*door // by queue
}

func (p *idlePoll) run(ctx context.Context) (time.Duration, error) {
	next := p.config.IdlePoll
	if p.config.Listener != nil && p.config.Listener.Proven() {
		next = p.config.ProvenPoll
	}
	began := time.Now()
	queues, err := store.Waiting(ctx, p.config.Work)
	for _, queue := range queues {
		for _, door := range p.doors[queue] {
			door.wake()
		}
	}
	return rest(began, 10, next), err // dead messages that an old transaction keeps make it slow
}
