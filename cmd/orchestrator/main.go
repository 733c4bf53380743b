// Command orchestrator moves tasks: it turns requests into tasks, applies results, fires what is due. Any number of them
// may run on one database. `orchestrator --help` lists its settings.
package main

import (
	"context"
	"log/slog"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/orchestrator"
	"github.com/pawl-dev/pawl/internal/program"
)

const usage = `Usage: orchestrator [flags]

Moves tasks of the database that --database-url names; pawl migrate must have seen it. Any number may run.
SIGTERM or SIGINT stops it after the work at hand; a second one at once.
Settings come from flags, PAWL_ variables and a TOML file, in this order. Exit codes: 0 stopped, 1 failed, 2 usage.

`

func main() { program.Main(run) }

// run returns the exit code.
func run(ctx context.Context, args []string) int {
	var settings config.Orchestrator
	p := program.Program{Name: "orchestrator", Usage: usage, Settings: &settings, LogLevel: &settings.LogLevel}
	p.Work = func(ctx context.Context, log *slog.Logger) error {
		if err := program.CheckURLs(settings.DatabaseURL, settings.ListenerURL); err != nil {
			return err
		}
		return work(ctx, settings, log)
	}
	return p.Run(ctx, args)
}

// work runs an orchestrator until ctx ends.
func work(ctx context.Context, settings config.Orchestrator, log *slog.Logger) error {
	var o *orchestrator.Orchestrator
	err := program.Await(ctx, settings.ConnectWait, log, func(ctx context.Context) (err error) {
		o, err = orchestrator.Start(ctx, orchestrator.FromSettings(settings, log))
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		log.Info("stopped before the database could be reached")
		return nil
	case err != nil:
		return err
	}
	<-ctx.Done()
	log.Info("stopping", "grace", settings.Grace.String())
	return o.Stop(context.WithoutCancel(ctx))
}
