package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/messaging/pgmq"
)

// Request asks for a task: of a template, or of one step when it names a handler instead.
type Request struct {
	// ID becomes the task's id. Zero: the client makes one.
	ID uuid.UUID
	// Template is "namespace/name" or "namespace/name@version". Either it or Handler is set.
	Template string
	// Handler, with Namespace (empty: default) and Queue (empty: the namespace's), makes a task of one step.
	Handler, Namespace, Queue string
	// Input is encoded as JSON; nil is {}. A json.RawMessage goes as it is, a []byte is refused.
	Input any
	// Key identifies the task among those of its template: 1 to 255 bytes of UTF-8.
	Key string
	// OnDuplicate says what becomes of the request when a task holds its key. Empty: messaging.Attach.
	OnDuplicate messaging.OnDuplicate
	Requester   string
	// RunAt is when the task may start. Zero: at once.
	RunAt time.Time
	// ReplyTo is a queue for the answer, for consumers other than this client.
	ReplyTo       string
	CorrelationID string
	Tags          map[string]string
}

// message makes the request's message, or an InvalidRequestError.
func (r *Request) message(ctx context.Context) (uuid.UUID, pgmq.Outgoing, error) {
	body := messaging.TaskRequest{
		RequestID: r.ID, Template: r.Template, Namespace: r.Namespace, Handler: r.Handler, Queue: r.Queue, Key: r.Key,
		OnDuplicate: r.OnDuplicate, Requester: r.Requester, RunAt: r.RunAt, ReplyTo: r.ReplyTo, CorrelationID: r.CorrelationID, Tags: r.Tags,
	}
	if body.RequestID == uuid.Nil {
		body.RequestID = messaging.NewRequestID()
	}
	if err := body.Validate(); err != nil {
		return uuid.Nil, pgmq.Outgoing{}, &InvalidRequestError{Kind: "InvalidRequest", Message: err.Error()}
	}
	var err error
	input := r.Input
	if input == nil {
		input = struct{}{}
	}
	if body.Input, err = encode(input); err != nil {
		return uuid.Nil, pgmq.Outgoing{}, &InvalidRequestError{Kind: "InvalidRequest", Message: "encoding input: " + err.Error()}
	}
	text, err := encode(body)
	if err == nil {
		err = messaging.CheckBody(text)
	}
	if err != nil {
		return uuid.Nil, pgmq.Outgoing{}, &InvalidRequestError{Kind: "InvalidRequest", Message: "checking request: " + err.Error()}
	}
	headers, err := messaging.InjectTrace(ctx, nil)
	if err != nil {
		return uuid.Nil, pgmq.Outgoing{}, err
	}
	return body.RequestID, pgmq.Outgoing{Body: text, Headers: headers}, nil
}

// encode makes JSON as it was meant: without escapes for HTML.
func encode(value any) (json.RawMessage, error) {
	switch v := value.(type) {
	case json.RawMessage:
		if !json.Valid(v) { // the encoder's error would quote it
			return nil, messaging.CheckBody(v)
		}
	case []byte:
		return nil, errors.New("a []byte would become base64: make JSON a json.RawMessage, and text a string")
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
