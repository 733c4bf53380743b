package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/internal/sqlstate"
	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/messaging/pgmq"
)

// pauses are the times before a submit whose connection failed is tried again. Repeating is safe: the request keeps its id.
// Together they outlast a restart of the database; a client that it has never answered takes the hasty first ones only.
var pauses = []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second}

const hasty = 2

// Submit sends a request and returns its id, which is the task's unless the request meets a task that holds its key. That
// it was accepted only waiting tells.
//
// A lost connection is waited out for up to about 4 s, as long as a restart of the database takes, within ctx. Of a database
// that has never answered the client it is told after a tenth of a second. This holds for all that submit without a
// transaction of the caller's.
func (c *Client) Submit(ctx context.Context, request Request) (uuid.UUID, error) {
	id, _, err := c.submit(ctx, request)
	return id, err
}

// Enqueue asks for a task of one step: one call of a handler, on the queue default_queue.
func (c *Client) Enqueue(ctx context.Context, handler string, input any) (uuid.UUID, error) {
	return c.Submit(ctx, Request{Handler: handler, Input: input})
}

// Decision is what became of a request that was not refused.
type Decision struct {
	RequestID uuid.UUID
	// TaskID is that of the request's task: its own, or when it attached the one that holds its key or id.
	TaskID   uuid.UUID
	Attached bool
}

// SubmitAndDecide is Submit, then waits until the engine has decided about the request; a refusal is one of the typed
// errors. When ctx ends before that, the decision has the request's id alone: it is sent.
func (c *Client) SubmitAndDecide(ctx context.Context, request Request) (Decision, error) {
	id, messageID, err := c.submit(ctx, request)
	switch {
	case err != nil:
		return Decision{}, err
	case messageID == 0:
		return Decision{RequestID: id, TaskID: id}, nil
	}
	w := &waiter{request: id, task: id, message: messageID, soon: true, fresh: true}
	if _, err := c.hub.wait(ctx, w); err != nil {
		return Decision{RequestID: id}, fmt.Errorf("waiting for the decision about request %s: %w", id, err)
	}
	return Decision{RequestID: id, TaskID: w.task, Attached: w.attached}, nil
}

// SubmitTx sends a request on the caller's transaction: the task comes into being when the transaction commits. A pool or
// a connection will do as well.
func (c *Client) SubmitTx(ctx context.Context, tx DB, request Request) (_ uuid.UUID, err error) {
	ctx, span := c.span(ctx, 1)
	defer func() { end(span, err) }()
	id, message, err := request.message(ctx)
	if err == nil && c.closed() {
		err = ErrClosed
	}
	if err != nil {
		return uuid.Nil, fmt.Errorf("submitting request: %w", err)
	}
	if _, err := pgmq.Send(ctx, tx, messaging.TaskRequests, message); err != nil {
		return uuid.Nil, fmt.Errorf("submitting request %s: %w", id, err)
	}
	return id, nil
}

// SubmitMany submits requests in one statement, all of them or none, and returns their ids in the same order.
func (c *Client) SubmitMany(ctx context.Context, requests []Request) (_ []uuid.UUID, err error) {
	ctx, span := c.span(ctx, len(requests))
	defer func() { end(span, err) }()
	ids, messages := make([]uuid.UUID, len(requests)), make([]pgmq.Outgoing, len(requests))
	for i := range requests {
		var err error
		if ids[i], messages[i], err = requests[i].message(ctx); err != nil {
			return nil, fmt.Errorf("submitting request %d of %d: %w", i+1, len(requests), err)
		}
	}
	if len(requests) == 0 {
		return ids, nil
	}
	if _, err := c.send(ctx, messages); err != nil {
		return nil, fmt.Errorf("submitting %d requests: %w", len(requests), err)
	}
	return ids, nil
}

// submit returns the request's id and its message's, which is 0 when the request is a task already.
func (c *Client) submit(ctx context.Context, request Request) (_ uuid.UUID, _ int64, err error) {
	ctx, span := c.span(ctx, 1)
	defer func() { end(span, err) }()
	id, message, err := request.message(ctx) // once, so that repeating keeps the id
	if err != nil {
		return uuid.Nil, 0, fmt.Errorf("submitting request: %w", err)
	}
	sent, err := c.send(ctx, []pgmq.Outgoing{message})
	if err != nil {
		return uuid.Nil, 0, fmt.Errorf("submitting request %s: %w", id, err)
	}
	return id, sent[0], nil
}

// send hands requests to the database and returns the ids of their messages, 0 for those that are tasks already. A role that
// may do no more than send messages does that.
func (c *Client) send(ctx context.Context, messages []pgmq.Outgoing) (ids []int64, err error) {
	err = c.again(ctx, func(conn *pgxpool.Conn) error {
		if !c.sendOnly.Load() {
			ids, err = submitRequests(ctx, conn, messages)
			if !unavailable(err) {
				return err
			}
			c.sendOnly.Store(true)
		}
		ids, err = pgmq.SendBatch(ctx, conn, messaging.TaskRequests, messages)
		return err
	})
	return ids, err
}

func submitRequests(ctx context.Context, db DB, messages []pgmq.Outgoing) ([]int64, error) {
	bodies, headers := make([]string, len(messages)), make([]*string, len(messages))
	for i, m := range messages {
		bodies[i] = string(m.Body)
		if len(m.Headers) > 0 {
			text := string(m.Headers)
			headers[i] = &text
		}
	}
	var ids []int64 // null: all are tasks
	err := db.QueryRow(ctx, `select pawl.submit_requests($1::text[], $2::text[])`, bodies, headers).Scan(&ids)
	if ids == nil {
		ids = make([]int64, len(messages))
	}
	return ids, err
}

// unavailable tells that the caller's role may not call a function, or that an older database does not have it.
func unavailable(err error) bool {
	return sqlstate.Uncallable(sqlstate.OfStatement(err)) // a right to log in may be missing too, and come back
}

// span of a submit, whose requests carry it to their tasks.
func (c *Client) span(ctx context.Context, requests int) (context.Context, trace.Span) {
	return c.tracer.Start(ctx, "submit task request", trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		attribute.String("messaging.system", "pgmq"), attribute.String("messaging.destination.name", messaging.TaskRequests),
		attribute.Int("messaging.batch.message_count", requests)))
}

func end(span trace.Span, err error) {
	if err != nil {
		// Not the error's text: it may hold what the caller wrote.
		span.SetStatus(codes.Error, "nothing was submitted")
	}
	span.End()
}

// again repeats what failed for want of a connection. What the server answered is not repeated, unless it was about to
// go away.
func (c *Client) again(ctx context.Context, do func(conn *pgxpool.Conn) error) error {
	for try := 0; ; try++ {
		err := c.borrow(ctx, do)
		if err == nil {
			c.met.Store(true)
			return nil
		}
		if try == len(pauses) || try == hasty && !c.met.Load() || ctx.Err() != nil || !lostConnection(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-c.hub.life.Done(): // closed
			return err
		case <-time.After(pauses[try]):
		}
	}
}

func lostConnection(err error) bool {
	if errors.As(err, new(*ownError)) || errors.Is(err, ErrClosed) || sqlstate.Closed(err) {
		return false
	}
	code := sqlstate.Of(err) // a login's too: a wrong password is told at once
	return code == "" || sqlstate.Leaving(code)
}
