package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// explanation is what pawl.explain_task says.
type explanation struct {
	TaskID   string     `json:"task_id"`
	Template string     `json:"template"`
	State    string     `json:"state"`
	Since    time.Time  `json:"since"`
	Until    *time.Time `json:"until"`
	Why      string     `json:"why"`
	Steps    []struct {
		Step    string     `json:"step"`
		Index   int        `json:"index"`
		State   string     `json:"state"`
		Attempt int        `json:"attempt"`
		Since   time.Time  `json:"since"`
		Until   *time.Time `json:"until"`
		Why     string     `json:"why"`
	} `json:"steps"`
}

func (a *app) taskExplain() *cobra.Command {
	return &cobra.Command{
		Use:   "explain TASK",
		Short: "Say why a task is where it is, step by step",
		Long: "Says for the task and for each of its open steps what it waits for: a worker, a lease, a time, another step, a person.\n" +
			"The id of a request that made no task says what became of it.",
		Example: "  pawl task explain 019a3f0c",
		Args:    cobra.ExactArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			err := a.withTask(ctx, args[0], func(db *database, id uuid.UUID) error {
				answer, err := db.client.Explain(ctx, id)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(answer)
				}
				var e explanation
				if err := json.Unmarshal(answer, &e); err != nil {
					return fmt.Errorf("reading the explanation of task %s: %w", id, err)
				}
				a.printExplanation(e)
				return nil
			})
			return orRequest(err, func(r *taskless) error {
				if a.json {
					return a.printJSON(r)
				}
				a.say("request %s  %s ago\n%s", r.RequestID, span(max(0, time.Since(r.Since))), r.Why)
				return nil
			})
		}),
	}
}

func (a *app) printExplanation(e explanation) {
	a.say("task %s  %s", e.TaskID, e.Template)
	a.say("%s: %s", lasting(e.State, e.Since, e.Until), e.Why)
	for _, s := range e.Steps {
		attempt := ""
		if s.Attempt > 1 {
			attempt = fmt.Sprintf(", attempt %d", s.Attempt)
		}
		a.say("\n%s  %s%s\n  %s", stepName(s.Step, s.Index), lasting(s.State, s.Since, s.Until), attempt, s.Why)
	}
}

// lasting is a state with how long it has been and until when it is.
func lasting(state string, since time.Time, until *time.Time) string {
	line := fmt.Sprintf("%s for %s", state, span(max(0, time.Since(since))))
	if until != nil {
		line += ", until " + when(until)
	}
	return line
}
