package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

type options struct {
	duration time.Duration
	round    time.Duration
	rate     float64
	load     float64
	open     int
	seed     uint64
	plan     string // file to replay
	planOut  string
	out      string
	keep     bool
	noClock  bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var o options
	flag.DurationVar(&o.duration, "duration", time.Hour, "how long the fire burns, without the time in which things settle")
	flag.DurationVar(&o.round, "round", 5*time.Minute, "length of one round")
	flag.Float64Var(&o.rate, "faults", 6, "faults a second")
	flag.Float64Var(&o.load, "load", 20, "requests a second")
	flag.IntVar(&o.open, "open", 200, "requests that may be under way")
	flag.Uint64Var(&o.seed, "seed", 0, "of the plan; 0 is one from the clock")
	flag.StringVar(&o.plan, "plan", "", "file of a plan to run again")
	flag.StringVar(&o.planOut, "plan-out", "", "where the plan is written; default soak-SEED.jsonl in the folder for temporary files")
	flag.StringVar(&o.out, "out", "", "file for the report, as Markdown")
	flag.BoolVar(&o.noClock, "no-clock", false, "leave out jumps of Postgres' clock, which need libfaketime")
	flag.BoolVar(&o.keep, "keep", false, "keep logs and ledger (a failed run always does)")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "soak: unexpected argument %q; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	ok, err := run(ctx, o, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) (ok bool, err error) {
	folder, err := os.MkdirTemp("", "pawl-soak-")
	if err != nil {
		return false, fmt.Errorf("making a folder: %w", err)
	}
	if err := os.Chmod(folder, 0o755); err != nil { // Postgres and PgBouncer may run as another user
		return false, fmt.Errorf("making a folder: %w", err)
	}
	s := &soak{options: o, folder: folder, out: out}
	if err := s.draw(); err != nil {
		return false, err
	}
	ok, err = s.run(ctx)
	if ok && err == nil && !o.keep {
		return ok, os.RemoveAll(folder)
	}
	fmt.Fprintf(out, "\nLogs and ledger are in %s\n", folder)
	return ok, err
}
