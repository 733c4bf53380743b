package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
)

// withTask opens the database and finds the task that the user named.
func (a *app) withTask(ctx context.Context, typed string, work func(*pgxpool.Pool, uuid.UUID) error) error {
	return a.with(ctx, func(pool *pgxpool.Pool) error {
		id, err := findTask(ctx, pool, typed)
		if err != nil {
			return err
		}
		return work(pool, id)
	})
}

func (a *app) taskShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show TASK",
		Short:   "Show a task, its steps, result and error",
		Example: "  pawl task show 019a3f0c\n  pawl task show 019a3f0c-… --json | jq .result",
		Args:    cobra.ExactArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			return a.withTask(ctx, args[0], func(pool *pgxpool.Pool, id uuid.UUID) error {
				t, err := readTask(ctx, pool, id)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(t)
				}
				return a.printTask(t)
			})
		}),
	}
}

func (a *app) printTask(t taskDetail) error {
	a.say("task       %s", t.TaskID)
	a.say("template   %s", t.Template)
	a.say("state      %s, %d of %d steps done, %s", t.State, t.Steps-t.Open, t.Steps, t.took())
	for _, field := range []struct {
		name  string
		value *string
	}{{"key", t.Key}, {"requester", t.Requester}, {"correlation", t.Correlation}, {"reply to", t.ReplyTo}} {
		if field.value != nil {
			a.say("%-10s %s", field.name, *field.value)
		}
	}
	if len(t.Tags) > 0 {
		a.say("tags       %s", t.Tags)
	}
	a.say("requested  %s", when(&t.RequestedAt))
	if t.FinalizedAt != nil {
		a.say("finalized  %s", when(t.FinalizedAt))
	}
	if t.DueAt != nil {
		a.say("due        %s", when(t.DueAt))
	}
	if len(t.Input) > 0 {
		a.say("input      %s", indented(t.Input, "           "))
	}
	if len(t.Result) > 0 {
		a.say("result     %s", indented(t.Result, "           "))
	}
	if len(t.Error) > 0 {
		a.say("error      %s", indented(t.Error, "           "))
	}
	a.say("")
	lines := make([][]string, len(t.StepRows))
	for i, s := range t.StepRows {
		name := s.Step
		if s.Index > 0 {
			name = fmt.Sprintf("%s[%d]", s.Step, s.Index)
		}
		lines[i] = []string{name, s.State, fmt.Sprint(s.Attempt), fmt.Sprint(s.Deliveries), s.Queue, text(s.Worker), clip(errorMessage(s.Error), 60)}
	}
	return a.table([]string{"STEP", "STATE", "ATTEMPT", "DELIVERIES", "QUEUE", "WORKER", "ERROR"}, lines, "No steps yet.")
}

func errorMessage(raw json.RawMessage) string {
	var e struct{ Type, Error, Message string }
	if len(raw) == 0 || json.Unmarshal(raw, &e) != nil {
		return "-"
	}
	if e.Type == "" {
		e.Type = e.Error
	}
	return e.Type + ": " + e.Message
}

type historyRow struct {
	At       time.Time `json:"at"`
	Step     *string   `json:"step,omitempty"`
	Index    *int      `json:"index,omitempty"`
	From     *string   `json:"from,omitempty"`
	To       string    `json:"to"`
	Event    string    `json:"event"`
	Revision int       `json:"revision"`
	Attempt  *int      `json:"attempt,omitempty"`
	Delivery *int      `json:"delivery,omitempty"`
	Actor    *string   `json:"actor,omitempty"`
	Reason   *string   `json:"reason,omitempty"`
}

func (a *app) taskHistory() *cobra.Command {
	return &cobra.Command{
		Use:     "history TASK",
		Short:   "Show every transition of a task and its steps, from the audit",
		Example: "  pawl task history 019a3f0c\n  pawl task history 019a3f0c --json | jq 'map(select(.actor))'",
		Args:    cobra.ExactArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			return a.withTask(ctx, args[0], func(pool *pgxpool.Pool, id uuid.UUID) error {
				rows, err := pool.Query(ctx, `select at, step, index, from_state as from, to_state as to, event, revision, attempt, delivery, actor, reason
					from pawl.audit where task_id = $1
					  and at >= (select requested_at from pawl.tasks where task_id = $1) - interval '1 hour'
					order by at, xid, step nulls first, index, revision`, id)
				if err != nil {
					return fmt.Errorf("reading the history of task %s: %w", id, err)
				}
				list, err := pgx.CollectRows(rows, pgx.RowToStructByName[historyRow])
				if err != nil {
					return fmt.Errorf("reading the history of task %s: %w", id, err)
				}
				if a.json {
					return a.printJSON(list)
				}
				return a.printHistory(list)
			})
		}),
	}
}

func (a *app) printHistory(list []historyRow) error {
	lines := make([][]string, len(list))
	for i, h := range list {
		name := "(task)"
		if h.Step != nil {
			name = *h.Step
			if h.Index != nil && *h.Index > 0 {
				name = fmt.Sprintf("%s[%d]", *h.Step, *h.Index)
			}
		}
		attempt := ""
		if h.Attempt != nil {
			attempt = fmt.Sprint(*h.Attempt)
			if h.Delivery != nil && *h.Delivery > 0 {
				attempt = fmt.Sprintf("%d.%d", *h.Attempt, *h.Delivery)
			}
		}
		by := ""
		if h.Actor != nil {
			by = *h.Actor + ": " + text(h.Reason)
		}
		lines[i] = []string{h.At.Local().Format("15:04:05.000"), name, text(h.From) + " → " + h.To, h.Event, attempt, by}
	}
	return a.table([]string{"AT", "STEP", "TRANSITION", "EVENT", "ATTEMPT", "BY"}, lines, "No history: the audit's retention is over.")
}
