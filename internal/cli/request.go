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

// known is nil for a task's id, else the error of an id that is no task's: a request's, if one with it is known. One statement
// asks for both: between two, an orchestrator may turn the one into the other.
func known(ctx context.Context, db *database, id uuid.UUID) error {
	var there bool
	var answer []byte
	err := db.QueryRow(ctx, `select t.there, case when not t.there then pawl.explain_request($1) end
		from (select exists (select from pawl.tasks where task_id = $1) as there) t`, id).Scan(&there, &answer)
	switch {
	case err != nil:
		return fmt.Errorf("reading task %s: %w", id, err)
	case there:
		return nil
	case answer == nil:
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
