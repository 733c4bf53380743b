package messaging

import (
	"encoding/json"

	"github.com/google/uuid"
)

// StepMessage is one attempt of a step, on its way to a worker.
type StepMessage struct {
	V       int       `json:"v,omitempty"` // 0: 1
	TaskID  uuid.UUID `json:"task_id"`
	Step    string    `json:"step"`
	Index   int       `json:"index,omitempty"` // of a mapped step
	Attempt int       `json:"attempt"`         // counts from 1
	Handler string    `json:"handler"`
	// Input is the task's input, and Dependencies are the results of the steps
	// that this one needs, by name. Both are missing when ByReference is set: the
	// claim, or pawl.step_input, brings them.
	Input         json.RawMessage            `json:"input,omitempty" body:"nullable"`
	Dependencies  map[string]json.RawMessage `json:"dependencies,omitempty"`
	ByReference   bool                       `json:"by_reference,omitempty"`
	Config        json.RawMessage            `json:"config,omitempty" body:"nullable"` // the template's, for this step
	Token         string                     `json:"token"`                            // the same for all attempts of the step
	CorrelationID string                     `json:"correlation_id,omitempty" body:"nullable"`
}

const stepMessage = "step message"

// DecodeStepMessage reads a step's message strictly. The error is a [BodyError]
// or a [NewerVersionError].
func DecodeStepMessage(body []byte) (StepMessage, error) {
	var m StepMessage
	if err := decode(stepMessage, body, &m); err != nil {
		return StepMessage{}, err
	}
	return m, m.Validate()
}

// Validate says what is contradictory or missing in the message.
func (m *StepMessage) Validate() error {
	wrong := func(field, reason string) error {
		return &BodyError{Body: stepMessage, Field: field, Reason: reason}
	}
	switch {
	case m.TaskID == uuid.Nil:
		return wrong("task_id", "is missing")
	case m.Step == "":
		return wrong("step", "is missing")
	case m.Index < 0:
		return wrong("index", "is negative")
	case m.Attempt < 1:
		return wrong("attempt", "must be 1 or more")
	case m.Handler == "":
		return wrong("handler", "is missing")
	case m.Token == "":
		return wrong("token", "is missing")
	case m.ByReference && (len(m.Input) > 0 && !isNull(m.Input) || len(m.Dependencies) > 0):
		return wrong("by_reference", "cannot stand beside input or dependencies")
	}
	return nil
}
