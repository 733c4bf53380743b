package worker

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// minLinger and maxLinger bound how long the first ended handler waits for others to be reported with, while others are
	// at work: a quarter of what the last call took, so that a busy database gets fewer and fuller calls.
	minLinger = time.Millisecond
	maxLinger = 10 * time.Millisecond
	// maxReports and maxReportBytes bound one call.
	maxReports     = 200
	maxReportBytes = 4 << 20
	// minBackoff and maxBackoff bound the time between calls while they fail.
	minBackoff = 50 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// lane is one queue's way through the worker. Its goroutine (converse) talks to the database, one call at a time: it
// reports what has ended since the last call, and claims for the slots that are free. It alone claims, so a slot that it
// counts as free stays free until the claim is back. While handlers are quicker than calls it also claims for the slots
// that will be free by then (ahead.go).
type lane struct {
	w       *Worker
	queue   string
	slots   int
	log     *slog.Logger
	look    look            // converse only
	unknown map[string]bool // handler names that were logged as unknown; converse only
	woken   <-chan struct{} // of the listener; nil without one
	nudge   chan struct{}   // room for one: a handler has returned, or stopping has begun
	quit    chan struct{}   // closed by Stop when the lane is to wind up
	done    chan struct{}   // closed when converse has ended
	beaten  chan struct{}   // closed when beat has ended
	aside   sync.WaitGroup  // what beat has started

	mu sync.Mutex
	// These are guarded by mu.
	held       map[int64]*delivery // claimed, and neither reported nor given back
	running    int                 // handlers at work
	waiting    []*delivery         // claimed ahead, for the next free slots
	ahead      ahead
	ended      []*outcome // of handlers that returned, not reported yet
	apart      []*outcome // of these, what is reported for itself (apart.go)
	reporting  bool       // some of them, just now
	linger     time.Duration
	lingerFrom time.Time // when the first of them returned, or the last call did
	stopping   bool      // no more claims
	lost       int       // results that were dropped, or left when the worker's life ended
	kept       int       // steps that could not be given back
	retryAt    time.Time // no call before this: the last one failed
	backoff    time.Duration
}

func (w *Worker) newLane(q Queue) *lane {
	return &lane{
		w: w, queue: q.Name, slots: q.Concurrency, log: w.log.With("queue", q.Name),
		look:  look{idle: w.idle},
		nudge: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}), beaten: make(chan struct{}),
		held: make(map[int64]*delivery), unknown: make(map[string]bool),
	}
}

// turn is what one call to the database says: these have ended, and quantity slots are free.
type turn struct {
	outcomes []*outcome
	quantity int
}

func (t turn) reports() []report {
	reports := make([]report, len(t.outcomes))
	for i, o := range t.outcomes {
		reports[i] = o.report
	}
	return reports
}

func (l *lane) converse() {
	defer close(l.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		t, wait := l.plan(time.Now())
		if len(t.outcomes) > 0 || t.quantity > 0 {
			l.talk(t)
			select {
			case <-l.quit:
				l.windUp()
				return
			default:
				continue
			}
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-l.nudge:
		case <-l.woken:
			l.look.woken()
		case <-l.quit:
			l.windUp()
			return
		}
	}
}

// plan decides what to say now, or how long to wait.
func (l *lane) plan(now time.Time) (t turn, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.retryAt) {
		return turn{}, l.retryAt.Sub(now)
	}
	free := l.slots - l.running - len(l.waiting) // less than none with what waits
	quantity := free + l.ahead.count(l.slots)
	if l.stopping {
		free, quantity = 0, 0
	}
	// What has ended takes the claim along: only without it a claim goes out for itself.
	switch {
	case len(l.ended) >= maxReports, len(l.ended) > 0 && l.running == 0:
		wait = 0
	case len(l.ended) > 0:
		wait = l.lingerFrom.Add(l.linger).Sub(now)
	case free > 0:
		wait = l.look.at.Sub(now)
	default:
		wait = time.Hour // until nudged
	}
	if wait > 0 {
		return turn{}, wait
	}
	t.outcomes = l.takeEnded()
	if len(l.ended) == 0 { // with a backlog of reports, reporting comes first
		t.quantity = max(quantity, 0)
	}
	return t, 0
}

// takeEnded takes as many outcomes as one call may carry. The caller holds mu.
func (l *lane) takeEnded() []*outcome {
	n, size := 0, 0
	for n < len(l.ended) && n < maxReports {
		size += l.ended[n].size()
		if n > 0 && size > maxReportBytes {
			break
		}
		n++
	}
	taken := l.ended[:n:n]
	l.ended = l.ended[n:]
	if len(l.ended) == 0 {
		l.ended = nil
	}
	return taken
}

// end notes the outcome of a handler and frees its slot; the caller runs the one that it returns.
func (l *lane) end(o *outcome) (next *delivery) {
	l.mu.Lock()
	l.running--
	if len(l.waiting) > 0 && !l.stopping {
		next = l.waiting[0]
		l.waiting = l.waiting[1:]
		l.running++
	}
	o.delivery.ended = true
	if !o.giveBack { // else it stays held, and winding up releases it
		if len(l.ended) == 0 {
			l.lingerFrom = time.Now()
		}
		l.ended = append(l.ended, o)
	}
	l.mu.Unlock()
	l.poke()
	return next
}

func (l *lane) poke() {
	select {
	case l.nudge <- struct{}{}:
	default:
	}
}

// idleNow says whether nothing is at work and nothing is left to report.
func (l *lane) idleNow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running == 0 && len(l.ended) == 0
}

// quiet says whether no handler is at work.
func (l *lane) quiet() bool { return l.atWork() == 0 }

// atWork is how many handlers are.
func (l *lane) atWork() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running
}
