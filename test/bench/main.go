package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/internal/devpg"
)

// options of the command.
type options struct {
	short     bool
	reps      int
	seconds   float64
	only, out string
	idle      int
}

func main() {
	var o options
	flag.BoolVar(&o.short, "short", false, "the short version: Pawl and raw PGMQ, under three minutes")
	flag.IntVar(&o.reps, "reps", 3, "interleaved rounds of each cell")
	flag.Float64Var(&o.seconds, "seconds", 2, "length of one run")
	flag.StringVar(&o.only, "only", "", "regular expression over 'ENGINE | CELL'")
	flag.StringVar(&o.out, "out", "", "folder for benchmarks.md, benchmarks.csv and the plot; default: none are written")
	flag.IntVar(&o.idle, "idle", 100, "tasks one at a time for the latency; 0: none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options) error {
	server, err := devpg.Start(ctx, devpg.Config{Settings: settings()})
	if err != nil {
		return err
	}
	defer server.Stop()
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
	engines := []engine{&pawlEngine{}}
	if !o.short {
		engines = append(engines, peers()...)
	}
	cells := plan(o.short)
	limit := cell{group: "limit", label: "messages, batch 100", work: work{Shape: "single", Batch: 100}}
	for rep := range o.reps {
		if err := b.round(ctx, &rawPGMQ{}, limit, rep+1); err != nil {
			return err
		}
		for _, c := range cells {
			for _, e := range engines {
				if err := b.round(ctx, e, c, rep+1); err != nil {
					return err
				}
			}
		}
	}
	if o.idle > 0 {
		for _, c := range cells[:3] { // chain, diamond, single
			for _, e := range engines {
				if err := b.idle(ctx, e, c, o.idle); err != nil {
					return err
				}
			}
		}
	}
	if o.out != "" {
		if err := b.write(ctx, o.out, engines, cells); err != nil {
			return err
		}
	}
	b.table(os.Stdout, engines, cells)
	ratio := b.median("Pawl", "diamond", func(f figures) float64 { return f.StepsPerSecond }) /
		(b.median((&rawPGMQ{}).Name(), limit.label, func(f figures) float64 { return f.StepsPerSecond }) / 2)
	fmt.Printf("ratio_to_pgmq_bound=%.2f\n", ratio)
	return nil
}

// peers are the engines beside Pawl.
func peers() []engine { return []engine{&riverEngine{}, &riverEngine{exact: true}} }
