package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

// rateResult is how long tasks took, submit to result, while they came at a rate.
type rateResult struct {
	engine, shape string
	rate          float64 // tasks per second; 0: as many as go, atSaturation at a time
	milliseconds  []float64
	figures       figures
	cores         float64 // of the server, of the engine's processes and of this one
}

const (
	atSaturation = 200
	rateWarmUp   = 20
)

// parseRates reads "1,10,100,max".
func parseRates(text string) ([]float64, error) {
	var rates []float64
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		if part == "max" {
			rates = append(rates, 0)
			continue
		}
		rate, err := strconv.ParseFloat(part, 64)
		if err != nil || rate <= 0 {
			return nil, fmt.Errorf("reading -rates: %q is neither a number of tasks per second nor max", part)
		}
		rates = append(rates, rate)
	}
	return rates, nil
}

// underLoad measures latency at each rate: a chain on Pawl and River, a diamond on Pawl.
func (b *bench) underLoad(ctx context.Context, rates []float64, seconds float64) error {
	for _, rate := range rates {
		for _, shape := range []string{"chain", "diamond"} {
			for _, e := range []engine{&pawlEngine{}, &riverEngine{}} {
				w := baseWork()
				w.Shape = shape
				if _, can := e.Can(w); !can || !b.wanted(e.Name()+" | rates") {
					continue
				}
				r := rateResult{engine: e.Name(), shape: shape, rate: rate}
				if err := b.atRate(ctx, e, &r, seconds); err != nil {
					return fmt.Errorf("%s, %s, %s: %w", e.Name(), shape, r.name(), err)
				}
				b.rates = append(b.rates, r)
				fmt.Fprintln(os.Stderr, r.row())
			}
		}
	}
	return nil
}

func (b *bench) atRate(ctx context.Context, e engine, r *rateResult, seconds float64) error {
	return b.fresh(ctx, func(pool *pgxpool.Pool) error {
		w := baseWork()
		w.Shape = r.shape
		err := b.opened(ctx, e, stage{pool, w}, func() error {
			if _, err := oneByOne(ctx, e, rateWarmUp); err != nil {
				return err
			}
			before, err := measureUsage(ctx, pool, b.postmaster(), e.PIDs())
			if err != nil {
				return err
			}
			if r.milliseconds, err = arrivals(ctx, e, r.rate, seconds); err != nil {
				return err
			}
			after, err := measureUsage(ctx, pool, b.postmaster(), e.PIDs())
			r.figures = after.since(before, len(r.milliseconds), w.steps())
			r.figures.PostgresMB, r.figures.ClientMB = memory(b.postmaster(), e)
			r.cores = (r.figures.PostgresMicros + r.figures.ClientMicros) * r.figures.StepsPerSecond / 1e6
			return err
		})
		if err != nil {
			return err
		}
		commits, err := b.commits(ctx, pool)
		r.figures.Commits = commits / float64((len(r.milliseconds)+rateWarmUp*5/4)*w.steps())
		return err
	})
}

// arrivals submits at a rate, or keeps as many tasks going as a saturated engine has, and gives the latencies. Of tasks
// that come at a rate the time runs from the moment when they were due.
func arrivals(ctx context.Context, e engine, rate, seconds float64) ([]float64, error) {
	group, ctx := errgroup.WithContext(ctx)
	samples := make(chan float64, 1000)
	one := func(due time.Time) error {
		err := e.One(ctx)
		samples <- float64(time.Since(due).Microseconds()) / 1000
		return err
	}
	began := time.Now()
	if rate == 0 {
		for range atSaturation {
			group.Go(func() error {
				for time.Since(began).Seconds() < seconds {
					if err := one(time.Now()); err != nil {
						return err
					}
				}
				return nil
			})
		}
	} else {
		group.Go(func() error {
			for i := range max(1, int(rate*seconds)) {
				due := began.Add(time.Duration(float64(i) / rate * float64(time.Second)))
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Until(due)):
				}
				group.Go(func() error { return one(due) })
			}
			return nil
		})
	}
	ended := make(chan error, 1)
	go func() {
		ended <- group.Wait()
		close(samples)
	}()
	var milliseconds []float64
	for sample := range samples {
		milliseconds = append(milliseconds, sample)
	}
	return milliseconds, <-ended
}

func (r rateResult) name() string {
	if r.rate == 0 {
		return fmt.Sprintf("%d at a time, each after the other", atSaturation)
	}
	return fmt.Sprintf("%g/s", r.rate)
}

const rateHeader = `| work | tasks | engine | tasks/s | submit to result p50 / p99 ms | cores | commits/step | memory MB: Postgres / ours |
| --- | --- | --- | --: | --: | --: | --: | --: |
`

func (r rateResult) row() string {
	return fmt.Sprintf("| %s | %s | %s | %.0f | %.1f / %.1f | %.2f | %.1f | %.0f / %.0f |", r.shape, r.name(), r.engine, r.figures.TasksPerSecond,
		median(r.milliseconds), quantile(r.milliseconds, 0.99), r.cores, r.figures.Commits, r.figures.PostgresMB, r.figures.ClientMB)
}
