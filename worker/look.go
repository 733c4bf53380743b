package worker

import "time"

// again is when an emptied queue is looked at again: an announcement soon after another one is suppressed by the
// database, so what it would have told is found by looking.
var again = []time.Duration{5 * time.Millisecond, 10 * time.Millisecond, 40 * time.Millisecond, 160 * time.Millisecond, 640 * time.Millisecond}

// look decides when a queue is looked at next. Only its lane's goroutine uses it.
type look struct {
	at   time.Time // the next look; zero: now
	step int       // how far the series has gone
	idle func() time.Duration
}

// woken makes the next look due.
func (l *look) woken() { l.at, l.step = time.Time{}, 0 }

// found notes what a look brought.
func (l *look) found(asked, got int, now time.Time) {
	switch {
	case got >= asked: // there may be more
		l.at, l.step = time.Time{}, 0
		return
	case got > 0:
		l.step = 0
	}
	if l.step < len(again) {
		l.at = now.Add(again[l.step])
		l.step++
		return
	}
	l.at = now.Add(l.idle())
}
