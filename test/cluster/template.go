package cluster

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/workflow"
)

// Templates of the load: four steps in a diamond, and a fan of ten, and one long step. Leases are short, so that what dies is delivered again
// within the minute that a test has; deliveries are many, because the faults take them away by the dozen.
const templates = `
namespace: fire
name: diamond
version: "1"
retry: {max_attempts: 6, backoff: fixed, base: 200ms}
steps:
  - {name: first, handler: fire.work, lease: 2s, max_deliveries: 500}
  - {name: left, handler: fire.work, needs: [first], lease: 2s, max_deliveries: 500}
  - {name: right, handler: fire.work, needs: [first], lease: 2s, max_deliveries: 500}
  - {name: last, handler: fire.work, needs: [left, right], lease: 2s, max_deliveries: 500}
---
namespace: fire
name: fan
version: "1"
on_failure: fail_fast
retry: {max_attempts: 6, backoff: exponential, base: 100ms, max: 1s, jitter: 0.5}
steps:
  - {name: open, handler: fire.work, lease: 2s, max_deliveries: 500}
  - {name: a, handler: fire.work, needs: [open], lease: 3s, max_deliveries: 500}
  - {name: b, handler: fire.work, needs: [open], lease: 2s, max_deliveries: 500}
  - {name: c, handler: fire.work, needs: [open], lease: 3s, max_deliveries: 500}
  - {name: d, handler: fire.work, needs: [open], lease: 2s, max_deliveries: 500}
  - {name: e, handler: fire.work, needs: [open], lease: 3s, max_deliveries: 500}
  - {name: f, handler: fire.work, needs: [open], lease: 2s, max_deliveries: 500}
  - {name: g, handler: fire.work, needs: [open], lease: 3s, max_deliveries: 500}
  - {name: h, handler: fire.work, needs: [open], lease: 2s, max_deliveries: 500}
  - {name: close, handler: fire.work, needs: [a, b, c, d, e, f, g, h], lease: 2s, max_deliveries: 500}
---
namespace: fire
name: long
version: "1"
steps:
  - {name: only, handler: fire.work, lease: 2s, max_deliveries: 500}
`

// Templates of the load, by name.
const (
	Diamond = "fire/diamond"
	Fan     = "fire/fan"
	Long    = "fire/long" // its work takes longer than its lease
)

// Queue that the steps of the load go through.
const Queue = "fire_queue"

// Prepare applies the templates of the load, and helps it to find its requests.
func Prepare(ctx context.Context, pool *pgxpool.Pool) error {
	parsed, err := workflow.ParseTemplates("fire.yaml", []byte(templates))
	if err != nil {
		return fmt.Errorf("reading the load's templates: %w", err)
	}
	for _, t := range parsed {
		if _, err := pool.Exec(ctx, "select pawl.register_template($1)", string(t.Definition())); err != nil {
			return fmt.Errorf("applying the load's templates: %w", err)
		}
	}
	for _, table := range []string{"absorbed", "dead_letters"} { // the load looks for its requests in them, all the time
		_, err := pool.Exec(ctx, "create index on pawl."+table+" ((message->>'request_id')) where queue = 'orchestration_task_requests'")
		if err != nil {
			return fmt.Errorf("adding the load's index: %w", err)
		}
	}
	return nil
}
