// Package workertest runs handlers without a database, through the same decoding, encoding and judging of errors as a worker
// does.
//
//	receipt, end := workertest.Run(ctx, charge, workertest.Message{
//		Input:        Order{ID: "S-1"},
//		Dependencies: map[string]any{"price": map[string]int{"cents": 990}},
//	})
//	require.Equal(t, messaging.Complete, end.Status)
//
// [Deliver] does it with a worker's handler by its name, middleware included. What is called in a handler's test and is no
// part of it (other services, the user's own database) is the test's matter; a transaction that the handler gives to
// CompleteTx is not touched here.
package workertest
