package worker

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/internal/sqlstate"
)

// beatEvery is how often a lane looks for leases to extend.
const beatEvery = 100 * time.Millisecond

// beat extends the leases of what the lane holds, each when a third of it is over, until the worker's life ends.
func (l *lane) beat() {
	defer close(l.beaten)
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-l.w.life.Done():
			return
		case <-ticker.C:
		}
		if back := l.takeWaiting(time.Now().Add(-maxWait)); len(back) > 0 {
			l.aside.Go(func() { l.giveBack(back) }) // no lease waits for that
		}
		l.reportApart(time.Now())
		for length, due := range l.dueLeases(time.Now()) {
			l.extend(due, length)
		}
	}
}

// dueLeases returns what is to be extended, by length of lease.
func (l *lane) dueLeases(now time.Time) map[time.Duration][]*delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	var due map[time.Duration][]*delivery
	for _, d := range l.held {
		if d.beatAt.IsZero() || now.Before(d.beatAt) {
			continue
		}
		if due == nil {
			due = make(map[time.Duration][]*delivery)
		}
		due[d.lease()] = append(due[d.lease()], d)
	}
	return due
}

// extend makes one call for leases of one length, and ends the contexts of handlers whose work is no longer wanted.
func (l *lane) extend(due []*delivery, length time.Duration) {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(l.w.life, max(length/3, time.Second))
	answers, err := extendLeases(ctx, l.w.beats, l, leases(due), length)
	cancel()
	l.w.metrics.beat(l.queue, err == nil)
	if len(due) > 1 && sqlstate.OfStatement(err) == sqlstate.LockNotAvailable {
		// One of them is locked, by a transaction that completes its step or by whatever such a one left behind.
		for i := range due {
			l.extend(due[i:i+1], length)
		}
		return
	}
	status := make(map[int64]string, len(answers))
	for _, answer := range answers {
		status[answer.MsgID] = answer.Status
	}
	if err != nil && l.w.life.Err() == nil {
		l.log.Warn("extending leases: it failed, trying again", "count", len(due), "error", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range due {
		if l.held[d.MsgID] != d {
			continue // reported meanwhile
		}
		switch {
		case err != nil && time.Since(d.leaseFrom) < length:
			d.beatAt = time.Now().Add(min(length/10, time.Second))
		case err == nil && status[d.MsgID] == "extended":
			d.leaseFrom, d.beatAt = asked, asked.Add(length/3)
		case d.ended || d.inTx:
			// A report or a transaction has the message locked, or gone: it tells. An ended one keeps trying.
			d.beatAt = time.Now().Add(min(length/10, time.Second))
		case err == nil && status[d.MsgID] == "cancelled":
			// The lease goes on until the handler has returned: its report takes the message away.
			d.leaseFrom, d.beatAt = asked, asked.Add(length/3)
			d.cancel(ErrCancelled)
		default:
			d.beatAt = time.Time{}
			d.cancel(ErrLeaseLost)
			l.w.metrics.lost(l.queue)
			l.log.Warn("extending lease: it is lost, the handler is told to stop", "task_id", d.TaskID, "step", d.Step, "attempt", d.Attempt, "delivery", d.Delivery)
		}
	}
}
