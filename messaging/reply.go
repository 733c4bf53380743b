package messaging

import (
	"encoding/json"

	"github.com/google/uuid"
)

// Outcome is what became of a request.
type Outcome string

// What may become of a request.
const (
	Created  Outcome = "created"  // a task of its own
	Attached Outcome = "attached" // it met a task that exists
	Refused  Outcome = "rejected" // a task that exists forbids it
	Invalid  Outcome = "invalid"  // it is not a request that can be fulfilled
)

// Reply answers a request that named a queue in reply_to: when it was refused or
// met a task, and when its task has ended.
type Reply struct {
	V int `json:"v,omitempty"` // 0: 1
	// RequestID is the request's, or the id the engine made for it. Nil when the
	// request was invalid and had none.
	RequestID *string   `json:"request_id" body:"nullable"`
	Outcome   Outcome   `json:"outcome"`
	TaskID    uuid.UUID `json:"task_id,omitzero"`
	// Status is the task's public status: pending, running, completed, failed,
	// cancelled, timed_out; result_expired when only its key is remembered.
	Status string          `json:"status,omitempty"`
	Result json.RawMessage `json:"result,omitempty" body:"nullable"` // of a completed task
	// Error is an object: {error, message, …} of a refusal, or the error of a task
	// that did not complete.
	Error json.RawMessage `json:"error,omitempty" body:"nullable"`
}

const reply = "reply"

// DecodeReply reads a reply strictly. The error is a [BodyError] or a
// [NewerVersionError].
func DecodeReply(body []byte) (Reply, error) {
	var r Reply
	if err := decode(reply, body, &r); err != nil {
		return Reply{}, err
	}
	return r, r.Validate()
}

// Validate says what is contradictory or missing in the reply.
func (r *Reply) Validate() error {
	switch r.Outcome {
	case Created, Attached, Refused, Invalid:
		return nil
	}
	return &BodyError{Body: reply, Field: "outcome", Reason: "must be created, attached, rejected or invalid"}
}
