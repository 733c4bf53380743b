package worker

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// handBackTime is how long handlers have to return once their contexts have ended.
	handBackTime = 2 * time.Second
	// windUpTime bounds the last reports and the giving back.
	windUpTime = 10 * time.Second
	// stopLook is how often Stop looks whether the handlers have returned.
	stopLook = 5 * time.Millisecond
)

// Stop ends the worker: it claims no more, lets handlers finish for the grace period or until ctx ends, then ends their
// contexts with ErrStopping, reports what has ended and gives back what has not, so that other workers have it at once.
// A handler that ignores its context is left behind: its result will not count once somebody else has the step.
//
// It returns when all of that is done. It can be called any number of times, also concurrently, before Start, and while that
// connects, which then ends with an error: the end of any caller's ctx ends the grace period. A handler that calls it waits for itself: as long as the grace period lasts.
//
// An error says how many handlers were left behind, how many of the steps could not be given back, and how many results could
// not be reported since Start; every call returns it.
func (w *Worker) Stop(ctx context.Context) error {
	w.unwanted()
	w.mu.Lock()
	started := w.started
	w.started = true // none may start from now on
	w.mu.Unlock()
	defer context.AfterFunc(ctx, w.hurry)()
	w.stop.Do(func() {
		defer close(w.ended)
		if started {
			w.stopped = w.windDown()
		}
	})
	<-w.ended
	return w.stopped
}

func (w *Worker) windDown() error {
	w.unhook()
	w.log.Info("worker stops")
	for _, l := range w.lanes {
		l.mu.Lock()
		l.stopping, l.kept = true, 0
		l.mu.Unlock()
		l.poke()
	}
	// Beside what follows, so that neither another queue nor the end of ctx waits for it; life bounds it.
	var back sync.WaitGroup
	for _, l := range w.lanes {
		back.Go(func() { l.giveBack(l.takeWaiting(time.Now())) })
	}
	grace, cancel := context.WithTimeout(w.unhurried, w.config.Grace)
	w.waitFor(grace, (*lane).idleNow)
	cancel()
	w.halt(ErrStopping)
	last, cancel := context.WithTimeout(context.Background(), handBackTime)
	w.waitFor(last, (*lane).quiet)
	cancel()
	left := w.sum((*lane).atWork)
	// From here on calls that hang do not hold us up for longer than this.
	dying := time.AfterFunc(w.windUpFor, w.die)
	defer dying.Stop()
	for _, l := range w.lanes {
		close(l.quit)
	}
	for _, l := range w.lanes {
		<-l.done
	}
	back.Wait()
	w.die()
	for _, l := range w.lanes {
		<-l.beaten
		l.aside.Wait()
	}
	if w.listener != nil {
		w.listener.Stop()
	}
	w.disconnect()
	unreported := w.sum((*lane).unreported)
	if left == 0 && unreported == 0 {
		w.log.Info("worker stopped")
		return nil
	}
	kept := w.sum((*lane).notGivenBack)
	w.log.Warn("worker stopped, not all of its work did", "left_behind", left, "unreported", unreported, "not_given_back", kept)
	fate := "their steps are given back"
	if kept > 0 {
		fate = fmt.Sprintf("steps that could not be given back: %d, they come back when their leases end", kept)
	}
	return fmt.Errorf("stopping worker: handlers that did not return and were left behind: %d (%s); "+
		"results that could not be reported: %d (their steps come back when their leases end)", left, fate, unreported)
}

func (w *Worker) sum(count func(*lane) int) (sum int) {
	for _, l := range w.lanes {
		sum += count(l)
	}
	return sum
}

// waitFor waits until a condition holds for all lanes, or ctx ends.
func (w *Worker) waitFor(ctx context.Context, condition func(*lane) bool) {
	ticker := time.NewTicker(stopLook)
	defer ticker.Stop()
	for _, l := range w.lanes {
		for !condition(l) {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}
}

// windUp reports what has ended and gives back the rest. It is the last thing that converse does.
func (l *lane) windUp() {
	for {
		l.mu.Lock()
		outcomes := l.takeEnded()
		l.mu.Unlock()
		if len(outcomes) == 0 {
			break
		}
		l.talk(turn{outcomes: outcomes})
		l.mu.Lock()
		pause := time.Until(l.retryAt)
		l.mu.Unlock()
		if l.w.life.Err() != nil {
			l.mu.Lock()
			l.lost += len(l.ended)
			for _, o := range l.ended {
				delete(l.held, o.delivery.MsgID)
			}
			l.mu.Unlock()
			break
		}
		if pause > 0 {
			select {
			case <-time.After(pause):
			case <-l.w.life.Done():
			}
		}
	}
	var back []*delivery
	l.mu.Lock()
	for id, d := range l.held {
		if !d.apart {
			back = append(back, d)
			delete(l.held, id)
		}
	}
	l.mu.Unlock()
	if len(back) > 0 {
		l.log.Info("stopping: giving unfinished steps back", "count", len(back))
	}
	l.giveBack(back)
	l.awaitApart()
}

// awaitApart lets beat try what was set aside. Where that fails the lease ends: giving it back would run the handler again.
func (l *lane) awaitApart() {
	ticker := time.NewTicker(stopLook)
	defer ticker.Stop()
	for l.untried() && l.w.life.Err() == nil {
		select {
		case <-ticker.C:
		case <-l.w.life.Done():
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.held)
}

// notGivenBack is how many steps a lane could not give back since it stops.
func (l *lane) notGivenBack() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept
}

// unreported is how many results a lane that has wound up could not report.
func (l *lane) unreported() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost + len(l.apart)
}
