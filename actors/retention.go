package actors

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawl-dev/pawl/internal/store"
)

const (
	// sweepPause between two batches leaves the tables to others.
	sweepPause = 20 * time.Millisecond
	// sweepRest is the pause after a batch in which nothing was past its time, in times that it took: looking for such rows
	// in a large database takes a twentieth of a core, and is over long before the next sweep.
	sweepRest = 19
)

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
		return max(sweepPause, sweepRest*time.Since(began)), nil
	}
	r.cursor = nil
	return r.config.SweepEvery, nil
}
