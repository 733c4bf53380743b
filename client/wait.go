package client

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// Wait waits until a task has ended, however it ended ([Task.Decode] tells failures). id is the task's, or that of a
// request: when the request was refused the error is one of the typed ones, when it met a task with its key that task is
// the answer. A task that was removed while it was waited for, its retention over, is ErrNotFound, or ErrResultExpired to
// who attached to it. Of an id that nobody sent nothing ever comes: give ctx a deadline. When ctx ends, errors.Is finds
// both ctx.Err() and context.Cause(ctx).
//
// A database that cannot be reached is asked again until ctx ends; Config.Log tells of it. One that is not there, that
// refuses the login or that may not be read ends waiting with its error, and so do a closed pool, a connection pooler
// that prepared statements do not get through, and an error that arises here, on a connection that works.
func (c *Client) Wait(ctx context.Context, id uuid.UUID) (Task, error) {
	task, err := c.hub.wait(ctx, &waiter{request: id, task: id})
	if err != nil {
		return Task{}, fmt.Errorf("waiting for task %s: %w", id, err)
	}
	return task, nil
}

// Result waits until a task has ended and returns its result. A task that did not complete, nor was resolved by hand, is a
// TaskFailedError; else the errors are those of [Client.Wait], and that of a result that Out cannot hold. A task that was
// resolved without a result gives the zero Out.
func Result[Out any](ctx context.Context, c *Client, id uuid.UUID) (out Out, err error) {
	task, err := c.Wait(ctx, id)
	if err == nil {
		err = task.Decode(&out)
	}
	return out, err
}

// SubmitAndWait is Submit, then Wait.
func (c *Client) SubmitAndWait(ctx context.Context, request Request) (Task, error) {
	id, messageID, err := c.submit(ctx, request)
	if err != nil {
		return Task{}, err
	}
	w := &waiter{request: id, task: id, decided: messageID == 0, fresh: true}
	if request.ID != uuid.Nil { // the id may be another request's, too: the message tells whether this one was taken
		w.message = messageID
	}
	task, err := c.hub.wait(ctx, w)
	if err != nil {
		return Task{}, fmt.Errorf("waiting for task %s: %w", id, err)
	}
	return task, nil
}
