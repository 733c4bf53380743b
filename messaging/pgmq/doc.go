// Package pgmq is PGMQ in Go and nothing more: the queue operations of
// https://github.com/pgmq/pgmq as functions that take a context, a database
// handle and a queue, and a [Listener] for its insert notifications.
//
// Every function takes a [DB], which is a pool, a connection or a transaction,
// so that a send or a delete can be part of the caller's own transaction:
//
//	tx, _ := pool.Begin(ctx)
//	id, err := pgmq.Send(ctx, tx, "orders_queue", pgmq.Outgoing{Body: body})
//
// The statements name the columns they read and cast the values they pass, and
// none mentions PGMQ's record types: those changed their shape in 1.5, 1.10
// and 1.13, and overloads made untyped calls ambiguous in 1.5 and 1.8. The
// package is written for PGMQ 1.5 and later, and tested with 1.11.1.
//
// PGMQ has no receipt handles: [Delete], [Archive] and [SetVT] act on a message
// whoever holds it now. Who needs a fence compares the message's read count in
// a statement of its own.
package pgmq
