package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/internal/devpg"
)

// bench holds what all runs share.
type bench struct {
	server   *devpg.Server
	admin    *pgxpool.Pool
	reps     int
	seconds  float64
	only     *regexp.Regexp
	results  map[string][]figures // by engine/label
	latency  map[string][]float64 // milliseconds, by engine/label
	missing  map[string]string    // by engine/label: why there is no figure
	versions map[string]string
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

// round runs one cell once for one engine.
func (b *bench) round(ctx context.Context, e engine, c cell, rep int) error {
	why, can := e.Can(c.work)
	if !can {
		b.missing[key(e, c)] = why
		return nil
	}
	if b.only != nil && !b.only.MatchString(key(e, c)) {
		return nil
	}
	return b.fresh(ctx, func(pool *pgxpool.Pool) error {
		if err := e.Open(ctx, pool, c.work); err != nil {
			return fmt.Errorf("opening %s: %w", e.Name(), err)
		}
		defer func() { _ = e.Close(context.WithoutCancel(ctx)) }()
		f, err := b.load(ctx, e, pool, c.work)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", e.Name(), c.label, err)
		}
		b.results[key(e, c)] = append(b.results[key(e, c)], f)
		fmt.Fprintf(os.Stderr, "%d  %-45s %9.0f steps/s  %6.0f us pg  %5.0f us client  %6.0f B wal  %.2f foreign\n",
			rep, key(e, c), f.StepsPerSecond, f.PostgresMicros, f.ClientMicros, f.WALBytes, f.Foreign)
		return nil
	})
}

// load warms up, sizes the run by that, and measures.
func (b *bench) load(ctx context.Context, e engine, pool *pgxpool.Pool, w work) (figures, error) {
	warm := max(1, 400/w.steps())
	var rate float64
	for range 2 {
		began := time.Now()
		if err := e.Run(ctx, warm); err != nil {
			return figures{}, err
		}
		rate = float64(warm) / time.Since(began).Seconds()
	}
	n := max(warm, int(rate*b.seconds), w.Batch)
	postmaster := b.postmaster()
	before, err := measureUsage(ctx, pool, postmaster, e.PIDs())
	if err != nil {
		return figures{}, err
	}
	if err := e.Run(ctx, n); err != nil {
		return figures{}, err
	}
	after, err := measureUsage(ctx, pool, postmaster, e.PIDs())
	return after.since(before, n, w.steps()), err
}

// idle measures one task at a time on an idle engine, submit to result.
func (b *bench) idle(ctx context.Context, e engine, c cell, n int) error {
	if _, can := e.Can(c.work); !can || (b.only != nil && !b.only.MatchString(key(e, c)+" idle")) {
		return nil
	}
	return b.fresh(ctx, func(pool *pgxpool.Pool) error {
		if err := e.Open(ctx, pool, c.work); err != nil {
			return fmt.Errorf("opening %s: %w", e.Name(), err)
		}
		defer func() { _ = e.Close(context.WithoutCancel(ctx)) }()
		for i := range n + n/4 {
			began := time.Now()
			if err := e.One(ctx); err != nil {
				return fmt.Errorf("%s, %s, one at a time: %w", e.Name(), c.label, err)
			}
			if i >= n/4 {
				b.latency[key(e, c)] = append(b.latency[key(e, c)], float64(time.Since(began).Microseconds())/1000)
			}
		}
		l := b.latency[key(e, c)]
		fmt.Fprintf(os.Stderr, "   %-45s idle p50 %.1f ms, p99 %.1f ms\n", key(e, c), median(l), quantile(l, 0.99))
		return nil
	})
}

// fresh gives a database that is dropped afterwards.
func (b *bench) fresh(ctx context.Context, use func(pool *pgxpool.Pool) error) error {
	name := fmt.Sprintf("bench_%d", time.Now().UnixNano())
	if _, err := b.admin.Exec(ctx, "create database "+name); err != nil {
		return err
	}
	defer func() { _, _ = b.admin.Exec(context.WithoutCancel(ctx), "drop database "+name+" with (force)") }()
	config, err := pgxpool.ParseConfig(b.server.URL(name))
	if err != nil {
		return err
	}
	config.MaxConns = 20
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	return use(pool)
}

func (b *bench) postmaster() int {
	var pid int
	_ = b.admin.QueryRow(context.Background(), "select split_part(pg_read_file('postmaster.pid'), e'\\n', 1)::int").Scan(&pid)
	return pid
}

// steps per second of an engine in a cell, median; NaN when it did not run.
func (b *bench) median(engine, label string, of func(figures) float64) float64 {
	var values []float64
	for _, f := range b.results[engine+" | "+label] {
		values = append(values, of(f))
	}
	if len(values) == 0 {
		return math.NaN()
	}
	return median(values)
}
