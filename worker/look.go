package worker

import "time"

// again is when an emptied queue is looked at again, counted from the last wake-up or delivery: an announcement soon after
// another one is suppressed by the database, so what it would have told is found by looking. What was put off for a
// moment (a claim that was busy) is found by the last.
var again = []time.Duration{5 * time.Millisecond, 30 * time.Millisecond, 180 * time.Millisecond, 855 * time.Millisecond}

// look decides when a queue is looked at next. Only its lane's goroutine uses it.
type look struct {
	at    time.Time // the next look; zero: now
	since time.Time // the first look after the last wake-up, or the last that brought something
	idle  func() time.Duration
}

// woken makes the next look due.
func (l *look) woken() { l.at, l.since = time.Time{}, time.Time{} }

// found notes what a look brought. One that a report brings along does not shorten the series.
func (l *look) found(asked, got int, now time.Time) {
	if got >= asked { // there may be more
		l.woken()
		return
	}
	if got > 0 || l.since.IsZero() {
		l.since = now
	}
	for _, after := range again {
		if l.at = l.since.Add(after); l.at.After(now) {
			return
		}
	}
	l.at = now.Add(l.idle())
}
