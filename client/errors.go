package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-dev/pawl/internal/sqlstate"
	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/workflow"
)

var (
	// ErrClosed ends waiting when the client is closed, and is the error of all that is asked of it then.
	ErrClosed = errors.New("the client is closed")
	// ErrNotFound says that there is no such task or step, or it was removed when its retention was over.
	ErrNotFound = errors.New("no such task or step")
	// ErrNotPossible says that a command cannot be done in the state that the task or step is in.
	ErrNotPossible = errors.New("not possible in the present state")
	// ErrKeyTaken says that a task cannot be opened again, since a later one holds its key.
	ErrKeyTaken = errors.New("a later task holds the key")
	// ErrUnknownQueue says that a command names a queue that nobody has made, or one that a command may not name: the engine's
	// own, or what is no queue's name.
	ErrUnknownQueue = errors.New("no queue that this may be asked of")
	// ErrTemplateChanged says that a version of a template is there with other content: it needs a new version.
	ErrTemplateChanged = errors.New("the version has other content")
	// ErrResultExpired says that the request's key is held by a task that has completed and was removed since.
	ErrResultExpired = errors.New("the task that holds the key has completed, and its result was removed when its retention was over")
)

// TaskAlreadyExistsError refuses a request that said messaging.Reject: a task that is pending or running holds its key.
type TaskAlreadyExistsError struct {
	Key    string
	TaskID uuid.UUID // the task that holds it
	Status string
}

// Error says which key is held.
func (e *TaskAlreadyExistsError) Error() string {
	return fmt.Sprintf("Task with ID '%s' is already pending/running", e.Key)
}

// TaskAlreadyCompletedError refuses a request that said messaging.Reject: a task with its key has completed.
type TaskAlreadyCompletedError struct {
	Key         string
	TaskID      uuid.UUID
	CompletedAt time.Time       // zero when the task was removed since
	Result      json.RawMessage // nil when the task was removed since
}

// Error says which key is held.
func (e *TaskAlreadyCompletedError) Error() string {
	return fmt.Sprintf("Task with ID '%s' already completed successfully", e.Key)
}

// TaskInputMismatchError refuses a request whose key, or id, belongs to a task with another input.
type TaskInputMismatchError struct {
	Key    string // empty: it is the request's id
	TaskID uuid.UUID
	Status string
}

// Error says which task has another input.
func (e *TaskInputMismatchError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("Task with ID '%s' exists with another request", e.TaskID)
	}
	return fmt.Sprintf("Task with ID '%s' exists with another input", e.Key)
}

// KeyRequiredError refuses a request without a key for a template that wants one with each.
type KeyRequiredError struct{ Message string }

// Error is the orchestrator's message.
func (e *KeyRequiredError) Error() string { return e.Message }

// InvalidRequestError refuses a request that cannot be fulfilled, here or by the orchestrator.
type InvalidRequestError struct {
	Kind    string // InvalidRequest, UnknownTemplate, InvalidInput, …
	Message string
}

// Error is the kind and what is wrong.
func (e *InvalidRequestError) Error() string { return e.Kind + ": " + e.Message }

// TaskFailedError is the end of a task that did not complete.
type TaskFailedError struct {
	TaskID uuid.UUID
	State  workflow.TaskState   // error, cancelled, timed_out
	Status string               // failed, cancelled, timed_out
	Step   string               // whose failure it was, if one's
	Cause  *messaging.StepError // nil when there is none
}

// Error says how the task ended and why.
func (e *TaskFailedError) Error() string {
	text := fmt.Sprintf("task %s is %s", e.TaskID, e.Status)
	if e.Step != "" {
		text += ": step " + e.Step
	}
	if e.Cause != nil {
		text += fmt.Sprintf(": %s: %s", e.Cause.Type, e.Cause.Message)
	}
	return text
}

// CommandError refuses an operator's command, or a template. errors.Is tells the refusals that a program may expect:
// ErrNotFound, ErrNotPossible, ErrKeyTaken, ErrUnknownQueue, ErrTemplateChanged.
type CommandError struct {
	// Code is the SQLSTATE: PW001 and PW021 not possible now, PW010 unknown queue, PW011 a template's version has other content,
	// PW012 and PW013 a bad template, PW020 not found, PW022 a later task has the key, PW023 actor or reason missing, PW024 a bad
	// setting, PW030 a bad entity in a template.
	Code    string
	Message string
	Hint    string

	raised error // by the database
}

// Error is what is wrong and what to do.
func (e *CommandError) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + ": " + e.Hint
}

// commandRefusals are what errors.Is knows of a CommandError, by its code.
var commandRefusals = map[string]error{
	sqlstate.InvalidTransition: ErrNotPossible, sqlstate.NotFound: ErrNotFound, sqlstate.NotPossible: ErrNotPossible,
	sqlstate.KeyTaken: ErrKeyTaken, sqlstate.UnknownQueue: ErrUnknownQueue, sqlstate.TemplateChanged: ErrTemplateChanged,
}

// Is holds for the sentinel of the code.
func (e *CommandError) Is(target error) bool { return target == commandRefusals[e.Code] }

// Unwrap returns what the database raised.
func (e *CommandError) Unwrap() error { return e.raised }

// commandError makes a CommandError of what Pawl's functions raise.
func commandError(err error) error {
	var raised *pgconn.PgError
	if errors.As(err, &raised) && strings.HasPrefix(raised.Code, "PW") {
		return &CommandError{Code: raised.Code, Message: raised.Message, Hint: raised.Hint, raised: raised}
	}
	return err
}
