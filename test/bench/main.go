package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/internal/devpg"
)

// options of the command.
type options struct {
	short       bool
	reps        int
	seconds     float64
	only, out   string
	idle        int
	rates       string
	rateSeconds float64
	growth      bool
	growing     growthOptions
}

func main() {
	var o options
	flag.BoolVar(&o.short, "short", false, "the short version: Pawl and raw PGMQ, under three minutes")
	flag.IntVar(&o.reps, "reps", 3, "interleaved rounds of each cell")
	flag.Float64Var(&o.seconds, "seconds", 2, "length of one run")
	flag.StringVar(&o.only, "only", "", "regular expression over 'ENGINE | CELL'; also 'Pawl | submits …', 'ENGINE | rates', 'growth | finished6'")
	flag.StringVar(&o.out, "out", "", "folder for benchmarks.md, benchmarks.csv and the plot, or growth.md; default: none are written")
	flag.IntVar(&o.idle, "idle", 100, "tasks one at a time for the latency; 0: none")
	flag.StringVar(&o.rates, "rates", "", "latency while tasks come at these rates, as in 1,10,100,max; default: not measured")
	flag.Float64Var(&o.rateSeconds, "rate-seconds", 30, "length of each of -rates")
	flag.BoolVar(&o.growth, "growth", false, "instead: Pawl in a database that holds much")
	flag.DurationVar(&o.growing.hold, "hold", 10*time.Second, "with -growth: how long a transaction is held open")
	flag.DurationVar(&o.growing.steady, "steady", 10*time.Second, "with -growth: how long the load lasts before bloat is measured")
	flag.Float64Var(&o.growing.scale, "scale", 1, "with -growth: fill with this share of 10⁵ and 10⁶ tasks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options) error {
	rates, err := parseRates(o.rates)
	if err != nil {
		return err
	}
	server, err := devpg.Start(ctx, devpg.Config{Settings: settings()})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	admin, err := pgxpool.New(ctx, server.URL("postgres"))
	if err != nil {
		return err
	}
	defer admin.Close()
	b := &bench{server: server, admin: admin, reps: o.reps, seconds: o.seconds, results: map[string][]figures{},
		latency: map[string][]float64{}, missing: map[string]string{}}
	if o.only != "" {
		if b.only, err = regexp.Compile(o.only); err != nil {
			return fmt.Errorf("reading -only: %w", err)
		}
	}
	if o.growth {
		return b.growth(ctx, o)
	}
	engines := []engine{&pawlEngine{}}
	if !o.short {
		engines = append(engines, peers()...)
	}
	cells := plan(o.short)
	err = errors.Join(b.all(ctx, o, engines, cells), b.underLoad(ctx, rates, o.rateSeconds))
	if err == nil && o.out != "" {
		err = b.write(ctx, o.out, engines, cells)
	}
	b.table(os.Stdout, engines, cells)
	b.more(os.Stdout)
	b.change(os.Stdout, committed(ctx), cells)
	fmt.Printf("ratio_to_pgmq_bound=%s\n", b.ratio())
	return err
}

// all runs every cell of every engine, in turns, then the idle latencies.
func (b *bench) all(ctx context.Context, o options, engines []engine, cells []cell) error {
	for rep := range b.reps {
		for _, t := range turns(engines, cells) {
			if err := b.round(ctx, t.engine, t.cell, rep+1); err != nil {
				return err
			}
		}
		if o.short {
			continue
		}
		if err := b.submit(ctx, rep+1); err != nil {
			return err
		}
	}
	for _, c := range cells[:3] { // chain, diamond, single
		for _, e := range engines {
			if err := b.idle(ctx, e, c, o.idle); err != nil {
				return err
			}
		}
	}
	return nil
}

// peers are the engines beside Pawl.
func peers() []engine {
	return append([]engine{&riverEngine{}, &riverEngine{exact: true}}, npmPeers()...)
}
