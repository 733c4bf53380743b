package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/internal/live"
)

var stepNames = []string{"validate", "reserve", "price", "charge", "ship", "notify"}

// progress is what one look at the tables shows.
type progress struct {
	orders, created, ended int
	steps                  map[string]int // ended, by name
}

func (p progress) finished() bool { return p.ended == p.orders && p.created == p.orders }

func (p progress) allSteps() int {
	sum := 0
	for _, n := range p.steps {
		sum += n
	}
	return sum
}

func (r *run) look(ctx context.Context) (progress, error) {
	p := progress{orders: len(r.orders), steps: map[string]int{}}
	err := r.pool.QueryRow(ctx, "select count(*), count(finalized_at) from pawl.tasks").Scan(&p.created, &p.ended)
	if err != nil {
		return p, fmt.Errorf("counting tasks: %w", err)
	}
	rows, err := r.pool.Query(ctx, `select step, count(*) from pawl.steps
		where state in ('complete', 'skipped', 'error', 'cancelled', 'resolved_manually') group by step`)
	if err != nil {
		return p, fmt.Errorf("counting steps: %w", err)
	}
	var step string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&step, &n}, func() error {
		p.steps[step] = n
		return nil
	})
	if err != nil {
		return p, fmt.Errorf("counting steps: %w", err)
	}
	return p, nil
}

// show draws the frame on a terminal, or prints a line a second elsewhere.
func (r *run) show(p progress) {
	elapsed := time.Since(r.started)
	if !r.screen.Terminal() {
		if !r.ended.IsZero() || elapsed-r.shownAt >= time.Second {
			r.shownAt = elapsed
			r.say("%5.1fs  sent %d/%d  orders %d/%d  steps %d/%d", elapsed.Seconds(), r.sent.Load(), len(r.requests),
				p.ended, p.orders, p.allSteps(), p.orders*len(stepNames))
		}
		return
	}
	const width = 40
	lines := []string{"", fmt.Sprintf("  %-10s %s %4d/%d", "sent", live.Bar(int(r.sent.Load()), len(r.requests), width), r.sent.Load(), len(r.requests))}
	for _, name := range stepNames {
		lines = append(lines, fmt.Sprintf("  %-10s %s %4d", name, live.Bar(p.steps[name], p.orders, width), p.steps[name]))
	}
	lines = append(lines, fmt.Sprintf("  %-10s %s %4d/%d", "ORDERS", live.Bar(p.ended, p.orders, width), p.ended, p.orders), "")
	processes := "  "
	for _, process := range r.processes {
		mark := "●"
		if !process.running() {
			mark = "✗"
		}
		processes += mark + " " + process.name + "   "
	}
	r.screen.Draw(append(lines, processes, fmt.Sprintf("  %.1f s, %.0f steps a second", elapsed.Seconds(), float64(p.allSteps())/elapsed.Seconds())))
}
