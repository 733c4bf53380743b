package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
)

// operator is who changes something, and why; both stand in pawl.operations and in the audit.
type operator struct {
	actor, reason string
}

// operatorFlags gives a command --actor and --reason.
func (a *app) operatorFlags(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&a.operator.actor, "actor", "", "who does this, for the audit (default: your user name)")
	c.Flags().StringVar(&a.operator.reason, "reason", "", "why, for the audit (required)")
	return c
}

func (a *app) who() (operator, error) {
	o := a.operator
	if strings.TrimSpace(o.reason) == "" {
		return o, usagef("this changes something: say why with --reason \"…\"")
	}
	if o.actor == "" {
		o.actor = os.Getenv("USER")
		if u, err := user.Current(); err == nil {
			o.actor = u.Username
		}
	}
	if o.actor == "" {
		return o, usagef("this machine does not know your user name: name yourself with --actor")
	}
	return o, nil
}

// change calls an operator function, whose last two arguments are actor and reason, and prints its outcome.
func (a *app) change(ctx context.Context, done, function string, args ...any) error {
	return a.operate(ctx, func(outcome json.RawMessage) error { return a.printOutcome(done, outcome) }, function, args...)
}

// operate calls an operator function and hands its outcome on.
func (a *app) operate(ctx context.Context, then func(outcome json.RawMessage) error, function string, args ...any) error {
	by, err := a.who()
	if err != nil {
		return err
	}
	return a.with(ctx, func(pool *pgxpool.Pool) error {
		outcome, err := call(ctx, pool, function, append(args, by.actor, by.reason)...)
		if err != nil {
			return err
		}
		return then(outcome)
	})
}

// call runs one function of schema pawl that returns jsonb. Its name is a constant of this package.
func call(ctx context.Context, pool *pgxpool.Pool, function string, args ...any) (json.RawMessage, error) {
	places := make([]string, len(args))
	for i := range args {
		places[i] = fmt.Sprintf("$%d", i+1)
	}
	var outcome json.RawMessage
	err := pool.QueryRow(ctx, fmt.Sprintf("select pawl.%s(%s)", function, strings.Join(places, ", ")), args...).Scan(&outcome)
	if err != nil {
		return nil, fmt.Errorf("calling pawl.%s: %w", function, err)
	}
	return outcome, nil
}

func (a *app) printOutcome(done string, outcome json.RawMessage) error {
	if a.json {
		if len(outcome) == 0 {
			outcome = json.RawMessage("null")
		}
		return a.printJSON(outcome)
	}
	var fields map[string]any
	if json.Unmarshal(outcome, &fields) != nil {
		a.say("%s", done)
		return nil
	}
	if fields["outcome"] == "unchanged" {
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
