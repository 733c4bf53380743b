package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-dev/pawl/internal/sqlstate"
)

// Class is what an error says about the message that was being worked.
type Class string

const (
	// Permanent errors are the message's own: when it raises one again, alone in its transaction, it is a dead letter.
	Permanent Class = "permanent"
	// Contention with others (a lock, a deadlock, a queue that is missing): the message stays and is tried again; the
	// other messages of its batch may well succeed.
	Contention Class = "contention"
	// Timeout of a statement: as Contention, but a message that runs into it alone, delivery after delivery, ends as a
	// dead letter.
	Timeout Class = "timeout"
	// Internal errors of the server: as Timeout. While a migration runs they pass; a bug that one message meets stays.
	Internal Class = "internal"
	// Lost connections, backends that died, and files that cannot be read: as Unavailable now, as Timeout when it happens
	// again and again.
	Lost Class = "lost"
	// Unavailable is a database that cannot work just now (shutting down, read-only, out of resources, not reachable, no
	// login): nothing is worth trying until later.
	Unavailable Class = "unavailable"
)

// Infrastructure says whether the error is surely not the message's fault, seen once. It changes no business state.
func (c Class) Infrastructure() bool { return c != Permanent && c != Internal }

// Doubtful says whether a message may cause such an error: one that meets it alone, delivery after delivery, ends as a
// dead letter.
func (c Class) Doubtful() bool { return c == Timeout || c == Lost || c == Internal }

// Classify says what an error means. Errors of making a connection and errors without a SQLSTATE are never the message's.
func Classify(err error) Class {
	code := sqlstate.Of(err)
	switch {
	case sqlstate.Connecting(err): // first: a login that is refused has a SQLSTATE, and one that hangs a deadline
		return Unavailable
	case code == "":
		return classifyConnection(err)
	case sqlstate.Internal(code):
		return Internal
	case !sqlstate.Infrastructure(code):
		return Permanent
	case sqlstate.Class(code) == sqlstate.ClassSystem: // a file: all of the disk, or the one block that holds what a message needs
		return Lost
	}
	switch code {
	case sqlstate.SerializationFailure, sqlstate.Deadlock, sqlstate.LockNotAvailable, // deadlocks are counted: each is a bug
		sqlstate.UndefinedTable, sqlstate.UndefinedFunction: // of a queue that is missing
		return Contention
	case sqlstate.QueryCanceled, sqlstate.IdleInTransaction, sqlstate.TransactionTimeout:
		return Timeout
	case sqlstate.CrashShutdown: // of another backend, perhaps by what we asked of this one
		return Lost
	}
	return Unavailable
}

func classifyConnection(err error) Class {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, context.Canceled), pgconn.SafeToRetry(err):
		return Unavailable
	default:
		return Lost
	}
}

// Reason is what a dead letter says of an error: the server's words and its code.
func Reason(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return "raised " + pgErr.Code + ": " + pgErr.Message
	}
	return err.Error()
}
