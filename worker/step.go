package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/messaging"
)

// Step is what a handler gets: one delivery of one attempt of a step.
type Step[In any] struct {
	Call
	// Input is the task's input, the same for all of its steps.
	Input In
}

// Call is what a step tells of itself, whatever type its input has. Handlers have it in their Step; [Middleware] sees it alone.
// When the attempt must have ended is the deadline of the handler's context.
//
// One that no worker has made names nothing: its methods return errors. Tests make real ones with package workertest.
type Call struct {
	TaskID uuid.UUID
	// Name of the step in its template ("run" in a task that names only a handler), and its index when it is mapped.
	Name  string
	Index int
	// Attempt counts from 1: attempts end with a result. Delivery counts how often this attempt reached a worker; above
	// 1, an earlier worker died or was too slow to extend its lease, and may have done part of the work.
	Attempt, Delivery int
	Handler, Queue    string
	// Token is the same for all attempts and deliveries of the step: put it into outgoing idempotency headers.
	Token         string
	CorrelationID string
	// Headers of the message, a JSON object: the trace of the task, and what the engine says to workers.
	Headers json.RawMessage

	delivery *delivery
}

// errNoDelivery is of a Call that was put together by hand.
var errNoDelivery = errors.New("no worker has made this step; a test makes one with package workertest")

// Dependency reads the result of a needed step into a pointer. It is an error when the step is not one of those needed,
// or when its result does not fit; return it, and it fails the step for good.
func (c Call) Dependency(name string, into any) error {
	if c.delivery == nil {
		return fmt.Errorf("reading dependency %q: %w", name, errNoDelivery)
	}
	result, ok := c.delivery.Dependencies[name]
	if !ok {
		return Permanent(Error{Type: typeInvalidInput, Err: fmt.Errorf("reading dependency %q: step %q needs no such step, or it was skipped", name, c.Name)})
	}
	if err := decode(result, into, false); err != nil {
		return Permanent(Error{Type: typeInvalidInput, Err: fmt.Errorf("reading dependency %q: %w", name, err)})
	}
	return nil
}

// Dependencies returns the results of the needed steps by name, as JSON. Skipped steps have none.
func (c Call) Dependencies() map[string]json.RawMessage {
	if c.delivery == nil {
		return nil
	}
	return c.delivery.Dependencies
}

// Config reads the template's config for this step into a pointer. Without one the value stays as it is.
func (c Call) Config(into any) error {
	if c.delivery == nil {
		return fmt.Errorf("reading config: %w", errNoDelivery)
	}
	if err := decode(c.delivery.Config, into, true); err != nil {
		return Permanent(Error{Type: typeInvalidInput, Err: fmt.Errorf("reading config of step %q: %w", c.Name, err)})
	}
	return nil
}

// CompleteTx completes the step with a result as part of the caller's transaction, which must be in the same database:
// what else the transaction wrote and the step's completion are committed together or not at all, exactly once. Call it
// once, last, then commit and return nil; the value that the handler returns is not used then.
//
// The error is [ErrLeaseLost] when the step is somebody else's by now, or has ended: roll back. When the transaction does
// not commit and the handler returns nil all the same, the attempt fails with type transaction_not_committed.
func (c Call) CompleteTx(ctx context.Context, tx pgx.Tx, result any) error {
	d := c.delivery
	if d == nil {
		return fmt.Errorf("completing step in a transaction: %w", errNoDelivery)
	}
	text, err := encode(result)
	if err != nil {
		return err
	}
	d.enterTx() // before the message is locked: from here on a beat that cannot see it means nothing
	if d.trial != nil {
		d.trial.Result = text
		return nil
	}
	accepted, err := reportSteps(ctx, tx, d.lane, []report{{MsgID: d.MsgID, ReadCount: d.ReadCount, Status: messaging.Complete, Result: text}})
	if err != nil {
		if cause := context.Cause(d.ctx); cause != nil && ctx.Err() != nil {
			err = cause // says more than that the context has ended
		}
		return fmt.Errorf("completing step %s of task %s in a transaction: %w", c.Name, c.TaskID, d.explain(err))
	}
	if len(accepted) != 1 || !accepted[0].Accepted {
		return fmt.Errorf("completing step %s of task %s in a transaction: %w", c.Name, c.TaskID, ErrLeaseLost)
	}
	return nil
}
