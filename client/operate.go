package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/workflow"
)

// By is who gives an operator's command, and why. Both are required, and kept in the audit.
type By struct{ Actor, Reason string }

// Outcome is what became of an operator's command. Every command may be repeated.
type Outcome struct {
	Outcome string             // what was done, or unchanged
	State   workflow.TaskState // of the task, after it
	Status  string
	// Details is the whole answer, as JSON.
	Details json.RawMessage
}

// StepID names one step of one task.
type StepID struct {
	TaskID uuid.UUID
	Step   string
	Index  int
}

// Cancel ends an open task as cancelled. Handlers at work hear of it with their next heartbeat.
func (c *Client) Cancel(ctx context.Context, id uuid.UUID, by By) (Outcome, error) {
	return c.command(ctx, `pawl.cancel_task($1::uuid, $2::text, $3::text)`, id, by.Actor, by.Reason)
}

// Retry runs the failed and cancelled steps of a task again, keeping what is complete.
func (c *Client) Retry(ctx context.Context, id uuid.UUID, by By) (Outcome, error) {
	return c.command(ctx, `pawl.retry_task($1::uuid, null, $2::text, $3::text)`, id, by.Actor, by.Reason)
}

// RetryFrom runs a step and all that follow it again, whatever they were.
func (c *Client) RetryFrom(ctx context.Context, id uuid.UUID, step string, by By) (Outcome, error) {
	return c.command(ctx, `pawl.retry_task($1::uuid, $2::text, $3::text, $4::text)`, id, step, by.Actor, by.Reason)
}

// RetryStep runs a failed step again, or one in back-off at once.
func (c *Client) RetryStep(ctx context.Context, step StepID, by By) (Outcome, error) {
	return c.command(ctx, `pawl.retry_step($1::uuid, $2::text, $3::int, $4::text, $5::text)`, step.TaskID, step.Step, step.Index, by.Actor, by.Reason)
}

// CompleteStep completes a step with a result, as if its handler had returned it.
func (c *Client) CompleteStep(ctx context.Context, step StepID, result any, by By) (Outcome, error) {
	text, err := encode(result)
	if err != nil {
		return Outcome{}, fmt.Errorf("completing step %s: encoding result: %w", step.Step, err)
	}
	return c.command(ctx, `pawl.complete_step($1::uuid, $2::text, $3::int, $4::text::jsonb, $5::text, $6::text)`,
		step.TaskID, step.Step, step.Index, string(text), by.Actor, by.Reason)
}

// ResolveStep declares a step done without a result: what needs it goes on.
func (c *Client) ResolveStep(ctx context.Context, step StepID, by By) (Outcome, error) {
	return c.command(ctx, `pawl.resolve_step($1::uuid, $2::text, $3::int, $4::text, $5::text)`, step.TaskID, step.Step, step.Index, by.Actor, by.Reason)
}

// ResolveTask declares a task done, with a result unless it is nil; what is open of it is cancelled.
func (c *Client) ResolveTask(ctx context.Context, id uuid.UUID, result any, by By) (Outcome, error) {
	var text *string
	if result != nil {
		encoded, err := encode(result)
		if err != nil {
			return Outcome{}, fmt.Errorf("resolving task %s: encoding result: %w", id, err)
		}
		value := string(encoded)
		text = &value
	}
	return c.command(ctx, `pawl.resolve_task($1::uuid, $2::text::jsonb, $3::text, $4::text)`, id, text, by.Actor, by.Reason)
}

// DeadLetters chooses dead letters for a command.
type DeadLetters struct {
	// Filter is as pawl.redrive_dead_letters takes it, such as {"queue": "shop_queue"}; nil is all.
	Filter map[string]any
	// Quantity is how many at most. Zero: 100.
	Quantity int
	// Spread is the time over which they are sent again. Zero: at once. To drop takes no time: it is refused there.
	Spread time.Duration
}

func (d DeadLetters) arguments() (filter string, quantity int, err error) {
	text, err := encode(d.Filter)
	if d.Filter == nil {
		text = json.RawMessage("{}")
	}
	if d.Quantity == 0 {
		d.Quantity = 100
	}
	return string(text), d.Quantity, err
}

// RedriveDeadLetters sends dead letters to their queues again.
func (c *Client) RedriveDeadLetters(ctx context.Context, which DeadLetters, by By) (Outcome, error) {
	filter, quantity, err := which.arguments()
	if err != nil {
		return Outcome{}, fmt.Errorf("redriving dead letters: encoding filter: %w", err)
	}
	return c.command(ctx, `pawl.redrive_dead_letters($1::text::jsonb, $2::int, make_interval(secs => $3::float8), $4::text, $5::text)`,
		filter, quantity, which.Spread.Seconds(), by.Actor, by.Reason)
}

// DropDeadLetters marks dead letters as dropped: nobody will look at them again.
func (c *Client) DropDeadLetters(ctx context.Context, which DeadLetters, by By) (Outcome, error) {
	if which.Spread != 0 {
		return Outcome{}, errors.New("dropping dead letters: Spread is of sending again: leave it out")
	}
	filter, quantity, err := which.arguments()
	if err != nil {
		return Outcome{}, fmt.Errorf("dropping dead letters: encoding filter: %w", err)
	}
	return c.command(ctx, `pawl.drop_dead_letters($1::text::jsonb, $2::int, $3::text, $4::text)`, filter, quantity, by.Actor, by.Reason)
}

// Explain says why a task stands where it stands, as JSON.
func (c *Client) Explain(ctx context.Context, id uuid.UUID) (json.RawMessage, error) {
	outcome, err := c.command(ctx, `pawl.explain_task($1::uuid)`, id)
	return outcome.Details, err
}

// command calls a function that gives an outcome.
func (c *Client) command(ctx context.Context, call string, arguments ...any) (Outcome, error) {
	name, _, _ := strings.Cut(call, "(")
	var answer []byte
	err := c.borrow(ctx, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, `select `+call+`::text`, arguments...).Scan(&answer)
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("calling %s: %w", name, commandError(err))
	}
	var outcome Outcome
	if err := json.Unmarshal(answer, &outcome); err != nil {
		return Outcome{}, fmt.Errorf("reading the answer of %s: %w", name, err)
	}
	outcome.Details = answer
	return outcome, nil
}
