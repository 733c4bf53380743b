package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// withTask opens the database and finds the task that the user named.
func (a *app) withTask(ctx context.Context, typed string, work func(*database, uuid.UUID) error) error {
	return a.with(ctx, func(db *database) error {
		id, err := findTask(ctx, db, typed)
		if err != nil {
			return err
		}
		return work(db, id)
	})
}

func (a *app) taskShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show TASK",
		Short:   "Show a task, its steps, result and error",
		Example: "  pawl task show 019a3f0c\n  pawl task show 019a3f0c-… --json | jq .result",
		Args:    cobra.ExactArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			return a.withTask(ctx, args[0], func(db *database, id uuid.UUID) error {
				t, err := readTaskAndSteps(ctx, db, id)
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
	a.say("state      %s, %d of %d steps ended, %s", t.State, t.Steps-t.Open, t.Steps, t.took())
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
		lines[i] = []string{stepName(s.Step, s.Index), s.State, fmt.Sprint(s.Attempt), fmt.Sprint(s.Deliveries), s.Queue, dash(s.Worker), oneLine(errorMessage(s.Error))}
	}
	return a.table([]string{"STEP", "STATE", "ATTEMPT", "DELIVERIES", "QUEUE", "WORKER", "ERROR"}, lines, "No steps yet.")
}

// errorMessage is the error of a step or task in one line.
func errorMessage(raw json.RawMessage) string {
	var e struct{ Step, Type, Error, Message string }
	if len(raw) == 0 || json.Unmarshal(raw, &e) != nil {
		return "-"
	}
	if e.Type == "" {
		e.Type = e.Error
	}
	line := e.Type + ": " + e.Message
	if e.Step != "" {
		line = "step " + e.Step + ": " + line
	}
	return line
}

type historyRow struct {
	At        time.Time `json:"at"`
	Step      string    `json:"step,omitempty"`
	Index     int       `json:"index,omitempty"`
	From      string    `json:"from,omitempty"`
	To        string    `json:"to"`
	Event     string    `json:"event"`
	Revision  int       `json:"revision"`
	Attempt   int       `json:"attempt,omitempty"`
	Delivery  int       `json:"delivery,omitempty"`
	Processor string    `json:"processor,omitempty"`
	Actor     string    `json:"actor,omitempty"`
	Reason    string    `json:"reason,omitempty"`
}

func readHistory(ctx context.Context, db *database, id uuid.UUID) ([]historyRow, error) {
	history, err := db.client.History(ctx, id)
	list := make([]historyRow, len(history))
	for i, t := range history {
		list[i] = historyRow{
			At: t.At, Step: t.Step, Index: t.Index, From: t.From, To: t.To, Event: t.Event, Revision: t.Revision,
			Attempt: t.Attempt, Delivery: t.Delivery, Processor: t.Processor, Actor: t.Actor, Reason: t.Reason,
		}
	}
	return list, err
}

func (a *app) taskHistory() *cobra.Command {
	return &cobra.Command{
		Use:     "history TASK",
		Short:   "Show every transition of a task and its steps, from the audit",
		Example: "  pawl task history 019a3f0c\n  pawl task history 019a3f0c --json | jq 'map(select(.actor))'",
		Args:    cobra.ExactArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			return a.withTask(ctx, args[0], func(db *database, id uuid.UUID) error {
				list, err := readHistory(ctx, db, id)
				if err != nil {
					return err
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
		if h.Step != "" {
			name = stepName(h.Step, h.Index)
		}
		attempt := ""
		if h.Attempt > 0 {
			attempt = fmt.Sprint(h.Attempt)
		}
		if h.Delivery > 0 {
			attempt = fmt.Sprintf("%d.%d", h.Attempt, h.Delivery)
		}
		by := cmp.Or(h.Actor, h.Processor)
		if h.Reason != "" {
			by += ": " + h.Reason
		}
		lines[i] = []string{h.At.Local().Format("15:04:05.000"), name, dash(h.From) + " → " + h.To, h.Event, attempt, by}
	}
	return a.table([]string{"AT", "STEP", "TRANSITION", "EVENT", "ATTEMPT", "BY"}, lines, "No history: the audit's retention is over.")
}

// stepName is NAME, or NAME[INDEX] of a later one of its name.
func stepName(name string, index int) string {
	if index > 0 {
		return fmt.Sprintf("%s[%d]", name, index)
	}
	return name
}
