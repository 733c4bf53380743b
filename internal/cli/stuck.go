package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) stuckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stuck",
		Short: "List tasks that have been in one state for longer than their template allows",
		Long: `Lists tasks that have been in one state for longer than their template's stuck_after allows.
Nothing is moved by looking; pawl task explain says why one of them waits.`,
		Example: "  pawl stuck\n  pawl stuck --json | jq length",
		Args:    cobra.NoArgs,
		RunE: run(func(ctx context.Context, _ []string) error {
			return a.with(ctx, func(db *database) error {
				var answer json.RawMessage
				if err := db.QueryRow(ctx, "select pawl.stuck_tasks()").Scan(&answer); err != nil {
					return fmt.Errorf("listing stuck tasks: %w", err)
				}
				if a.json {
					return a.printJSON(answer)
				}
				return a.printStuck(answer)
			})
		}),
	}
}

func (a *app) printStuck(answer json.RawMessage) error {
	var list []struct {
		TaskID   string    `json:"task_id"`
		Template string    `json:"template"`
		State    string    `json:"state"`
		Since    time.Time `json:"since"`
		Over     string    `json:"over"`
		Status   *string   `json:"status"`
		Notes    *string   `json:"notes"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return fmt.Errorf("reading the stuck tasks: %w", err)
	}
	lines := make([][]string, len(list))
	for i, t := range list {
		lines[i] = []string{t.TaskID, t.Template, t.State, when(&t.Since), t.Over, text(t.Status), clip(text(t.Notes), 50)}
	}
	return a.table([]string{"TASK", "TEMPLATE", "STATE", "SINCE", "OVER", "REPORT", "NOTES"}, lines, "Nothing is stuck.")
}
