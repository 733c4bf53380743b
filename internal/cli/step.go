package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/client"
)

func (a *app) stepCommand() *cobra.Command {
	return group("step", "Retry, resolve or complete one step of a task",
		"A step is named by its task and its name; STEP[N] names one of several of that name.",
		a.stepRetry(), a.stepResolve(), a.stepComplete())
}

// parseStep reads NAME or NAME[INDEX].
func parseStep(s string) (name string, index int, err error) {
	name, rest, indexed := strings.Cut(s, "[")
	if !indexed {
		return name, 0, nil
	}
	index, err = strconv.Atoi(strings.TrimSuffix(rest, "]"))
	if err != nil || index < 0 || !strings.HasSuffix(rest, "]") {
		return "", 0, usagef("step %q: it is written NAME or NAME[INDEX], as in ship or ship[2]", s)
	}
	return name, index, nil
}

// stepCommand is one of the client's.
type stepCommand func(c *client.Client, ctx context.Context, step client.StepID, by client.By) (client.Outcome, error)

// oneStep gives a command to the step that is named by its task and its name.
func (a *app) oneStep(ctx context.Context, named []string, done string, command stepCommand) error {
	by, err := a.who()
	if err != nil {
		return err
	}
	step, index, err := parseStep(named[1])
	if err != nil {
		return err
	}
	return a.withTask(ctx, named[0], func(db *database, id uuid.UUID) error {
		outcome, err := command(db.client, ctx, client.StepID{TaskID: id, Step: step, Index: index}, by)
		if err != nil {
			return err
		}
		return a.printOutcome(fmt.Sprintf("step %s of task %s %s", named[1], id, done), outcome)
	})
}

func (a *app) stepRetry() *cobra.Command {
	return a.operatorFlags(&cobra.Command{
		Use:     "retry TASK STEP",
		Short:   "Run a failed step again",
		Example: `  pawl step retry 019a3f0c ship --reason "carrier is back"`,
		Args:    cobra.ExactArgs(2),
		RunE: run(func(ctx context.Context, args []string) error {
			return a.oneStep(ctx, args, "runs again", (*client.Client).RetryStep)
		}),
	})
}

func (a *app) stepResolve() *cobra.Command {
	return a.operatorFlags(&cobra.Command{
		Use:     "resolve TASK STEP",
		Short:   "Count a step as done by hand, without a result: its dependents go on",
		Example: `  pawl step resolve 019a3f0c notify --reason "told by phone"`,
		Args:    cobra.ExactArgs(2),
		RunE: run(func(ctx context.Context, args []string) error {
			return a.oneStep(ctx, args, "resolved", (*client.Client).ResolveStep)
		}),
	})
}

func (a *app) stepComplete() *cobra.Command {
	var result string
	c := a.operatorFlags(&cobra.Command{
		Use:     "complete TASK STEP --result JSON",
		Short:   "Complete a step by hand with a result, which its dependents receive",
		Example: `  pawl step complete 019a3f0c charge --result '{"charge_id":"ch_81"}' --reason "charged in the provider's console"`,
		Args:    cobra.ExactArgs(2),
		RunE: run(func(ctx context.Context, args []string) error {
			value, err := parseJSON("--result", result)
			if err != nil {
				return err
			}
			return a.oneStep(ctx, args, "completed", func(c *client.Client, ctx context.Context, step client.StepID, by client.By) (client.Outcome, error) {
				return c.CompleteStep(ctx, step, value, by)
			})
		}),
	})
	c.Flags().StringVar(&result, "result", "", "the step's result, as JSON (required)")
	return c
}
