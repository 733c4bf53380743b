package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// Processor is an orchestrator's process, as audit rows name it. Nobody asks it for permission to act.
type Processor struct {
	ID      uuid.UUID
	Kind    string // orchestrator
	Host    string
	PID     int
	Version string // of the program
}

// BeatProcessor says that the process is alive.
func BeatProcessor(ctx context.Context, db DB, p Processor) error {
	_, err := db.Exec(ctx, `with quick as materialized (select set_config('synchronous_commit', 'off', true))
		select pawl.beat_processor($1, $2, $3, $4, $5) from quick`, p.ID, p.Kind, p.Host, p.PID, p.Version)
	if err != nil {
		return fmt.Errorf("telling that processor %s is alive: %w", p.ID, err)
	}
	return nil
}

// StopProcessor says that the process ends on purpose.
func StopProcessor(ctx context.Context, db DB, id uuid.UUID) error {
	if _, err := db.Exec(ctx, `select pawl.stop_processor($1)`, id); err != nil {
		return fmt.Errorf("telling that processor %s stops: %w", id, err)
	}
	return nil
}
