package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/client"
)

// taskCommand is one of the client's.
type taskCommand func(c *client.Client, ctx context.Context, id uuid.UUID, by client.By) (client.Outcome, error)

// eachTask gives one command to every task named, each in its own transaction.
func (a *app) eachTask(ctx context.Context, tasks []string, done string, command taskCommand) error {
	by, err := a.who()
	if err != nil {
		return err
	}
	var failures []error
	for _, typed := range tasks {
		err := a.withTask(ctx, typed, func(db *database, id uuid.UUID) error {
			outcome, err := command(db.client, ctx, id, by)
			if err != nil {
				return err
			}
			return a.printOutcome(fmt.Sprintf("task %s %s", id, done), outcome)
		})
		if err != nil && len(tasks) > 1 {
			err = fmt.Errorf("task %s: %w", typed, err)
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

func (a *app) taskCancel() *cobra.Command {
	return a.operatorFlags(&cobra.Command{
		Use:     "cancel TASK…",
		Short:   "Cancel tasks: what runs is told within a heartbeat, nothing new starts",
		Example: `  pawl task cancel 019a3f0c --reason "order withdrawn by the customer"`,
		Args:    cobra.MinimumNArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			return a.eachTask(ctx, args, "cancelled", (*client.Client).Cancel)
		}),
	})
}

func (a *app) taskRetry() *cobra.Command {
	var from string
	c := a.operatorFlags(&cobra.Command{
		Use:   "retry TASK…",
		Short: "Run the failed steps of tasks again, keeping the results of the others",
		Long: `Runs the failed steps of tasks again and what could not run because of them; results of other steps are kept.
With --from, that step and everything after it run again, whether they failed or not.`,
		Example: `  pawl task retry 019a3f0c --reason "payment provider is back"
  pawl task retry 019a3f0c --from ship --reason "label printed for the wrong address"`,
		Args: cobra.MinimumNArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			command := (*client.Client).Retry
			if from != "" {
				command = func(c *client.Client, ctx context.Context, id uuid.UUID, by client.By) (client.Outcome, error) {
					return c.RetryFrom(ctx, id, from, by)
				}
			}
			return a.eachTask(ctx, args, "runs again", command)
		}),
	})
	c.Flags().StringVar(&from, "from", "", "run this step and everything after it again")
	return c
}

func (a *app) taskResolve() *cobra.Command {
	var result string
	c := a.operatorFlags(&cobra.Command{
		Use:   "resolve TASK…",
		Short: "End tasks as resolved by hand: the work was done elsewhere",
		Long:  "Ends tasks as resolved by hand, with a result if there is one. What is open is cancelled; they count as completed.",
		Example: `  pawl task resolve 019a3f0c --reason "sent by courier, ticket 4711"
  pawl task resolve 019a3f0c --result '{"tracking":"X1"}' --reason "sent by courier, ticket 4711"`,
		Args: cobra.MinimumNArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			var value any
			if result != "" {
				var err error
				if value, err = parseJSON("--result", result); err != nil {
					return err
				}
			}
			return a.eachTask(ctx, args, "resolved", func(c *client.Client, ctx context.Context, id uuid.UUID, by client.By) (client.Outcome, error) {
				return c.ResolveTask(ctx, id, value, by)
			})
		}),
	})
	c.Flags().StringVar(&result, "result", "", "the task's result, as JSON")
	return c
}
