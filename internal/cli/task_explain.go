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
		Use:     "explain TASK",
		Short:   "Say why a task is where it is, step by step",
		Long:    "Says for the task and for each of its open steps what it waits for: a worker, a lease, a time, another step, a person.",
		Example: "  pawl task explain 019a3f0c",
		Args:    cobra.ExactArgs(1),
		RunE: run(func(ctx context.Context, args []string) error {
			return a.withTask(ctx, args[0], func(db *database, id uuid.UUID) error {
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
		}),
	}
}

func (a *app) printExplanation(e explanation) {
	a.say("task %s  %s", e.TaskID, e.Template)
	a.say("%s for %s: %s", e.State, span(max(0, time.Since(e.Since))), e.Why)
	for _, s := range e.Steps {
		line := fmt.Sprintf("\n%s  %s for %s", stepName(s.Step, s.Index), s.State, span(max(0, time.Since(s.Since))))
		if s.Attempt > 1 {
			line += fmt.Sprintf(", attempt %d", s.Attempt)
		}
		if s.Until != nil {
			line += ", until " + when(s.Until)
		}
		a.say("%s\n  %s", line, s.Why)
	}
}
