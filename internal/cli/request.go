package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// taskless is a request that made no task of its own, as pawl.explain_request tells; and the error of looking for its task.
type taskless struct {
	RequestID uuid.UUID `json:"request_id"`
	Since     time.Time `json:"since"`
	Why       string    `json:"why"`
	Waits     bool      `json:"waits"`
	TaskID    uuid.UUID `json:"task_id,omitzero"` // whom it met
}

func (r *taskless) Error() string {
	return fmt.Sprintf("there is no task %s; of the request with this id: %s", r.RequestID, r.Why)
}

// noTask is the error of an id that is no task's: a request's, if one with it is known.
func noTask(ctx context.Context, db *database, id uuid.UUID) error {
	var answer []byte
	if err := db.QueryRow(ctx, "select pawl.explain_request($1)", id).Scan(&answer); err != nil {
		return fmt.Errorf("looking for request %s: %w", id, err)
	}
	if answer == nil {
		return notFoundf("pawl task list shows the latest", "there is no task %s", id)
	}
	var r taskless
	if err := json.Unmarshal(answer, &r); err != nil {
		return fmt.Errorf("reading what became of request %s: %w", id, err)
	}
	hint := "pawl dead list shows it"
	switch {
	case r.TaskID != uuid.Nil:
		hint = "pawl task show " + r.TaskID.String()
	case r.Waits:
		hint = "pawl task wait " + id.String()
	}
	return &failure{code: ExitNotFound, err: &r, hint: hint, body: map[string]any{"request": &r}}
}

// orRequest does work for an id that is no task's but a request's. Other errors stay.
func orRequest(err error, work func(*taskless) error) error {
	var r *taskless
	if errors.As(err, &r) {
		return work(r)
	}
	return err
}
