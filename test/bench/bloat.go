package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// bloated is what the load left of a table: how large it and its indexes are, and how large when written anew.
type bloated struct {
	Name                 string
	Rows, Dead           int64
	Table, Indexes       float64 // MB
	NewTable, NewIndexes float64
}

// steadyLoad is what an hour, or less, of load does to a database.
type steadyLoad struct {
	first, last float64 // steps per second at the beginning and at the end
	tasks       int64
	tables      []bloated
}

const tableSizes = `select format('%s.%s', n.nspname, c.relname) as name, greatest(c.reltuples, 0)::bigint as rows,
    coalesce(s.n_dead_tup, 0) as dead, pg_table_size(c.oid) / 1048576.0 as "table", pg_indexes_size(c.oid) / 1048576.0 as indexes
  from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_stat_user_tables s on s.relid = c.oid
  where c.relkind = 'r' and (n.nspname = 'pawl' and c.relname in ('tasks', 'steps', 'audit')
    or n.nspname = 'pgmq' and c.relname in ('q_bench_queue', 'q_orchestration_task_requests', 'q_orchestration_step_results',
      'q_orchestration_step_enqueues', 'q_orchestration_task_finalizations'))
  order by n.nspname, c.relname`

// bloat keeps a database loaded, then writes its tables anew to see how much of them was air.
func (b *bench) bloat(ctx context.Context, o options) (result steadyLoad, err error) {
	err = b.fresh(ctx, func(pool *pgxpool.Pool) error {
		e := &pawlEngine{}
		err := b.opened(ctx, e, stage{pool, baseWork()}, func() error {
			rates, err := b.keepLoaded(ctx, e, o.growing.steady)
			if err != nil {
				return err
			}
			tenth := max(1, len(rates)/10)
			result.first, result.last = median(rates[:tenth]), median(rates[len(rates)-tenth:])
			return nil
		})
		if err != nil {
			return err
		}
		if err := pool.QueryRow(ctx, "select count(*) from pawl.tasks").Scan(&result.tasks); err != nil {
			return err
		}
		before, err := sizes(ctx, pool)
		if err != nil {
			return err
		}
		for _, t := range before {
			if _, err := pool.Exec(ctx, "vacuum (full, analyze) "+t.Name); err != nil {
				return err
			}
		}
		after, err := sizes(ctx, pool)
		if err != nil {
			return err
		}
		for i := range before {
			before[i].Rows, before[i].NewTable, before[i].NewIndexes = after[i].Rows, after[i].Table, after[i].Indexes
		}
		result.tables = before
		return nil
	})
	return result, err
}

func sizes(ctx context.Context, pool *pgxpool.Pool) ([]bloated, error) {
	rows, err := pool.Query(ctx, tableSizes)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByNameLax[bloated])
}

// line of a state against the empty one: steps per second and idle latency, as ratios too.
func (s *growthState) line(empty *growthState) string {
	rate, p50, p99 := s.rate(), median(s.latency), quantile(s.latency, 0.99)
	return fmt.Sprintf("%s steps/s | %.2f | %.1f | %.2f | %.1f | %.0f | %.0f", grouped(rate), rate/empty.rate(), p50, p50/median(empty.latency), p99,
		s.micros(), s.megabytes)
}

func (s *growthState) rate() float64 {
	return s.median(func(f figures) float64 { return f.StepsPerSecond })
}

func (s *growthState) micros() float64 {
	return s.median(func(f figures) float64 { return f.PostgresMicros })
}

func (s *growthState) median(of func(figures) float64) float64 {
	var values []float64
	for _, f := range s.figures {
		values = append(values, of(f))
	}
	return median(values)
}

type growthReport struct {
	options options
	states  []*growthState
	steady  steadyLoad
}

func (b *bench) growthPage(ctx context.Context, r growthReport) string {
	var page strings.Builder
	fmt.Fprintf(&page, "# Growth\n\nPrinted by `make bench-growth` on %s.\n\n%s\n\n", time.Now().UTC().Format("2006-01-02"), b.machine(ctx))
	fmt.Fprintf(&page, `Diamonds of four steps, 200 B, batches of 50, two orchestrators; medians of %d rounds of about %g s in which the databases
take turns; the idle latency is that of %d tasks one at a time in each round. Ratios are to the database that holds nothing
but what the rounds themselves leave in it. Finished tasks are copies of a thousand that ran, with all their rows; the others have come
the ordinary way.

| the database holds | throughput | ratio | idle p50 ms | ratio | p99 ms | Postgres us/step | MB |
| --- | --: | --: | --: | --: | --: | --: | --: |
`, b.reps, b.seconds, r.options.idle)
	for _, s := range r.states {
		fmt.Fprintf(&page, "| %s | %s |\n", s.name, s.line(r.states[0]))
	}
	fmt.Fprintf(&page, `
## Bloat

After %s of load (%s tasks): %s steps/s in its first tenth, %s in its last. Sizes then, and after each table was
written anew by vacuum full.

| table | rows | dead rows | table MB | written anew | indexes MB | written anew |
| --- | --: | --: | --: | --: | --: | --: |
`, r.options.growing.steady, grouped(float64(r.steady.tasks)), grouped(r.steady.first), grouped(r.steady.last))
	for _, t := range r.steady.tables {
		fmt.Fprintf(&page, "| %s | %s | %s | %.1f | %.1f | %.1f | %.1f |\n", t.Name, grouped(float64(t.Rows)), grouped(float64(t.Dead)),
			t.Table, t.NewTable, t.Indexes, t.NewIndexes)
	}
	return page.String()
}
