// Package worker runs handlers for steps.
//
//	w, err := worker.New(worker.Config{
//		DatabaseURL: os.Getenv("PAWL_DATABASE_URL"),
//		Queues:      []worker.Queue{{Name: "shop_queue"}},
//	})
//	if err != nil { … }
//	worker.Handle(w, "shop.charge", func(ctx context.Context, step worker.Step[Order]) (Receipt, error) {
//		return charge(ctx, step.Input, step.Token)
//	})
//	err = w.Run(ctx) // until ctx ends, then gracefully
//
// A step's message is leased: the worker extends the lease while the handler runs, and when the worker dies the message
// comes back after it. So a handler may run more than once. step.Token is the same every time, for services that take an
// idempotency key; a handler whose effects are in the same database uses [Call.CompleteTx], and they happen once.
//
// A handler that returns an error has its step tried again, as often as the template says. [Permanent], [RetryAfter] and
// [Rejected] say otherwise, and [Error] gives a failure the type by which it is counted. A panic is an error too.
//
// The context of a handler ends when its work is no longer wanted; context.Cause tells why: [ErrCancelled],
// [ErrLeaseLost], [ErrTimeout] or [ErrStopping].
//
// What every handler needs around it (a log, a transaction, an error tracker) is a [Middleware]. Package workertest runs
// handlers in tests, without a database.
//
// How it works: one goroutine per queue (lane.go) talks to the database, one call at a time; a call reports the handlers
// that have ended meanwhile and claims work for the free slots. Another (beat.go) extends the leases.
package worker
