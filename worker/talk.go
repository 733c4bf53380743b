package worker

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/messaging"
)

// talk makes one call and acts on the answer. What could not be said is said again: every call can be repeated blindly,
// a report that had arrived after all is not accepted twice.
func (l *lane) talk(t turn) {
	began := time.Now()
	var reported []accepted
	var claimed []*delivery
	var err error
	kind := "report_and_claim"
	switch {
	case len(t.outcomes) == 0:
		kind = "claim"
		claimed, err = claimSteps(l.w.life, l.w.pool, l, t.quantity)
	case t.quantity == 0:
		kind = "report"
		reported, err = reportSteps(l.w.life, l.w.pool, l, t.reports())
	default:
		reported, claimed, err = reportAndClaimSteps(l.w.life, l.w.pool, l, t)
	}
	took := time.Since(began)
	l.w.metrics.called(l.queue, kind, took, len(t.outcomes))
	l.mu.Lock()
	l.ahead.called(len(t.outcomes), began, took)
	l.linger, l.lingerFrom = min(max(took/4, minLinger), maxLinger), time.Now()
	l.mu.Unlock()
	if err != nil {
		if slices.ContainsFunc(t.outcomes, func(o *outcome) bool { return o.refused(err) }) {
			l.reportOneByOne(t.outcomes)
			return
		}
		if isLocked(err) && len(t.outcomes) > 0 {
			l.setAside(t.outcomes, nil)
			t.outcomes = nil
		}
		l.failed(kind, t.outcomes, err)
		return
	}
	l.recovered()
	l.settle(t.outcomes, reported)
	if t.quantity > 0 {
		l.look.found(t.quantity, len(claimed), time.Now())
	}
	l.begin(claimed, began)
}

// settle lets go of what was reported.
func (l *lane) settle(outcomes []*outcome, answers []accepted) {
	late := make(map[int64]bool)
	for _, answer := range answers {
		late[answer.MsgID] = !answer.Accepted
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range outcomes {
		d := o.delivery
		if l.held[d.MsgID] == d {
			delete(l.held, d.MsgID)
		}
		switch {
		case d.inTx && late[d.MsgID]: // the transaction has committed, and took the message along
			l.w.metrics.ended(d, messaging.Complete)
		case late[d.MsgID]:
			l.w.metrics.late(l.queue)
			l.log.Info("reporting step: too late, the result does not count", "task_id", d.TaskID, "step", d.Step, "attempt", d.Attempt, "delivery", d.Delivery)
		default:
			l.w.metrics.ended(d, o.report.Status)
			if o.presumed {
				l.logFailure(d, o)
			}
		}
	}
}

// failed puts back what could not be reported and lets some time pass.
func (l *lane) failed(kind string, outcomes []*outcome, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = append(outcomes[:len(outcomes):len(outcomes)], l.ended...)
	first := l.backoff == 0
	l.backoff = min(max(2*l.backoff, minBackoff), maxBackoff)
	l.retryAt = time.Now().Add(l.backoff)
	if first {
		l.log.Warn("calling the database: it failed, trying again", "call", kind, "error", err)
	} else {
		l.log.Debug("calling the database: it failed again", "call", kind, "error", err, "in", l.backoff)
	}
}

func (l *lane) recovered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.backoff > 0 {
		l.log.Info("calling the database: it answers again")
	}
	l.backoff, l.retryAt = 0, time.Time{}
}

// reportOneByOne finds the reports that the database refuses; the others go through.
func (l *lane) reportOneByOne(outcomes []*outcome) {
	for i, o := range outcomes {
		answer, err := l.reportAlone(o, callTimeout)
		if o.refused(err) || isLocked(err) {
			l.setAside(outcomes[i:i+1], err)
			continue
		}
		if err != nil {
			l.failed("report", outcomes[i:], err)
			return
		}
		l.settle(outcomes[i:i+1], answer)
	}
}

// reportAlone reports one outcome, a failure in its place when the database refuses it for its content. limit is of each call.
func (l *lane) reportAlone(o *outcome, limit time.Duration) ([]accepted, error) {
	try := func() ([]accepted, error) {
		ctx, cancel := context.WithTimeout(l.w.life, limit)
		defer cancel()
		answer, err := reportSteps(ctx, l.w.pool, l, []report{o.report})
		return answer, o.delivery.explain(err)
	}
	answer, err := try()
	if code, yes := isAboutData(err); yes && !o.replaced {
		l.replace(o, code)
		answer, err = try()
	}
	return answer, err
}

// replace puts a failure in the place of a result that the database refuses for its content.
func (l *lane) replace(o *outcome, code string) {
	l.log.Error("reporting step: the database refuses the result, a failure is reported in its place",
		"task_id", o.delivery.TaskID, "step", o.delivery.Step, "handler", o.delivery.Handler, "sqlstate", code)
	o.replaced, o.report.Status, o.report.Result = true, messaging.Failed, nil
	o.report.Error = &messaging.StepError{Type: typeInvalidResult, Message: "the database refuses the result (SQLSTATE " + code +
		"): it is over 1 MiB as the database writes it, or holds a value that jsonb cannot store"}
}
