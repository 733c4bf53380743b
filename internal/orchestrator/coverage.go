package orchestrator

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// assertClaimsCovered refuses to start while an applied template has an entity claim that nobody would release after a
// crash. With park, the requests of such templates wait instead.
func (o *Orchestrator) assertClaimsCovered(ctx context.Context, pool *pgxpool.Pool) error {
	rows, err := pool.Query(ctx, `select format('template %s, step %s, state %s, module %s: %s', template, step, state,
		coalesce(module, 'none'), problem) from pawl.claim_coverage() order by 1`)
	if err != nil {
		return fmt.Errorf("looking for entity claims without a janitor: %w", err)
	}
	gaps, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("looking for entity claims without a janitor: %w", err)
	}
	switch {
	case len(gaps) == 0:
		return nil
	case !o.config.Park:
		return fmt.Errorf("entity claims that nobody would release after a crash:\n  %s\n"+
			"register the entities and start the modules' janitors, or start with --park, and these templates' requests wait",
			strings.Join(gaps, "\n  "))
	}
	var parked []string
	err = pool.QueryRow(ctx, `select array(select jsonb_array_elements_text(pawl.park_templates('orchestrator', 'started with --park')))`).
		Scan(&parked)
	if err != nil {
		return fmt.Errorf("parking templates without a janitor: %w", err)
	}
	o.config.Logger.Warn("requests of templates wait: their entity claims have no janitor", "gaps", gaps, "parked now", parked)
	return nil
}
