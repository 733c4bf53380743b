package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/nearest"
	"github.com/pawl-dev/pawl/internal/sqlstate"
	"github.com/pawl-dev/pawl/messaging"
)

// unknownDeliveries is how often a step whose handler this worker does not have is put back for other workers, before
// it is reported as failed.
const unknownDeliveries = 5

// begin starts the handlers of what was claimed. asked is when the claim was sent: the leases began after it.
func (l *lane) begin(claimed []*delivery, asked time.Time) {
	var back, foreign []*delivery
	now := time.Now()
	for _, d := range claimed {
		d.lane = l
		handle := l.w.handlers[d.Handler]
		l.mu.Lock()
		if before := l.held[d.MsgID]; before != nil { // its lease was over, and it came back to us
			before.cancel(ErrLeaseLost)
		}
		switch {
		case l.stopping:
			back = append(back, d)
		case handle == nil && d.Delivery < unknownDeliveries:
			foreign = append(foreign, d)
		case handle == nil:
			l.held[d.MsgID] = d
			d.ended, d.cancel = true, func(error) {}
			l.ended = append(l.ended, l.unknownHandler(d))
		default:
			d.handle = handle
			d.ctx, d.cancel = context.WithCancelCause(l.w.work)
			d.claimedAt, d.leaseFrom, d.beatAt = now, asked, asked.Add(d.lease()/3)
			l.held[d.MsgID] = d
			if l.running >= l.slots {
				l.waiting = append(l.waiting, d)
				break
			}
			l.running++
			go l.work(d)
		}
		l.mu.Unlock()
	}
	l.giveBack(back)
	l.putBack(foreign)
}

func (l *lane) unknownHandler(d *delivery) *outcome {
	return &outcome{delivery: d, report: report{MsgID: d.MsgID, ReadCount: d.ReadCount, Status: messaging.Failed,
		Error: &messaging.StepError{Type: typeUnknownHandler, Retryable: true, Message: clean(fmt.Sprintf(
			"no worker on queue %q took handler %q in %d deliveries; this one has %s%s", l.queue, d.Handler, d.Delivery,
			strings.Join(l.w.handlerNames(), ", "), nearest.Suggestion(d.Handler, l.w.handlerNames())), maxErrorText)}}}
}

// giveBack makes steps visible to other workers at once. One that is locked or refused holds up no other.
func (l *lane) giveBack(back []*delivery) {
	if len(back) == 0 {
		return
	}
	err := releaseSteps(l.w.life, l.w.beats, l, leases(back)) // handlers may hold all connections of the pool
	if err == nil {
		return
	}
	if code, refused := isRefused(err); len(back) > 1 && (refused || sqlstate.Waited(code)) {
		for i := range back {
			l.giveBack(back[i : i+1])
		}
		return
	}
	l.log.Warn("giving steps back: it failed, they come back when their leases end", "count", len(back), "error", err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept += len(back)
}

// putBack leaves steps without a handler here to other workers, each time for longer.
func (l *lane) putBack(foreign []*delivery) {
	byDelivery := make(map[int][]*delivery)
	for _, d := range foreign {
		if !l.unknown[d.Handler] {
			l.unknown[d.Handler] = true
			l.log.Warn("claiming step: this worker has no such handler, the step is left to other workers; give handlers of different workers different queues",
				"handler", d.Handler, "handlers", l.w.handlerNames())
		}
		byDelivery[d.Delivery] = append(byDelivery[d.Delivery], d)
	}
	for delivery, ones := range byDelivery {
		if _, err := extendLeases(l.w.life, l.w.pool, l, leases(ones), time.Duration(delivery)*l.w.putBackFor); err != nil {
			l.log.Warn("putting steps back: it failed, they come back when their leases end", "count", len(ones), "error", err)
		}
	}
}

func leases(deliveries []*delivery) []lease {
	named := make([]lease, len(deliveries))
	for i, d := range deliveries {
		named[i] = lease{MsgID: d.MsgID, ReadCount: d.ReadCount}
	}
	return named
}

func (w *Worker) handlerNames() []string {
	return slices.Sorted(maps.Keys(w.handlers))
}
