package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type growthOptions struct {
	hold, steady time.Duration
	scale        float64
}

// growthState is a database that holds something, and how Pawl did in it.
type growthState struct {
	database, name string
	tasks          int
	fill           func(ctx context.Context, e *pawlEngine, n int) error

	load      time.Duration // how long it goes on before it is measured
	pool      *pgxpool.Pool
	megabytes float64
	figures   []figures
	latency   []float64
}

func growthStates() []*growthState {
	return []*growthState{
		{database: "empty", name: "nothing (%s tasks)"},
		{database: "finished5", name: "%s finished tasks", tasks: 100_000, fill: fillFinished},
		{database: "finished6", name: "%s finished tasks", tasks: 1_000_000, fill: fillFinished},
		{database: "backoff", name: "%s tasks waiting in back-off", tasks: 100_000, fill: fillBackOff},
		{database: "open", name: "%s open tasks", tasks: 100_000, fill: fillOpen},
	}
}

// growth compares databases that hold much with one that holds nothing, in turns; then a transaction is held open, and the
// load goes on until bloat shows.
func (b *bench) growth(ctx context.Context, o options) error {
	states := growthStates()
	states = append(states[:1], slices.DeleteFunc(states[1:], func(s *growthState) bool { return !b.wanted("growth | " + s.database) })...)
	defer func() {
		for _, s := range states {
			if s.pool != nil {
				b.drop(ctx, s.pool)
			}
		}
	}()
	for _, s := range states {
		if err := b.fill(ctx, s, o.growing.scale); err != nil {
			return err
		}
	}
	for rep := range b.reps {
		for _, s := range states {
			if err := b.grown(ctx, s, o.idle); err != nil {
				return fmt.Errorf("with %s: %w", s.name, err)
			}
			fmt.Fprintf(os.Stderr, "%d  %-40s %s\n", rep+1, s.name, s.line(states[0]))
		}
	}
	held, after, err := b.held(ctx, o)
	if err != nil {
		return fmt.Errorf("with a transaction held open: %w", err)
	}
	bloat, err := b.bloat(ctx, o)
	if err != nil {
		return fmt.Errorf("under steady load: %w", err)
	}
	page := b.growthPage(ctx, growthReport{o, append(states, held, after), bloat})
	fmt.Print(page)
	if o.out == "" {
		return nil
	}
	return os.WriteFile(o.out+"/growth.md", []byte(page), 0o644)
}

// grown measures Pawl once in a state's database: at saturation, then idle.
func (b *bench) grown(ctx context.Context, s *growthState, idle int) error {
	e, at := &pawlEngine{}, stage{s.pool, baseWork()}
	return b.opened(ctx, e, at, func() error {
		f, _, err := b.load(ctx, e, at)
		if err != nil {
			return err
		}
		s.figures = append(s.figures, f)
		l, err := oneByOne(ctx, e, idle)
		s.latency = append(s.latency, l...)
		return err
	})
}

// held runs the load while a transaction keeps every dead row alive, measures at the end of that, and once more when the
// transaction has ended and vacuum has come by.
func (b *bench) held(ctx context.Context, o options) (held, after *growthState, err error) {
	held = &growthState{load: o.growing.hold, name: fmt.Sprintf("a transaction held open for %s of load", o.growing.hold)}
	after = &growthState{load: min(o.growing.hold, 30*time.Second)}
	after.name = fmt.Sprintf("the same, %s after it ended", after.load)
	err = b.fresh(ctx, func(pool *pgxpool.Pool) error {
		e, at := &pawlEngine{}, stage{pool, baseWork()}
		return b.opened(ctx, e, at, func() error {
			tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			if err != nil {
				return err
			}
			if _, err = tx.Exec(ctx, "select pg_current_xact_id(), count(*) from pawl.tasks"); err == nil {
				err = b.measureAfter(ctx, e, held, o.idle)
			}
			if err = errors.Join(err, tx.Rollback(ctx)); err != nil {
				return err
			}
			return b.measureAfter(ctx, e, after, o.idle)
		})
	})
	return held, after, err
}

// measureAfter measures when the load has gone on for a state's time.
func (b *bench) measureAfter(ctx context.Context, e *pawlEngine, s *growthState, idle int) error {
	if _, err := b.keepLoaded(ctx, e, s.load); err != nil {
		return err
	}
	f, _, err := b.load(ctx, e, stage{e.pool, e.work})
	if err != nil {
		return err
	}
	s.figures = append(s.figures, f)
	if s.latency, err = oneByOne(ctx, e, idle); err != nil {
		return err
	}
	return e.pool.QueryRow(ctx, "select pg_database_size(current_database()) / 1048576.0").Scan(&s.megabytes)
}

// keepLoaded runs tasks for some time and gives the steps per second of each part of it.
func (b *bench) keepLoaded(ctx context.Context, e *pawlEngine, duration time.Duration) ([]float64, error) {
	const part = 1000
	var rates []float64
	for began := time.Now(); time.Since(began) < duration; {
		partBegan := time.Now()
		if err := e.Run(ctx, part); err != nil {
			return nil, err
		}
		rates = append(rates, part*float64(e.work.steps())/time.Since(partBegan).Seconds())
	}
	return rates, nil
}
