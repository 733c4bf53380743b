package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ApplyStepResults takes result messages and applies them: R2's second transaction. It returns how many were taken;
// fewer than given means that others took them.
func ApplyStepResults(ctx context.Context, db DB, messages []Message, processor string) (int, error) {
	return take(ctx, db, `select pawl.apply_step_results($1, $2)`, messages, processor)
}

// ProcessStepEnqueues takes messages that ask for another look at a task or a gated queue. It returns how many were taken.
func ProcessStepEnqueues(ctx context.Context, db DB, messages []Message, processor string) (int, error) {
	return take(ctx, db, `select pawl.process_step_enqueues($1, $2)`, messages, processor)
}

func take(ctx context.Context, db DB, sql string, messages []Message, processor string) (int, error) {
	var taken int
	if err := db.QueryRow(ctx, sql, messageIDs(messages), processor).Scan(&taken); err != nil {
		return 0, fmt.Errorf("working %d messages: %w", len(messages), err)
	}
	return taken, nil
}

// FinalizeTasks takes messages that ask whether tasks are at their end. It returns how many tasks had which outcome:
// finalized, already_final, not_ready.
func FinalizeTasks(ctx context.Context, db DB, messages []Message, processor string) (map[string]int, error) {
	rows, err := db.Query(ctx, `
		select o->>'outcome', count(*)::int from jsonb_array_elements(pawl.finalize_tasks($1, $2)) o group by 1`,
		messageIDs(messages), processor)
	if err != nil {
		return nil, fmt.Errorf("finalizing tasks of %d messages: %w", len(messages), err)
	}
	outcomes := make(map[string]int)
	var outcome string
	var count int
	if _, err := pgx.ForEachRow(rows, []any{&outcome, &count}, func() error {
		outcomes[outcome] = count
		return nil
	}); err != nil {
		return nil, fmt.Errorf("finalizing tasks of %d messages: %w", len(messages), err)
	}
	return outcomes, nil
}
