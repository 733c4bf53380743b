package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/client"
)

// operatorFlags gives a command --actor and --reason.
func (a *app) operatorFlags(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&a.operator.Actor, "actor", "", "who does this, for the audit (default: your user name)")
	c.Flags().StringVar(&a.operator.Reason, "reason", "", "why, for the audit (required)")
	return c
}

// who changes something, and why; both stand in pawl.operations and in the audit.
func (a *app) who() (client.By, error) {
	by := a.operator
	if strings.TrimSpace(by.Reason) == "" {
		return by, usagef("this changes something: say why with --reason \"…\"")
	}
	if by.Actor == "" {
		by.Actor = os.Getenv("USER")
		if u, err := user.Current(); err == nil {
			by.Actor = u.Username
		}
	}
	if by.Actor == "" {
		return by, usagef("this machine does not know your user name: name yourself with --actor")
	}
	return by, nil
}

// operate gives an operator's command and returns its outcome.
func (a *app) operate(ctx context.Context, command func(*database, client.By) (client.Outcome, error)) (outcome client.Outcome, err error) {
	by, err := a.who()
	if err != nil {
		return outcome, err
	}
	err = a.with(ctx, func(db *database) (err error) {
		outcome, err = command(db, by)
		return err
	})
	return outcome, err
}

// change gives an operator's command and prints its outcome.
func (a *app) change(ctx context.Context, done string, command func(*client.Client, client.By) (client.Outcome, error)) error {
	outcome, err := a.operate(ctx, func(db *database, by client.By) (client.Outcome, error) { return command(db.client, by) })
	if err != nil {
		return err
	}
	return a.printOutcome(done, outcome)
}

func (a *app) printOutcome(done string, outcome client.Outcome) error {
	if a.json {
		return a.printJSON(outcome.Details)
	}
	var fields map[string]any
	if err := json.Unmarshal(outcome.Details, &fields); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if outcome.Outcome == "unchanged" {
		a.say("nothing changed: it was so already")
		return nil
	}
	for _, said := range []string{"task_id", "step", "index", "queue", "template", "outcome", "status", "paused"} {
		delete(fields, said)
	}
	details := describe(fields)
	if len(details) > 0 {
		done += ": " + strings.Join(details, ", ")
	}
	a.say("%s", done)
	return nil
}
