package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/demo"
)

func (a *app) demoCommand() *cobra.Command {
	config := demo.Config{Out: a.Out}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run orders through workers in Go, Python and TypeScript, kill them, and prove what happened",
		Long: `Reads some hundred orders, starts a private Postgres, two orchestrators and three workers (Go, Python, TypeScript), each
a process of its own, sends each order with a plain pgmq.send and a tenth of them twice, kills the workers and an
orchestrator with SIGKILL in the middle, and proves from the tables: every order finished once, charged once, shipped once.

The workers in Python and TypeScript are those of a checkout; "make demo" sets up what they need. Where they are not
there, a Go worker serves their queues and the demo says so.

Ends with exit code 1 if that is not so. Leaves no process and no file behind.`,
		Example: `  pawl demo
  pawl demo --input my-orders.csv --products my-products.csv
  pawl demo --rate -1 --latency 1ms     # as fast as it goes
  pawl demo --languages go              # without Python and TypeScript
  pawl demo --keep                      # keep the database and the logs`,
		Args: cobra.NoArgs,
		RunE: run(func(ctx context.Context, _ []string) error {
			if config.Timeout == 0 || config.Orders < 0 {
				return usagef("--timeout is more than 0, --orders is not negative: leave them out for their defaults")
			}
			if config.Latency == 0 {
				config.Latency = -1 // none: Config's zero is its default
			}
			err := demo.Run(ctx, config)
			if errors.Is(err, demo.ErrNotProven) {
				return &failure{code: ExitFailed, err: err, hint: "Run it again with --keep and look at the folder it names."}
			}
			return err
		}),
	}
	flags := c.Flags()
	flags.StringVar(&config.Input, "input", "", "file of orders (default: examples/orders/orders.csv)")
	flags.StringVar(&config.Products, "products", "", "file of products (default: examples/orders/products.csv)")
	flags.IntVar(&config.Orders, "orders", 0, "only the first so many orders")
	flags.IntVar(&config.Rate, "rate", 50, "requests sent per second; -1: as fast as they go")
	config.Latency, config.Timeout = 20*time.Millisecond, 3*time.Minute
	durationVar(flags, &config.Latency, "latency", "of the services that the handlers call; a step takes one to three times this")
	flags.StringSliceVar(&config.Languages, "languages", demo.Languages, "of the workers; Go stands in for those that are left out")
	durationVar(flags, &config.Timeout, "timeout", "give up after this time")
	flags.BoolVar(&config.Keep, "keep", false, "keep the folder with the database and the logs")
	return a.ownDatabase(c)
}

// demoProcessCommand is one process of the demo; people do not call it.
func (a *app) demoProcessCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "demo-process orchestrator|worker [QUEUE…]",
		Short:  "One process of the demo, until its standard input ends",
		Hidden: true, DisableFlagParsing: true,
		Args: cobra.MinimumNArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			return demo.RunProcess(ctx, args, a.In)
		}),
	}
}
