package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/workflow"
)

// decision is what became of a request. Outcome is "sent" while no orchestrator has looked at it.
type decision struct {
	Outcome   messaging.Outcome `json:"outcome"`
	RequestID uuid.UUID         `json:"request_id"`
	TaskID    uuid.UUID         `json:"task_id,omitzero"`
}

const sent messaging.Outcome = "sent"

// decide sends a request and waits for what becomes of it; limit 0 is for ever.
func decide(ctx context.Context, c *client.Client, r messaging.TaskRequest, limit time.Duration) (decision, error) {
	patience := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		patience, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	d, err := c.SubmitAndDecide(patience, client.Request{
		ID: r.RequestID, Template: r.Template, Handler: r.Handler, Namespace: r.Namespace, Queue: r.Queue, Input: r.Input, Key: r.Key,
		OnDuplicate: r.OnDuplicate, Requester: r.Requester, RunAt: r.RunAt, ReplyTo: r.ReplyTo, CorrelationID: r.CorrelationID, Tags: r.Tags,
	})
	switch {
	case err == nil && d.Attached:
		return decision{Outcome: messaging.Attached, RequestID: d.RequestID, TaskID: d.TaskID}, nil
	case err == nil:
		return decision{Outcome: messaging.Created, RequestID: d.RequestID, TaskID: d.TaskID}, nil
	case patience.Err() != nil && ctx.Err() == nil && d.RequestID != uuid.Nil:
		return decision{Outcome: sent, RequestID: d.RequestID}, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && d.RequestID != uuid.Nil:
		return decision{}, &failure{code: ExitTimeout, err: fmt.Errorf("no orchestrator has taken request %s within the time that --timeout gives; it stays sent", d.RequestID),
			hint: "pawl task explain " + d.RequestID.String() + " says what it waits for"}
	case interrupted(ctx) && d.RequestID != uuid.Nil:
		return decision{}, &failure{code: ExitFailed, err: fmt.Errorf("interrupted: request %s stays sent", d.RequestID),
			hint: "pawl task wait " + d.RequestID.String() + " waits for it again"}
	case interrupted(ctx):
		return decision{}, &failure{code: ExitFailed, err: fmt.Errorf("interrupted: request %s may have been sent", r.RequestID),
			hint: "pawl task explain " + r.RequestID.String() + " says whether it was"}
	}
	return decision{}, grantHint(refusal(err), "pawl_producer")
}

// interrupted says whether Ctrl-C or SIGTERM ended ctx.
func interrupted(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// refusal gives the error of a request that was refused its exit code, and its parts in the words that the engine uses
// at every door. Other errors stay as they are.
func refusal(err error) error {
	var exists *client.TaskAlreadyExistsError
	var completed *client.TaskAlreadyCompletedError
	var mismatch *client.TaskInputMismatchError
	var keyless *client.KeyRequiredError
	var invalid *client.InvalidRequestError
	switch {
	case errors.As(err, &exists):
		return held("TaskAlreadyExists", exists, exists.TaskID, map[string]any{"status": exists.Status})
	case errors.As(err, &completed):
		body := map[string]any{"result": completed.Result}
		if !completed.CompletedAt.IsZero() {
			body["completed_at"] = completed.CompletedAt
		}
		if completed.Result == nil {
			body["result"] = json.RawMessage("null")
		}
		return held("TaskAlreadyCompleted", completed, completed.TaskID, body)
	case errors.As(err, &mismatch):
		return held("TaskInputMismatch", mismatch, mismatch.TaskID, map[string]any{"status": mismatch.Status})
	case errors.Is(err, client.ErrResultExpired):
		return &failure{code: ExitRefused, err: fmt.Errorf("ResultExpired: %w", client.ErrResultExpired), body: map[string]any{"error": "ResultExpired"}}
	case errors.As(err, &keyless):
		return &failure{code: ExitRefused, err: fmt.Errorf("KeyRequired: %w", keyless), hint: "give one with --key", body: map[string]any{"error": "KeyRequired"}}
	case errors.As(err, &invalid):
		return &failure{code: ExitRefused, err: fmt.Errorf("request refused: %w", invalid), hint: "pawl dead list shows it, as a dead letter",
			body: map[string]any{"error": invalid.Kind, "message": invalid.Message}}
	}
	return err
}

func held(name string, err error, holder uuid.UUID, body map[string]any) error {
	body["error"], body["message"], body["existing_execution_id"] = name, err.Error(), holder
	return &failure{code: ExitRefused, err: fmt.Errorf("%s: %w (task %s)", name, err, holder), hint: "pawl task show " + holder.String(), body: body}
}

// printDecision tells what became of a request whose end is not waited for.
func (a *app) printDecision(d decision) error {
	if a.json {
		return a.printJSON(d)
	}
	switch d.Outcome {
	case messaging.Created:
		a.say("created task %s", d.TaskID)
	case messaging.Attached:
		a.say("attached to task %s, which holds the key or id already", d.TaskID)
	default:
		a.say("sent request %s; no orchestrator has taken it yet (start one with: orchestrator)", d.RequestID)
	}
	return nil
}

// awaitTask waits for the end of the task and prints its result.
func (a *app) awaitTask(ctx context.Context, db *database, d decision) error {
	stop := a.tellHeld(ctx, db, d.TaskID)
	defer stop()
	var t taskDetail
	for !t.final() { // somebody may make it run again before it is read
		ended, err := db.client.Wait(ctx, d.TaskID)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return &failure{code: ExitTimeout, err: fmt.Errorf("task %s has not ended within the time that --timeout gives", d.TaskID),
				hint: "pawl task explain " + d.TaskID.String() + " says what it waits for"}
		} else if err != nil && interrupted(ctx) {
			return &failure{code: ExitFailed, err: fmt.Errorf("interrupted: task %s goes on without this command", d.TaskID),
				hint: "pawl task wait " + d.TaskID.String() + " waits for it again, pawl task cancel ends it"}
		} else if err != nil {
			return refusal(err)
		}
		if t, err = readTask(ctx, db, ended.ID); err != nil {
			return err
		}
	}
	stop()
	if a.json {
		out := struct {
			Outcome messaging.Outcome `json:"outcome,omitempty"`
			taskDetail
		}{d.Outcome, t}
		if err := a.printJSON(out); err != nil {
			return err
		}
	} else {
		a.say("task %s %s in %s", t.TaskID, t.State, t.took())
		if len(t.Result) > 0 {
			a.say("%s", indented(t.Result, ""))
		}
	}
	if t.Status != "completed" {
		return &failure{code: ExitTaskFailed, err: fmt.Errorf("task %s ended %s: %s", t.TaskID, t.State, errorMessage(t.Error)),
			hint: "pawl task show " + t.TaskID + " shows the steps; pawl task retry runs the failed ones again"}
	}
	return nil
}

// heldLook is the time between looks whether a person is waited for.
const heldLook = 2 * time.Second

// tellHeld says once, on standard error, that a task that is waited for waits for a person, until the function it returns is
// called. It is a hint: what keeps it from looking is told by the wait itself.
func (a *app) tellHeld(ctx context.Context, db *database, id uuid.UUID) (stop func()) {
	if a.json {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() {
		tick := time.NewTicker(heldLook)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if t, err := db.client.Get(ctx, id); err == nil && t.State == workflow.TaskBlockedByFailures {
				fmt.Fprintf(a.Err, "task %s is %s and waits for a person: pawl task explain %s\n", id, t.State, id)
				return
			}
		}
	})
	return func() { cancel(); looks.Wait() }
}
