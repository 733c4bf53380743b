package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) taskWait() *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "wait TASK",
		Short: "Wait for a task's end and print its result",
		Long: `Waits for a task's end and prints its result; the id of a request that waits will do. Says so when a person
is waited for (blocked_by_failures). Exit code 4 when it did not complete, 7 when --timeout ran out first.`,
		Example: `  pawl task wait 019a3f0c --timeout 5m
  pawl task wait 019a3f0c --json | jq .result`,
		Args: cobra.ExactArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			return within(ctx, timeout, func(ctx context.Context) error {
				return a.with(ctx, func(db *database) error {
					id, err := findTask(ctx, db, args[0])
					err = orRequest(err, func(r *taskless) error {
						if id = r.RequestID; !r.Waits {
							return err
						}
						return nil
					})
					if err != nil {
						return err
					}
					return a.awaitTask(ctx, db, decision{TaskID: id})
				})
			})
		}),
	}
	durationVar(c.Flags(), &timeout, "timeout", "give up after this time, as 30s or 5m (default: never)")
	return c
}
