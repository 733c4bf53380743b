package client

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// What the engine calls the ways in which it refuses a request.
const (
	alreadyExists    = "TaskAlreadyExists"
	alreadyCompleted = "TaskAlreadyCompleted"
	inputMismatch    = "TaskInputMismatch"
	keyRequired      = "KeyRequired"
	attached         = "duplicate request"
)

// decision is what the database knows of one request. Its message goes away in the transaction that decides it, which
// also makes its task, or leaves a trace: an absorbed row when a task holds its key or id, a dead letter when it is invalid.
type decision struct {
	exists      bool // a task with the request's id
	pending     bool // the message is still there (asked only when the message is known)
	absorbed    string
	holder      uuid.UUID
	key         string
	holderState string // public status; empty: the holder was removed
	completedAt *time.Time
	result      json.RawMessage
	dead        string
}

// The message is asked for by its id, without "exists": that may become a hash of the whole queue, its dead rows passed.
const decisionQuery = `
	select w.ord, t.task_id is not null,
		coalesce((select true from pgmq.q_orchestration_task_requests q where q.msg_id = w.message limit 1), false),
		coalesce(a.reason, ''), a.task_id, coalesce(a.message->>'key', ''), coalesce(pawl.public_status(h.state), ''), h.finalized_at,
		case when a.reason = '` + alreadyCompleted + `' then h.result::text end, coalesce(d.reason, '')
	from unnest($1::text[]::uuid[], $2::bigint[]) with ordinality w(request, message, ord)
	left join pawl.tasks t on t.task_id = w.request
	left join lateral (
		select x.reason, x.task_id, x.message from pawl.absorbed x
		where (t.task_id is null or w.message > 0) and x.queue = 'orchestration_task_requests'
			and x.message->>'request_id' = w.request::text and (w.message = 0 or x.msg_id = w.message)
		order by x.absorbed_id desc limit 1) a on true
	left join pawl.tasks h on h.task_id = a.task_id
	left join lateral (
		select x.reason from pawl.dead_letters x
		where (t.task_id is null or w.message > 0) and a.reason is null and x.queue = 'orchestration_task_requests' and x.status = 'open'
			and x.message->>'request_id' = w.request::text and (w.message = 0 or x.msg_id = w.message)
		order by x.dead_letter_id desc limit 1) d on true`

// decide notes for undecided waiters whose end they wait for, and answers those whose requests were refused.
func (h *hub) decide(ctx context.Context, waiting []*waiter) error {
	requests, messages := make([]string, len(waiting)), make([]int64, len(waiting))
	for i, w := range waiting {
		requests[i], messages[i] = w.request.String(), w.message
	}
	return h.client.borrow(ctx, func(conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, decisionQuery, requests, messages)
		if err != nil {
			return err
		}
		return h.apply(rows, waiting)
	})
}

// apply notes the decisions of rows about waiters.
func (h *hub) apply(rows pgx.Rows, waiting []*waiter) error {
	var ord int
	var d decision
	var holder *uuid.UUID
	var result []byte
	_, err := pgx.ForEachRow(rows, []any{&ord, &d.exists, &d.pending, &d.absorbed, &holder, &d.key, &d.holderState, &d.completedAt, &result, &d.dead}, func() error {
		d.holder, d.result = uuid.Nil, result
		if holder != nil {
			d.holder = *holder
		}
		w := waiting[ord-1]
		if err := w.apply(d); err != nil {
			h.tell(w, answer{err: err})
		} else if w.decided && w.soon {
			h.tell(w, answer{})
		}
		return nil
	})
	return err
}

// apply notes a decision. The error is the request's refusal.
func (w *waiter) apply(d decision) error {
	switch {
	case d.pending:
		return nil
	case d.dead != "":
		kind, message, ok := strings.Cut(d.dead, ": ")
		switch {
		case !ok || strings.ContainsRune(kind, ' '): // a message that could not be processed, in the engine's words
			return &InvalidRequestError{Kind: "InvalidRequest", Message: d.dead}
		case kind == keyRequired:
			return &KeyRequiredError{Message: message}
		}
		return &InvalidRequestError{Kind: kind, Message: message}
	case d.absorbed == attached && d.holderState == "":
		return ErrResultExpired
	case d.absorbed == attached:
		w.task, w.decided, w.attached = d.holder, true, true
		return nil
	case d.absorbed != "":
		return d.refusal(w.request)
	}
	w.decided = d.exists
	return nil
}

func (d decision) refusal(request uuid.UUID) error {
	switch d.absorbed {
	case alreadyExists:
		return &TaskAlreadyExistsError{Key: d.key, TaskID: d.holder, Status: d.holderState}
	case alreadyCompleted:
		completed := &TaskAlreadyCompletedError{Key: d.key, TaskID: d.holder, Result: d.result}
		if d.completedAt != nil {
			completed.CompletedAt = *d.completedAt
		}
		return completed
	case inputMismatch:
		mismatch := &TaskInputMismatchError{Key: d.key, TaskID: d.holder, Status: d.holderState}
		if d.holder == request {
			mismatch.Key = ""
		}
		return mismatch
	}
	return &InvalidRequestError{Kind: d.absorbed, Message: "the request was refused"}
}
