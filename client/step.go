package client

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/workflow"
)

// Step is one step of a task.
type Step struct {
	Name     string
	Index    int
	State    workflow.StepState
	Handler  string
	Queue    string
	Attempt  int // of the present or last attempt; 0 before the first
	Failures int // attempts that failed
	// Deliveries of the attempt: above 1, a worker died or was too slow.
	Deliveries int
	Worker     string          // that has it now
	Result     json.RawMessage // nil unless complete
	Error      json.RawMessage // of the last failed attempt
	StateSince time.Time
	DueAt      time.Time // when time moves it next: a retry, a timeout; zero: never
}

// Steps returns the steps of a task in the order of its template, or ErrNotFound.
func (c *Client) Steps(ctx context.Context, id uuid.UUID) ([]Step, error) {
	read := func(row pgx.CollectableRow) (s Step, err error) {
		var result, failure []byte
		var due *time.Time
		err = row.Scan(&s.Name, &s.Index, &s.State, &s.Handler, &s.Queue, &s.Attempt, &s.Failures, &s.Deliveries, &s.Worker,
			&result, &failure, &s.StateSince, &due)
		s.Result, s.Error = result, failure
		if due != nil {
			s.DueAt = *due
		}
		return s, err
	}
	steps, err := belongings(ctx, c, read, `
		select s.step, s.index, s.state::text, s.handler, s.queue, s.attempt, s.failures, s.deliveries, coalesce(s.worker, ''),
			s.result::text, s.error::text, s.state_since, s.due_at
		from pawl.tasks t left join pawl.steps s on s.task_id = t.task_id
		left join pawl.template_steps p on p.template_id = s.template_id and p.step = s.step
		where t.task_id = $1 order by p.position, s.step, s.index`, id)
	if err != nil {
		return nil, fmt.Errorf("getting steps of task %s: %w", id, err)
	}
	return steps, nil
}

// belongings asks for what a task has, in one statement: between two it may come into being, or go. A row whose first column is
// null says that the task is there and has none.
func belongings[T any](ctx context.Context, c *Client, read pgx.RowToFunc[T], sql string, id uuid.UUID) ([]T, error) {
	none := false
	all, err := list(ctx, c, func(row pgx.CollectableRow) (one T, err error) {
		if none = row.RawValues()[0] == nil; none {
			return one, nil
		}
		return read(row)
	}, sql, id)
	switch {
	case err == nil && len(all) == 0:
		err = ErrNotFound
	case none:
		all = all[:0]
	}
	return all, err
}

// Transition is one move of a task or of one of its steps.
type Transition struct {
	Step      string // empty: the task's
	Index     int
	From, To  string // states, of a task or of a step; From is empty for the first
	Event     string
	Revision  int // dense, for each task and each step from 1
	Attempt   int
	Delivery  int
	Processor string // the orchestrator or worker that did it
	Actor     string // the operator who did it, with the reason
	Reason    string
	At        time.Time
}

// History returns all transitions of a task and its steps, the oldest first, or ErrNotFound.
func (c *Client) History(ctx context.Context, id uuid.UUID) ([]Transition, error) {
	read := func(row pgx.CollectableRow) (t Transition, err error) {
		err = row.Scan(&t.At, &t.Step, &t.Index, &t.From, &t.To, &t.Event, &t.Revision, &t.Attempt, &t.Delivery, &t.Processor, &t.Actor, &t.Reason)
		return t, err
	}
	history, err := belongings(ctx, c, read, `
		select a.at, coalesce(a.step, ''), coalesce(a.index, 0), coalesce(a.from_state, ''), a.to_state, a.event, a.revision,
			coalesce(a.attempt, 0), coalesce(a.delivery, 0), coalesce(a.processor, ''), coalesce(a.actor, ''), coalesce(a.reason, '')
		from pawl.tasks t left join pawl.audit a on a.task_id = $1
			and a.at >= (select requested_at - interval '1 minute' from pawl.tasks where task_id = $1)
		where t.task_id = $1 order by a.at, a.xid, a.step nulls first, a.index, a.revision`, id)
	if err != nil {
		return nil, fmt.Errorf("getting history of task %s: %w", id, err)
	}
	return history, nil
}
