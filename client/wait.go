package client

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// Wait waits until a task has ended, however it ended ([Task.Decode] tells failures). id is the task's, or that of a
// request: when the request was refused the error is one of the typed ones, when it met a task with its key that task is
// the answer. Of an id that nobody sent nothing ever comes: give ctx a deadline.
func (c *Client) Wait(ctx context.Context, id uuid.UUID) (Task, error) {
	task, err := c.hub.wait(ctx, &waiter{request: id, task: id})
	if err != nil {
		return Task{}, fmt.Errorf("waiting for task %s: %w", id, err)
	}
	return task, nil
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
