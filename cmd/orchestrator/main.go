// Command orchestrator moves tasks: it turns requests into tasks, applies results, fires what is due. Any number of them
// may run on one database. `orchestrator --help` lists its settings.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/orchestrator"
	"github.com/pawl-dev/pawl/internal/telemetry"
)

const usage = `Usage: orchestrator [flags]

Moves tasks of the database that --database-url names; pawl migrate must have seen it. Any number may run.
SIGTERM or SIGINT stops it after the work at hand; a second one at once.
Settings come from flags, PAWL_ variables and a TOML file, in this order. Exit codes: 0 stopped, 1 failed, 2 usage.

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(run(ctx, stop, os.Args[1:]))
}

// run returns the exit code. stop gives the signals back, so that a second one ends the process.
func run(ctx context.Context, stop func(), args []string) int {
	var settings config.Orchestrator
	flags := pflag.NewFlagSet("orchestrator", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage, flags.FlagUsages()) }
	config.Bind(flags, &settings)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return 0
		}
		return complain(2, err)
	}
	if flags.NArg() > 0 {
		return complain(2, fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0)))
	}
	if err := config.Load(&settings, config.Sources{Flags: flags}); err != nil {
		return complain(2, err)
	}
	level, err := telemetry.ParseLevel(settings.LogLevel)
	if err != nil {
		return complain(2, err)
	}
	log := telemetry.NewLogger(os.Stderr, level)
	o, err := orchestrator.Start(ctx, orchestrator.FromSettings(settings, log))
	if err != nil {
		return complain(1, err)
	}
	<-ctx.Done()
	stop()
	log.Info("stopping", "grace", settings.Grace.String())
	if err := o.Stop(context.Background()); err != nil {
		return complain(1, err)
	}
	return 0
}

func complain(code int, err error) int {
	fmt.Fprintln(os.Stderr, "orchestrator:", err)
	return code
}
