package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/doctor"
)

// errUnhealthy is what pawl doctor ends with when an invariant does not hold.
var errUnhealthy = errors.New("an invariant of the engine does not hold")

func (a *app) doctorCommand() *cobra.Command {
	c := doctor.Config{Grace: time.Minute}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the engine's invariants, read-only, in one snapshot",
		Long: `Checks the engine's invariants: transitions and audit, counters, messages, attempts, identities, gates, progress.
It reads one snapshot, writes nothing and locks nothing, so it may run on a production database at any time.
With --at-rest it also checks what holds only while nothing happens: queues drained, leases alive, due work done.

Exits 1 when an invariant does not hold. Advice fails nothing: the server (old
transactions, deadlocks), queues that nobody works on, dead letters.`,
		Example: "  pawl doctor\n  pawl doctor --at-rest --grace 10s\n  pawl doctor --json | jq .violations",
		Args:    cobra.NoArgs,
		RunE: run(func(ctx context.Context, _ []string) error {
			if c.Grace == 0 {
				c.Grace = -1 // none: Config's zero is its default
			}
			return a.with(ctx, func(db *database) error { return a.examine(ctx, db, c) })
		}),
	}
	cmd.Flags().BoolVar(&c.AtRest, "at-rest", false, "also check what holds only while nothing happens")
	durationVar(cmd.Flags(), &c.Grace, "grace", "how long something may lie before it counts as lying still")
	cmd.Flags().IntVar(&c.Samples, "samples", 5, "violations to show of each invariant")
	return cmd
}

func (a *app) examine(ctx context.Context, db *database, c doctor.Config) error {
	report, err := doctor.Examine(ctx, db, c)
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(report)
	} else {
		doctor.Print(a.Out, report)
	}
	if err == nil && !report.Healthy() {
		err = errUnhealthy
	}
	return err
}
