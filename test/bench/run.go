package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/internal/devpg"
)

// bench holds what all runs share.
type bench struct {
	server  *devpg.Server
	admin   *pgxpool.Pool
	reps    int
	seconds float64
	only    *regexp.Regexp
	results map[string][]figures // by engine | label
	latency map[string][]float64 // milliseconds, by engine | label
	missing map[string]string    // by engine | label: why there is no figure
	rates   []rateResult
}

// settings of the server: durable, the same for all.
func settings() map[string]string {
	return map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "1GB",
		"effective_cache_size": "8GB", "work_mem": "16MB", "max_wal_size": "8GB", "checkpoint_timeout": "15min",
		"autovacuum_naptime": "10s", "max_connections": "300",
	}
}

func key(e engine, c cell) string { return e.Name() + " | " + c.label }

// wanted tells whether -only names it.
func (b *bench) wanted(name string) bool { return b.only == nil || b.only.MatchString(name) }

// round runs one cell once for one engine.
func (b *bench) round(ctx context.Context, e engine, c cell, rep int) error {
	if !b.wanted(key(e, c)) {
		return nil
	}
	if why, can := e.Can(c.work); !can {
		b.missing[key(e, c)] = why
		return nil
	}
	f, err := b.measured(ctx, e, c)
	if err != nil {
		return b.excused(ctx, e, c, err)
	}
	b.results[key(e, c)] = append(b.results[key(e, c)], f)
	fmt.Fprintf(os.Stderr, "%d  %-45s %9.0f steps/s  %6.0f us pg  %5.0f us client  %6.0f B wal  %.1f commits  %.0f+%.0f MB  %.2f foreign\n",
		rep, key(e, c), f.StepsPerSecond, f.PostgresMicros, f.ClientMicros, f.WALBytes, f.Commits, f.PostgresMB, f.ClientMB, f.Foreign)
	return nil
}

// hopeless is when a run is given up.
const hopeless = 4 * time.Minute

// excused turns a peer's failure into a cell without figures; Pawl's own ends everything.
func (b *bench) excused(ctx context.Context, e engine, c cell, err error) error {
	err = fmt.Errorf("%s, %s: %w", e.Name(), c.label, err)
	switch e.(type) {
	case *pawlEngine, *rawPGMQ:
		return err
	}
	if ctx.Err() != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, err)
	if len(b.results[key(e, c)]) == 0 {
		b.missing[key(e, c)] = "failed"
	}
	return nil
}

// measured gives the figures of one run in a database of its own.
func (b *bench) measured(ctx context.Context, e engine, c cell) (f figures, err error) {
	ctx, cancel := context.WithTimeout(ctx, hopeless)
	defer cancel()
	err = b.fresh(ctx, func(pool *pgxpool.Pool) error {
		var ran int
		err := b.opened(ctx, e, stage{pool, c.work}, func() (err error) {
			f, ran, err = b.load(ctx, e, stage{pool, c.work})
			return err
		})
		if err != nil {
			return err
		}
		commits, err := b.commits(ctx, pool)
		f.Commits = commits / float64(ran*c.work.steps())
		return err
	})
	return f, err
}

// stage is where an engine works, and at what.
type stage struct {
	pool *pgxpool.Pool
	work work
}

// opened runs something while an engine is open.
func (b *bench) opened(ctx context.Context, e engine, s stage, use func() error) error {
	err := e.Open(ctx, s.pool, s.work)
	if err != nil {
		err = fmt.Errorf("opening: %w", err)
	} else {
		err = use()
	}
	return errors.Join(err, e.Close(context.WithoutCancel(ctx)))
}

// longest is about how long the slowest engines may take for as many tasks as a batch has.
const longest = 10 * time.Second

// load warms up, sizes the run by that, and measures. ran counts all tasks.
func (b *bench) load(ctx context.Context, e engine, s stage) (f figures, ran int, err error) {
	steps := s.work.steps()
	n, rate := max(1, 400/steps), 0.0
	for range 2 {
		began := time.Now()
		if err := e.Run(ctx, n); err != nil {
			return f, ran, err
		}
		ran += n
		rate = float64(n) / time.Since(began).Seconds()
		n = max(n, min(s.work.Batch, 10, int(rate*longest.Seconds())))
		if s.work.line() { // one long chain says nothing of ten
			n = max(n, min(s.work.Batch, 10))
		}
	}
	n = max(n, int(rate*b.seconds), min(s.work.Batch, int(rate*longest.Seconds())))
	postmaster := b.postmaster()
	before, err := measureUsage(ctx, s.pool, postmaster, e.PIDs())
	if err != nil {
		return f, ran, err
	}
	if err := e.Run(ctx, n); err != nil {
		return f, ran, err
	}
	after, err := measureUsage(ctx, s.pool, postmaster, e.PIDs())
	f = after.since(before, n, steps)
	f.PostgresMB, f.ClientMB = memory(postmaster, e)
	return f, ran + n, err
}

// idle measures one task at a time on an idle engine, submit to result.
func (b *bench) idle(ctx context.Context, e engine, c cell, n int) error {
	if n == 0 || !b.wanted(key(e, c)+" idle") {
		return nil
	}
	if _, can := e.Can(c.work); !can {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, hopeless)
	defer cancel()
	var l []float64
	err := b.fresh(limited, func(pool *pgxpool.Pool) error {
		return b.opened(limited, e, stage{pool, c.work}, func() (err error) {
			l, err = oneByOne(limited, e, n)
			return err
		})
	})
	if err != nil {
		return b.excused(ctx, e, c, err)
	}
	b.latency[key(e, c)] = l
	fmt.Fprintf(os.Stderr, "   %-45s idle p50 %.1f ms, p99 %.1f ms\n", key(e, c), median(l), quantile(l, 0.99))
	return nil
}

// oneByOne gives the milliseconds of n tasks, one after another, after a few that do not count.
func oneByOne(ctx context.Context, e engine, n int) ([]float64, error) {
	milliseconds := make([]float64, 0, n)
	for i := range n + n/4 {
		began := time.Now()
		if err := e.One(ctx); err != nil {
			return nil, err
		}
		if i >= n/4 {
			milliseconds = append(milliseconds, float64(time.Since(began).Microseconds())/1000)
		}
	}
	return milliseconds, nil
}

// fresh gives a database that is dropped afterwards.
func (b *bench) fresh(ctx context.Context, use func(pool *pgxpool.Pool) error) error {
	name := fmt.Sprintf("bench_%d", time.Now().UnixNano())
	pool, err := b.database(ctx, name)
	if err != nil {
		return err
	}
	defer b.drop(ctx, pool)
	return use(pool)
}

// database makes an empty one.
func (b *bench) database(ctx context.Context, name string) (*pgxpool.Pool, error) {
	if _, err := b.admin.Exec(ctx, "create database "+name); err != nil {
		return nil, err
	}
	return b.connect(ctx, name, 20)
}

func (b *bench) connect(ctx context.Context, database string, connections int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(b.server.URL(database))
	if err != nil {
		return nil, err
	}
	config.MaxConns = connections
	return pgxpool.NewWithConfig(ctx, config)
}

func (b *bench) drop(ctx context.Context, pool *pgxpool.Pool) {
	pool.Close()
	_, _ = b.admin.Exec(context.WithoutCancel(ctx), "drop database "+pool.Config().ConnConfig.Database+" with (force)")
}

func (b *bench) postmaster() int {
	var pid int
	_ = b.admin.QueryRow(context.Background(), "select split_part(pg_read_file('postmaster.pid'), e'\\n', 1)::int").Scan(&pid)
	return pid
}

// median of a figure by engine | label; NaN when it did not run.
func (b *bench) median(key string, of func(figures) float64) float64 {
	var values []float64
	for _, f := range b.results[key] {
		values = append(values, of(f))
	}
	return median(values)
}

// ratio of Pawl's steps per second to what raw PGMQ allows: the median of the rounds, each with the limit's runs around it.
func (b *bench) ratio() string {
	pawl, raw := b.results["Pawl | "+baseLabel], b.results[rawKey]
	if len(raw) != 2*len(pawl) || len(raw) == 0 {
		return "unknown"
	}
	ratios := make([]float64, len(pawl))
	for i, f := range pawl {
		ratios[i] = f.StepsPerSecond / ((raw[2*i].StepsPerSecond + raw[2*i+1].StepsPerSecond) / 2 / 2)
	}
	return fmt.Sprintf("%.2f", median(ratios))
}

func (b *bench) rate(key string) float64 {
	return b.median(key, func(f figures) float64 { return f.StepsPerSecond })
}
