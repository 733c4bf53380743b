package cli

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/messaging"
)

// sentRequest is a request on its way: where its outcome will be found.
type sentRequest struct {
	id                 uuid.UUID
	msgID              int64
	absorbedAt, deadAt int64 // the highest ids before it was sent: what it causes comes after
}

// decision is what became of a request. Outcome is empty while no orchestrator has looked at it.
type decision struct {
	Outcome   messaging.Outcome `json:"outcome"`
	RequestID uuid.UUID         `json:"request_id"`
	TaskID    uuid.UUID         `json:"task_id,omitzero"`
	Reason    string            `json:"reason,omitempty"`
}

func send(ctx context.Context, pool *pgxpool.Pool, id uuid.UUID, body []byte) (sentRequest, error) {
	s := sentRequest{id: id}
	err := pool.QueryRow(ctx, `select coalesce((select max(absorbed_id) from pawl.absorbed), 0),
		coalesce((select max(dead_letter_id) from pawl.dead_letters), 0)`).Scan(&s.absorbedAt, &s.deadAt)
	if err == nil {
		err = pool.QueryRow(ctx, "select pgmq.send($1, $2::jsonb)", messaging.TaskRequests, string(body)).Scan(&s.msgID)
	}
	if err != nil {
		return s, fmt.Errorf("sending request %s: %w", id, err)
	}
	return s, nil
}

// decision waits for what becomes of the request; within 0 is for ever.
func (s sentRequest) decision(ctx context.Context, pool *pgxpool.Pool, within time.Duration) (decision, error) {
	deadline := time.Now().Add(within)
	pause := 5 * time.Millisecond
	for {
		d, err := s.look(ctx, pool)
		if err != nil || d.Outcome != "" || within > 0 && time.Now().After(deadline) {
			return d, err
		}
		if err := rest(ctx, pause); err != nil {
			return d, fmt.Errorf("waiting for an orchestrator to take request %s: %w", s.id, err)
		}
		pause = min(2*pause, 250*time.Millisecond)
	}
}

// look asks once. The request's message goes away in the transaction that decides it, so a message that is there is not
// decided, and what is found after it went is its outcome.
func (s sentRequest) look(ctx context.Context, pool *pgxpool.Pool) (decision, error) {
	d := decision{RequestID: s.id}
	var pending, created bool
	var duplicate, invalid *string
	var holder *uuid.UUID
	err := pool.QueryRow(ctx, `
		select exists (select from pgmq.q_orchestration_task_requests where msg_id = $1), d.reason, a.reason, a.task_id,
			exists (select from pawl.tasks where task_id = $4)
		from (values (1)) one(row)
		left join pawl.dead_letters d on d.dead_letter_id > $2 and d.queue = $5 and d.msg_id = $1
		left join pawl.absorbed a on a.absorbed_id > $3 and a.queue = $5 and a.msg_id = $1
		limit 1`, s.msgID, s.deadAt, s.absorbedAt, s.id, messaging.TaskRequests).Scan(&pending, &invalid, &duplicate, &holder, &created)
	if err != nil {
		return d, fmt.Errorf("looking for request %s: %w", s.id, err)
	}
	switch {
	case pending:
	case invalid != nil:
		d.Outcome, d.Reason = messaging.Invalid, *invalid
	case duplicate != nil && holder != nil:
		d.TaskID, d.Outcome = *holder, messaging.Attached
		if *duplicate != "duplicate request" {
			d.Outcome, d.Reason = messaging.Refused, *duplicate
		}
	case created:
		d.Outcome, d.TaskID = messaging.Created, s.id
	}
	return d, nil
}

func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// refusal is the error of a request that met a task, in the words that the engine uses at every door.
func refusal(ctx context.Context, pool *pgxpool.Pool, d decision, key string) error {
	body := map[string]any{"error": d.Reason, "existing_execution_id": d.TaskID}
	name := key
	if name == "" {
		name = d.TaskID.String()
	}
	message := fmt.Sprintf("Task with ID '%s' exists with another request", name)
	switch d.Reason {
	case "TaskAlreadyExists":
		message = fmt.Sprintf("Task with ID '%s' is already pending/running", name)
	case "TaskAlreadyCompleted":
		message = fmt.Sprintf("Task with ID '%s' already completed successfully", name)
	case "TaskInputMismatch":
		message = fmt.Sprintf("Task with ID '%s' exists with another input", name)
	}
	if t, err := readTask(ctx, pool, d.TaskID); err == nil { // its retention may be over: then only the key is left
		if d.Reason == "TaskAlreadyCompleted" {
			body["completed_at"], body["result"] = t.FinalizedAt, t.Result
		} else {
			body["status"] = t.Status
		}
	}
	body["message"] = message
	return &failure{code: ExitRefused, err: fmt.Errorf("%s: %s (task %s)", d.Reason, message, d.TaskID),
		hint: "pawl task show " + d.TaskID.String(), body: body}
}

// printDecision tells what became of a request whose end is not waited for.
func (a *app) printDecision(ctx context.Context, pool *pgxpool.Pool, d decision, key string) error {
	if a.json && (d.Outcome == messaging.Created || d.Outcome == messaging.Attached || d.Outcome == "") {
		if d.Outcome == "" {
			d.Outcome = "sent"
		}
		return a.printJSON(d)
	}
	switch d.Outcome {
	case messaging.Created:
		a.say("created task %s", d.TaskID)
	case messaging.Attached:
		a.say("attached to task %s, which holds the key or id already", d.TaskID)
	case messaging.Refused:
		return refusal(ctx, pool, d, key)
	case messaging.Invalid:
		return &failure{code: ExitRefused, err: fmt.Errorf("request refused: %s", d.Reason), hint: "pawl dead list shows it with its reason",
			body: map[string]any{"error": "InvalidRequest", "message": d.Reason}}
	default:
		a.say("sent request %s; no orchestrator has taken it yet (is one running? pawl dev starts one)", d.RequestID)
	}
	return nil
}

// awaitTask waits for the end of the task and prints its result.
func (a *app) awaitTask(ctx context.Context, pool *pgxpool.Pool, d decision) error {
	c, err := client.New(client.Config{Pool: pool, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("waiting for task %s: %w", d.TaskID, err)
	}
	defer c.Close()
	if _, err := c.Wait(ctx, d.TaskID); err != nil {
		return err
	}
	t, err := readTask(ctx, pool, d.TaskID)
	if err != nil {
		return err
	}
	t.StepRows = nil
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
