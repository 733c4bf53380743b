package actors

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/internal/store"
)

// reconciler looks for open work that nobody will move (R7), a page a tick. One instance at a time is at it; the pages of a
// pass follow one another ten times as fast as passes, unless a page is so much work that it would take more than a tenth of a
// core.
type reconciler struct{ *environment }

func (r *reconciler) run(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	page, err := store.Reconcile(ctx, r.config.Work, r.processor(), r.config.ReconcileGrace)
	if err != nil {
		return r.config.ReconcileEvery, err
	}
	r.config.Metrics.Repairs.WithLabelValues("engine").Add(float64(page.Repaired.Engine))
	r.config.Metrics.Repairs.WithLabelValues("foreign").Add(float64(page.Repaired.Foreign))
	if page.Repaired.Engine > 0 {
		r.log().Error("repaired tasks that had come to a halt: a defect of Pawl, please report it; pawl.repairs says more",
			"count", page.Repaired.Engine)
	}
	if page.Repaired.Foreign > 0 || page.Ended > 0 {
		r.log().Warn("ended attempts whose messages, or results, were gone, or delivered too often",
			"gone", page.Repaired.Foreign, "delivered too often", page.Ended)
	}
	if page.Busy || page.Wrapped {
		return r.config.ReconcileEvery, nil
	}
	return rest(began, 10, r.config.ReconcileEvery/10), nil
}
