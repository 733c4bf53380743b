package messaging

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// OnDuplicate says what becomes of a request whose key a task holds already.
type OnDuplicate string

// What may become of a duplicate.
const (
	Attach OnDuplicate = "attach" // the default: the answer is the task that exists
	Reject OnDuplicate = "reject" // the answer is an error
)

// TaskRequest asks for a task: of a template, or of one step when it names a
// handler instead.
type TaskRequest struct {
	V int `json:"v,omitempty"` // 0: 1
	// RequestID becomes the task's id; a request sent twice with one id makes one
	// task. Zero: the engine makes an id.
	RequestID uuid.UUID `json:"request_id,omitzero"`
	// Template is a TemplateRef. Either it or Handler is set.
	Template  string `json:"template,omitempty"`
	Namespace string `json:"namespace,omitempty"` // with Handler; empty: default
	Handler   string `json:"handler,omitempty"`
	Queue     string `json:"queue,omitempty"` // with Handler; empty: the namespace's
	// Input is what the template's input schema asks for, {} when it asks for
	// nothing.
	Input json.RawMessage `json:"input"`
	// Key identifies the task among those of its template: 1 to 255 bytes of UTF-8.
	Key           string            `json:"key,omitempty"`
	OnDuplicate   OnDuplicate       `json:"on_duplicate,omitempty"`
	Requester     string            `json:"requester,omitempty"`
	RunAt         time.Time         `json:"run_at,omitzero"` // not before this time
	ReplyTo       string            `json:"reply_to,omitempty"`
	CorrelationID string            `json:"correlation_id,omitempty"`
	Tags          map[string]string `json:"tags,omitempty"`
}

const taskRequest = "task request"

// DefaultNamespace is the namespace of requests that name a handler and no
// namespace.
const DefaultNamespace = "default"

// DecodeTaskRequest reads a task request strictly. The error is a [BodyError] or
// a [NewerVersionError].
func DecodeTaskRequest(body []byte) (TaskRequest, error) {
	var r TaskRequest
	if err := decode(taskRequest, body, &r); err != nil {
		return TaskRequest{}, err
	}
	return r, r.Validate()
}

// Validate says what the engine would refuse the request for, except for what
// only the database knows: whether template and queues exist, and whether the
// input fits the template's schema.
func (r *TaskRequest) Validate() error {
	switch {
	case r.Template == "" && r.Handler == "":
		return r.wrong("template", `is missing: write "namespace/name", or a handler instead`)
	case r.Template != "" && r.Handler != "":
		return r.wrong("handler", "cannot stand beside template: leave one of them out")
	case r.Template != "" && r.Namespace != "":
		return r.wrong("namespace", "belongs to handler: with template write it as namespace/name")
	case r.Template != "" && r.Queue != "":
		return r.wrong("queue", "belongs to handler: a template's steps name their own")
	case len(r.Key) > MaxKey:
		return r.wrong("key", fmt.Sprintf("has %d bytes, over the limit of %d: send a digest", len(r.Key), MaxKey))
	case strings.ContainsRune(r.Key, 0):
		return r.wrong("key", "has a zero byte")
	case r.OnDuplicate != "" && r.OnDuplicate != Attach && r.OnDuplicate != Reject:
		return r.wrong("on_duplicate", "must be attach or reject")
	}
	if err := r.validateTexts(); err != nil {
		return err
	}
	if r.Template != "" {
		if _, err := ParseTemplateRef(r.Template); err != nil {
			return r.wrong("template", err.Error())
		}
	} else if err := r.validateHandler(); err != nil {
		return err
	}
	if r.ReplyTo != "" {
		if err := ValidateStepQueueName(r.ReplyTo); err != nil {
			return r.wrong("reply_to", err.Error())
		}
	}
	return nil
}

// validateTexts refuses texts that would reach the database as others: JSON has no bytes that are not UTF-8, so that
// encoding replaces them, and two binary keys may become one.
func (r *TaskRequest) validateTexts() error {
	const reason = "is not UTF-8: send bytes as base64 or hexadecimal digits"
	for _, text := range []struct{ field, value string }{{"key", r.Key}, {"requester", r.Requester}, {"correlation_id", r.CorrelationID}} {
		if !utf8.ValidString(text.value) {
			return r.wrong(text.field, reason)
		}
	}
	for name, value := range r.Tags {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return r.wrong("tags", reason)
		}
	}
	return nil
}

func (r *TaskRequest) validateHandler() error {
	if err := checkHandler(r.Handler); err != nil {
		return r.wrong("handler", err.Error())
	}
	if r.Namespace != "" {
		if err := checkNamespace(r.Namespace); err != nil {
			return r.wrong("namespace", err.Error())
		}
	}
	if r.Queue != "" {
		if err := ValidateStepQueueName(r.Queue); err != nil {
			return r.wrong("queue", err.Error())
		}
	} else if r.Namespace != "" {
		if err := checkDefaultQueue(r.Namespace); err != nil {
			return r.wrong("namespace", err.Error())
		}
	}
	return nil
}

func (r *TaskRequest) wrong(field, reason string) error {
	return &BodyError{Body: taskRequest, Field: field, Reason: reason}
}
