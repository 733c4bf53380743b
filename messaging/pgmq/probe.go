package pgmq

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// lastLook is how long a session reads on after a probe's deadline, before it is
// called deaf: the process may have been suspended, and the notification be
// waiting in the socket.
const lastLook = 250 * time.Millisecond

// probe sends a session's notifications to itself, one at a time, and judges
// them. All but the sending happens on the session's goroutine.
type probe struct {
	listener *Listener
	next     time.Time // when the next one is to be sent
	deadline time.Time // when the one that was sent must have arrived; zero: none is awaited
	looked   bool      // the last look has begun
	heardAny bool      // one has arrived on this session

	sending sync.WaitGroup
	cancel  context.CancelFunc
	sent    chan error // room for one: how the sending ended
	busy    bool       // a sending has not been taken from sent yet
	early   bool       // it arrived before its sending was known to have ended
}

func newProbe(l *Listener) *probe {
	return &probe{listener: l, cancel: func() {}, sent: make(chan error, 1)}
}

// step does what is due and returns how long the session may wait until the next
// step.
func (p *probe) step(ctx context.Context, now time.Time) (wait time.Duration, err error) {
	select {
	case err := <-p.sent:
		p.busy = false
		p.afterSending(now, err)
	default:
	}
	switch {
	case p.busy: // the sending has a deadline of its own, and pokes when it ends
		return p.listener.config.ProbeTimeout, nil
	case !p.deadline.IsZero() && !now.Before(p.deadline):
		if p.looked {
			return 0, errDeaf
		}
		p.looked, p.deadline = true, now.Add(lastLook)
		return lastLook, nil
	case !p.deadline.IsZero():
		return p.deadline.Sub(now), nil
	case now.Before(p.next):
		return p.next.Sub(now), nil
	}
	p.send(ctx)
	return p.listener.config.ProbeTimeout, nil
}

func (p *probe) send(ctx context.Context) {
	ctx, p.cancel = context.WithTimeout(ctx, p.listener.config.ProbeTimeout)
	p.busy, p.early = true, false
	p.sending.Go(func() {
		// Without arguments, so that it is one simple query in whatever mode the
		// connection is.
		_, err := p.listener.config.Probe.Exec(ctx, "notify "+pgx.Identifier{p.listener.probeChannel}.Sanitize())
		p.sent <- err
		p.listener.poke()
	})
}

// afterSending begins to await what was sent. What could not be sent leaves the
// connection unproven, and is tried again at the next time.
func (p *probe) afterSending(now time.Time, err error) {
	p.cancel()
	p.next = now.Add(p.listener.config.ProbeEvery)
	switch {
	case err != nil:
		p.listener.prove(unknown, fmt.Errorf("sending a notification to prove that they arrive: %w", err))
	case !p.early:
		p.deadline, p.looked = now.Add(p.listener.config.ProbeTimeout), false
	}
}

// heard notes that a probe arrived.
func (p *probe) heard() {
	p.heardAny = true
	p.early = p.busy
	p.deadline = time.Time{}
}

// stop ends a sending that is under way and waits for it.
func (p *probe) stop() {
	p.cancel()
	p.sending.Wait()
}
