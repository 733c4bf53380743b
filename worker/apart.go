package worker

import "time"

const (
	// firstTry bounds the first try of a report that was set aside; each later one may take twice as long, up to callTimeout.
	firstTry = time.Second
	// maxApart bounds the refused reports that a lane keeps. Of those beyond it the leases end.
	maxApart = 1000
)

// setAside takes outcomes out of the lane's way, each to be reported for itself, with pauses of its own: the database
// refuses one of them, or one waits for a lock that somebody holds. Their leases go on, and no result is lost once what was
// in the way is gone. err is of a call that carried this one outcome alone, nil when others were with it.
func (l *lane) setAside(outcomes []*outcome, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range outcomes {
		d := o.delivery
		if o.refused(err) && len(l.apart) >= maxApart {
			if l.held[d.MsgID] == d {
				delete(l.held, d.MsgID)
			}
			l.lost++
			l.log.Error("reporting step: too many reports are refused, this one is dropped", "task_id", d.TaskID, "step", d.Step, "error", err)
			continue
		}
		if err != nil {
			o.tries++
			o.retryAt = time.Now().Add(min(minBackoff<<min(o.tries, 16), maxBackoff))
			if o.tries == 1 {
				l.log.Error("reporting step: it failed, it is tried again while others go on", "task_id", d.TaskID, "step", d.Step,
					"handler", d.Handler, "error", err)
			}
		}
		d.apart = true
		l.apart = append(l.apart, o)
	}
}

// reportApart reports what was set aside and is due, off the lane's goroutine and one by one; it returns at once.
func (l *lane) reportApart(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reporting {
		return
	}
	var due, rest []*outcome
	for _, o := range l.apart {
		if now.Before(o.retryAt) {
			rest = append(rest, o)
		} else {
			due = append(due, o)
		}
	}
	if len(due) == 0 {
		return
	}
	l.apart, l.reporting = rest, true
	l.aside.Go(func() {
		for _, o := range due {
			answer, err := l.reportAlone(o, min(firstTry<<min(o.tries, 16), callTimeout))
			if err != nil {
				l.setAside([]*outcome{o}, err)
				continue
			}
			l.settle([]*outcome{o}, answer)
		}
		l.mu.Lock()
		l.reporting = false
		l.mu.Unlock()
	})
}

// untried says whether something that was set aside was not tried for itself yet, or is being tried.
func (l *lane) untried() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.apart {
		if o.tries == 0 {
			return true
		}
	}
	return l.reporting
}
