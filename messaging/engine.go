package messaging

import "github.com/google/uuid"

// StepEnqueue asks the step-enqueuer to look again: at one task, or at the work
// that waits for one queue.
type StepEnqueue struct {
	V      int       `json:"v,omitempty"` // 0: 1
	TaskID uuid.UUID `json:"task_id,omitzero"`
	Queue  string    `json:"queue,omitempty"`
	Reason string    `json:"reason"` // for people
}

// TaskFinalization asks the finalizer to look whether a task has ended.
type TaskFinalization struct {
	V      int       `json:"v,omitempty"` // 0: 1
	TaskID uuid.UUID `json:"task_id"`
	Reason string    `json:"reason"` // for people
}

const (
	stepEnqueue      = "step enqueue"
	taskFinalization = "task finalization"
)

// DecodeStepEnqueue reads a request to look again strictly. The error is a
// [BodyError] or a [NewerVersionError].
func DecodeStepEnqueue(body []byte) (StepEnqueue, error) {
	var e StepEnqueue
	if err := decode(stepEnqueue, body, &e); err != nil {
		return StepEnqueue{}, err
	}
	return e, e.Validate()
}

// Validate says what is contradictory or missing.
func (e *StepEnqueue) Validate() error {
	if (e.TaskID == uuid.Nil) == (e.Queue == "") {
		return &BodyError{Body: stepEnqueue, Field: "task_id", Reason: "write either task_id or queue"}
	}
	if e.Queue != "" {
		if err := ValidateQueueName(e.Queue); err != nil {
			return &BodyError{Body: stepEnqueue, Field: "queue", Reason: err.Error()}
		}
	}
	return nil
}

// DecodeTaskFinalization reads a request to finalize strictly. The error is a
// [BodyError] or a [NewerVersionError].
func DecodeTaskFinalization(body []byte) (TaskFinalization, error) {
	var f TaskFinalization
	if err := decode(taskFinalization, body, &f); err != nil {
		return TaskFinalization{}, err
	}
	return f, f.Validate()
}

// Validate says what is missing.
func (f *TaskFinalization) Validate() error {
	if f.TaskID == uuid.Nil {
		return &BodyError{Body: taskFinalization, Field: "task_id", Reason: "is missing"}
	}
	return nil
}
