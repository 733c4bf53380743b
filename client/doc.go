// Package client submits tasks, waits for them, looks at them and operates on them.
//
//	c, err := client.New(client.Config{DatabaseURL: os.Getenv("PAWL_DATABASE_URL")})
//	if err != nil { … }
//	defer c.Close()
//	id, err := c.Submit(ctx, client.Request{Template: "shop/fulfil_order", Input: order, Key: order.ID})
//	if err != nil { … }
//	receipt, err := client.Result[Receipt](ctx, c, id)
//
// [Result] waits and decodes; a task that failed is a [TaskFailedError]. [Client.Wait] returns the task itself, however it
// ended.
//
// A request that needs no decision is usually a task when [Client.Submit] returns. All others are messages to the queue of
// task requests, and so is each of [Client.SubmitTx], which sends inside the caller's own transaction, so that what the
// transaction writes and the task come into being together. Each request has an id, made here unless the caller gives one. It
// becomes the task's id, so that a request may be repeated when nobody knows whether it arrived, and is what [Client.Wait]
// takes.
//
// What an orchestrator decides of such a message, waiting tells. A request that is refused is one of the typed
// errors [TaskAlreadyExistsError], [TaskAlreadyCompletedError], [TaskInputMismatchError], [KeyRequiredError] and
// [InvalidRequestError]; one whose key a task holds is attached to that task by default.
//
// A client is safe for concurrent use. Waiting of any number of callers costs one connection, which listens, and one query
// for all of them now and then.
package client
