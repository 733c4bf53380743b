package worker

import "time"

// Wait lets a message of a lane wait for a slot, as if it had been claimed ahead so long ago.
func (w *Worker) Wait(queue string, msgID int64, ago time.Duration) {
	for _, l := range w.lanes {
		if l.queue == queue {
			l.mu.Lock()
			d := &delivery{MsgID: msgID, lane: l, cancel: func(error) {}, claimedAt: time.Now().Add(-ago)}
			l.held[msgID] = d
			l.waiting = append(l.waiting, d)
			l.mu.Unlock()
		}
	}
}

// Stopping says whether a lane claims no more.
func (w *Worker) Stopping(queue string) bool {
	for _, l := range w.lanes {
		if l.queue == queue {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.stopping
		}
	}
	return false
}

// WindUpIn bounds the last reports and the giving back.
func (w *Worker) WindUpIn(limit time.Duration) { w.windUpFor = limit }
