package worker

import "time"

// maxWait is how long a step that was claimed ahead may wait for its slot before other workers get it.
const maxWait = 250 * time.Millisecond

// ahead estimates how many handlers end while one call to the database is under way. So many steps may be claimed beyond
// the free slots, or the slots would be empty for as long as a call takes. Handlers that are much slower than a call make
// it zero.
type ahead struct {
	began    time.Time // the last call
	estimate float64
}

// called notes a call and how many ends it reported.
func (a *ahead) called(ends int, began time.Time, took time.Duration) {
	now := 0.0
	if since := began.Sub(a.began); since > 0 && !a.began.IsZero() {
		now = float64(ends) * float64(took) / float64(max(since, took))
	}
	a.began = began
	a.estimate = (a.estimate + now) / 2
}

// count is at most three for each slot.
func (a *ahead) count(slots int) int { return min(int(a.estimate), 3*slots) }

// takeWaiting takes the steps that wait for a slot since before a time, for giving back; nothing is claimed ahead for a
// while then.
func (l *lane) takeWaiting(before time.Time) (taken []*delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) > 0 && !l.waiting[0].claimedAt.After(before) {
		d := l.waiting[0]
		l.waiting = l.waiting[1:]
		if l.held[d.MsgID] == d {
			delete(l.held, d.MsgID)
			taken = append(taken, d)
		}
		d.cancel(nil)
	}
	if len(taken) > 0 {
		l.ahead.estimate = 0
	}
	return taken
}
