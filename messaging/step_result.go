package messaging

import (
	"encoding/json"

	"github.com/google/uuid"
)

// ResultStatus is how an attempt ended.
type ResultStatus string

// How an attempt may end.
const (
	Complete ResultStatus = "complete" // with a result
	Failed   ResultStatus = "failed"   // with an error; tried again if that is retryable
	Rejected ResultStatus = "rejected" // with an error; not tried again, the input was refused
)

// StepResult ends an attempt of a step. Workers that use PGMQ alone send it to
// the queue StepResults; over SQL and HTTP the engine makes it of a report.
type StepResult struct {
	V       int             `json:"v,omitempty"` // 0: 1
	TaskID  uuid.UUID       `json:"task_id"`
	Step    string          `json:"step"`
	Index   int             `json:"index,omitempty"` // of a mapped step
	Attempt int             `json:"attempt"`         // as in the step message
	Status  ResultStatus    `json:"status"`
	Result  json.RawMessage `json:"result,omitempty"`                // of a complete step; any JSON value
	Error   *StepError      `json:"error,omitempty" body:"nullable"` // of a failed or rejected step
	Worker  string          `json:"worker,omitempty"`                // for the audit only
}

// StepError is why an attempt failed.
type StepError struct {
	Type    string `json:"type"` // a short name to count and branch by
	Message string `json:"message" body:"empty"`
	// Retryable says whether another attempt may succeed. Missing in a body: true.
	Retryable bool `json:"retryable" body:"true"`
	// RetryAfter is how long to wait until the next attempt, in seconds, instead of
	// the step's back-off. Zero: as long as that says. More than a day is a day.
	RetryAfter float64 `json:"retry_after,omitempty"`
}

const stepResult = "step result"

// DecodeStepResult reads a step's result strictly. The error is a [BodyError] or
// a [NewerVersionError].
func DecodeStepResult(body []byte) (StepResult, error) {
	var r StepResult
	if err := decode(stepResult, body, &r); err != nil {
		return StepResult{}, err
	}
	return r, r.Validate()
}

// Validate says what is contradictory or missing in the result.
func (r *StepResult) Validate() error {
	switch {
	case r.TaskID == uuid.Nil:
		return r.wrong("task_id", "is missing: copy it from the step message")
	case r.Step == "":
		return r.wrong("step", "is missing: copy it from the step message")
	case r.Index < 0:
		return r.wrong("index", "is negative")
	case r.Attempt < 1:
		return r.wrong("attempt", "must be 1 or more: copy it from the step message")
	case r.Status == Complete && r.Error != nil:
		return r.wrong("error", "cannot stand beside status complete")
	case r.Status == Complete:
		return nil
	case r.Status != Failed && r.Status != Rejected:
		return r.wrong("status", "must be complete, failed or rejected")
	case r.Error == nil:
		return r.wrong("error", "is missing: failed and rejected say why, {type, message, retryable, retry_after?}")
	case len(r.Result) > 0 && !isNull(r.Result):
		return r.wrong("result", "belongs to status complete")
	case r.Error.Type == "":
		return r.wrong("error.type", "is empty: write a short name to count and branch by")
	case r.Error.RetryAfter < 0:
		return r.wrong("error.retry_after", "is negative: it is a number of seconds from now")
	}
	return nil
}

func (r *StepResult) wrong(field, reason string) error {
	return &BodyError{Body: stepResult, Field: field, Reason: reason}
}
