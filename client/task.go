package client

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/workflow"
)

// Task is one run of a template.
type Task struct {
	ID        uuid.UUID
	Namespace string
	Template  string // its name; in a task of one handler, the handler
	Version   string
	// State is the engine's word for where the task is, Status the outside world's: pending, running, completed, failed,
	// cancelled, timed_out.
	State         workflow.TaskState
	Status        string
	Key           string
	Input         json.RawMessage
	Result        json.RawMessage // nil unless completed
	Error         json.RawMessage // nil unless it ended otherwise
	CorrelationID string
	Requester     string
	Tags          map[string]string
	RequestedAt   time.Time
	StartedAt     time.Time // zero before
	FinalizedAt   time.Time // zero before
}

// Ref returns namespace/name@version, which a Request's and a Filter's Template take. In a task of one handler the name
// is the handler's.
func (t *Task) Ref() string { return t.Namespace + "/" + t.Template + "@" + t.Version }

// Final says whether the task has ended.
func (t *Task) Final() bool { return !t.FinalizedAt.IsZero() }

// Decode reads the result of a completed task into a pointer. For a task that ended otherwise it is a TaskFailedError.
func (t *Task) Decode(into any) error {
	switch {
	case !t.Final():
		return fmt.Errorf("reading result of task %s: it is %s", t.ID, t.State)
	case t.Status != "completed":
		return t.failure()
	case len(t.Result) == 0:
		return nil
	}
	if err := json.Unmarshal(t.Result, into); err != nil {
		return fmt.Errorf("reading result of task %s: %w", t.ID, err)
	}
	return nil
}

func (t *Task) failure() error {
	failed := &TaskFailedError{TaskID: t.ID, State: t.State, Status: t.Status}
	var cause struct {
		messaging.StepError
		Step string `json:"step"`
	}
	if len(t.Error) > 0 && json.Unmarshal(t.Error, &cause) == nil { // without one, or with one of another shape, there is no cause
		failed.Step, failed.Cause = cause.Step, &cause.StepError
	}
	return failed
}

const taskColumns = `task_id, namespace, template, version, state::text, pawl.public_status(state), coalesce(key, ''),
	input::text, result::text, error::text, coalesce(correlation_id, ''), coalesce(requester, ''), tags::text, requested_at, started_at, finalized_at`

func collectTask(row pgx.CollectableRow) (t Task, err error) {
	var input, result, failure, tags []byte
	var startedAt, finalizedAt *time.Time
	err = row.Scan(&t.ID, &t.Namespace, &t.Template, &t.Version, &t.State, &t.Status, &t.Key, &input, &result, &failure,
		&t.CorrelationID, &t.Requester, &tags, &t.RequestedAt, &startedAt, &finalizedAt)
	t.Input, t.Result, t.Error = input, result, failure
	if tags != nil {
		_ = json.Unmarshal(tags, &t.Tags) // the door admits nothing but strings
	}
	if startedAt != nil {
		t.StartedAt = *startedAt
	}
	if finalizedAt != nil {
		t.FinalizedAt = *finalizedAt
	}
	return t, err
}

// Get returns a task, or ErrNotFound.
func (c *Client) Get(ctx context.Context, id uuid.UUID) (Task, error) {
	found, err := list(ctx, c, collectTask, `select `+taskColumns+` from pawl.tasks where task_id = $1`, id)
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Task{}, fmt.Errorf("getting task %s: %w", id, err)
	}
	return found[0], nil
}

// Filter chooses tasks. Zero fields do not.
type Filter struct {
	// Template is a name, or "namespace/name", each with "@version" if need be. In tasks of one handler it is the handler.
	Namespace, Template, Version, Key, CorrelationID string
	// States are the engine's words. Open chooses those of all that have not ended.
	States []workflow.TaskState
	Open   bool
	Tags   map[string]string // all of them
	Since  time.Time         // requested at or after
	// Before continues a list: the id of the last task of the part before.
	Before uuid.UUID
	// Limit is how many at most. Zero: 50.
	Limit int
}

// check takes the template's reference apart and refuses what would choose nothing.
func (f *Filter) check() error {
	for _, state := range f.States {
		if _, err := workflow.ParseTaskState(string(state)); err != nil {
			return err
		}
	}
	named, version, versioned := strings.Cut(f.Template, "@")
	namespace, name, full := strings.Cut(named, "/")
	if !full {
		namespace, name = f.Namespace, named
	}
	if !versioned {
		version = f.Version
	}
	if f.Namespace != "" && f.Namespace != namespace || f.Version != "" && f.Version != version {
		return fmt.Errorf("template %q is not of namespace %q and version %q: say them once", f.Template, f.Namespace, f.Version)
	}
	f.Namespace, f.Template, f.Version = namespace, name, version
	return nil
}

// texts is what states are sent as: without a prepared statement, types of one's own have no encoding.
func texts(states []workflow.TaskState) []string {
	all := make([]string, len(states))
	for i, state := range states {
		all[i] = string(state)
	}
	return all
}

// List returns tasks in the order of their ids, from the last: the newest first, as far as the ids are in the order of time.
// Those that Pawl and its clients make are; a Request.ID of the caller's need not be. A state that does not exist is an error
// that names those that do.
func (c *Client) List(ctx context.Context, filter Filter) ([]Task, error) {
	if err := filter.check(); err != nil {
		return nil, fmt.Errorf("listing tasks: %w", err)
	}
	if filter.Limit == 0 {
		filter.Limit = 50
	}
	query := `select ` + taskColumns + ` from pawl.tasks where true`
	var arguments []any
	and := func(set bool, condition string, value any) {
		if set {
			arguments = append(arguments, value)
			query += fmt.Sprintf(" and "+condition, len(arguments))
		}
	}
	and(filter.Namespace != "", `namespace = $%d`, filter.Namespace)
	and(filter.Template != "", `template = $%d`, filter.Template)
	and(filter.Version != "", `version = $%d`, filter.Version)
	and(filter.Key != "", `key = $%d`, filter.Key)
	and(filter.CorrelationID != "", `correlation_id = $%d`, filter.CorrelationID)
	and(len(filter.States) > 0, `state::text = any ($%d::text[])`, texts(filter.States))
	and(filter.Open, `(finalized_at is null) = $%d`, true)
	and(!filter.Since.IsZero(), `requested_at >= $%d`, filter.Since)
	and(filter.Before != uuid.Nil, `task_id < $%d`, filter.Before)
	if len(filter.Tags) > 0 {
		tags, err := json.Marshal(filter.Tags)
		if err != nil {
			return nil, fmt.Errorf("listing tasks: %w", err)
		}
		and(true, `tags @> $%d::text::jsonb`, string(tags))
	}
	and(true, `true order by task_id desc limit $%d`, filter.Limit)
	tasks, err := list(ctx, c, collectTask, query, arguments...)
	if err != nil {
		return nil, fmt.Errorf("listing tasks: %w", err)
	}
	return tasks, nil
}
