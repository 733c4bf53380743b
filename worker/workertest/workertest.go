package workertest

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/worker"
	"github.com/pawl-dev/pawl/worker/internal/trial"
)

// Message is what reaches the handler. The zero value of each field is its default. What cannot be written as JSON is a
// mistake in the test: it panics.
type Message struct {
	// Input of the task. Nil: an empty object. What does not fit the handler's type fails the attempt as it does in a worker.
	Input any
	// Dependencies are the results of the needed steps, by name.
	Dependencies map[string]any
	// Config of the step in its template. Nil: none.
	Config any
	// Attempt and Delivery. Zero: the first.
	Attempt, Delivery int
	// TaskID. Zero: a random one.
	TaskID uuid.UUID
	// Step is the step's name, Index its index when it is mapped. Empty: "run".
	Step  string
	Index int
	// Queue that it comes from. Empty: "test_queue".
	Queue string
	// Token. Empty: the task's id, the step and its index above 0, as the engine makes it.
	Token         string
	CorrelationID string
	// Timeout of the attempt, after which the handler's context ends. Zero: none.
	Timeout time.Duration
}

// Outcome is what a worker would have reported.
type Outcome struct {
	// Status is complete, failed or rejected. It is empty when the step is given back to other workers: the context ended
	// with worker.ErrStopping, and the handler returned an error.
	Status messaging.ResultStatus
	// Result as JSON, of a step that is complete.
	Result json.RawMessage
	// Error as it is reported, of a step that is not.
	Error *messaging.StepError
	// Err is the error that the handler returned, decoding its input and writing its result included. Nil for a panic.
	Err error
	// Completed says that the handler called CompleteTx and returned no error; Result is what it gave there.
	Completed bool
}

// Run runs a function as a handler. The result is that of the outcome read back from JSON, and the zero value when the step
// is not complete, or completed in a transaction with something else. The handler's context ends with ctx, whose
// context.Cause tells why, as worker.ErrCancelled; with one that has ended the handler does not begin.
func Run[In, Out any](ctx context.Context, handle func(ctx context.Context, step worker.Step[In]) (Out, error), message Message) (Out, Outcome) {
	w, err := worker.New(worker.Config{DatabaseURL: "postgres://", Queues: []worker.Queue{{Name: "test_queue"}}})
	if err != nil {
		panic(err) // nothing in it can be wrong
	}
	worker.Handle(w, "test", handle)
	end := Deliver(ctx, w, "test", message)
	var out Out
	if end.Status == messaging.Complete && json.Unmarshal(end.Result, &out) != nil {
		var zero Out // it may be half read
		out = zero
	}
	return out, end
}

// Deliver gives a message to the handler of this name of a worker that need not be started. A name that the worker does not
// have is a mistake in the test: it panics.
func Deliver(ctx context.Context, w *worker.Worker, handler string, message Message) Outcome {
	if message.Queue == "" {
		message.Queue = "test_queue"
	}
	end, err := trial.Deliver(ctx, w, message.Queue, message.body(handler))
	if err != nil {
		panic(fmt.Sprintf("workertest: %v", err))
	}
	return Outcome(end)
}

// body is the message as a claim brings it.
func (m Message) body(handler string) []byte {
	if m.Input == nil {
		m.Input = struct{}{}
	}
	if m.TaskID == uuid.Nil {
		m.TaskID = uuid.New()
	}
	if m.Step == "" {
		m.Step = "run"
	}
	if m.Token == "" {
		m.Token = m.TaskID.String() + "/" + m.Step
		if m.Index > 0 {
			m.Token += fmt.Sprintf("/%d", m.Index)
		}
	}
	m.Attempt, m.Delivery = max(m.Attempt, 1), max(m.Delivery, 1)
	fields := map[string]any{
		"msg_id": 1, "read_ct": m.Delivery, "task_id": m.TaskID, "step": m.Step, "index": m.Index, "attempt": m.Attempt,
		"delivery": m.Delivery, "handler": handler, "input": m.Input, "dependencies": m.Dependencies, "token": m.Token,
		"correlation_id": m.CorrelationID, "lease_ms": 30_000, "headers": map[string]any{},
	}
	if m.Config != nil {
		fields["config"] = m.Config
	}
	if m.Timeout > 0 {
		fields["headers"] = map[string]any{"timeout_ms": float64(m.Timeout) / float64(time.Millisecond)}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		panic(fmt.Sprintf("workertest: writing the message: %v", err))
	}
	return text
}
