package actors

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawl-dev/pawl/internal/store"
)

// sweepPause between two batches leaves the tables to others.
const sweepPause = 20 * time.Millisecond

// retention sweeps away what is past its time, in small batches; every instance does, two share the work.
type retention struct {
	*environment
	cursor json.RawMessage // of a sweep under way
}

func (r *retention) run(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	swept, err := store.Sweep(ctx, r.config.Work, r.processor(), r.cursor)
	if err != nil {
		return 0, err
	}
	for kind, count := range map[string]int{"tasks": swept.Tasks, "steps": swept.Steps, "identities": swept.Identities,
		"step_keys": swept.StepKeys, "records": swept.Old} {
		r.config.Metrics.Swept.WithLabelValues(kind).Add(float64(count))
	}
	if swept.More {
		r.cursor = swept.Cursor
		if swept.Tasks+swept.Identities+swept.StepKeys+swept.Old > 0 {
			return sweepPause, nil
		}
		// Looking for rows in a large database of which none is past its time is over long before the next sweep.
		return rest(began, 20, sweepPause), nil
	}
	r.cursor = nil
	return r.config.SweepEvery, nil
}
