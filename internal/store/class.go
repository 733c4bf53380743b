package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// Class is what an error says about the message that was being worked.
type Class string

const (
	// Permanent errors are the message's own: when it raises one alone in its transaction, it is a dead letter.
	Permanent Class = "permanent"
	// Contention with others (a lock, a deadlock, a queue that is missing): the message stays and is tried again; the
	// other messages of its batch may well succeed.
	Contention Class = "contention"
	// Timeout of a statement: as Contention, but a message that runs into it alone, delivery after delivery, ends as a
	// dead letter.
	Timeout Class = "timeout"
	// Lost connections, and backends that died: as Unavailable now, as Timeout when it happens again and again.
	Lost Class = "lost"
	// Unavailable is a database that cannot work just now (shutting down, read-only, out of resources, not reachable):
	// nothing is worth trying until later.
	Unavailable Class = "unavailable"
)

// Infrastructure says whether the error is not the message's fault: it never makes a dead letter by itself, and changes
// no business state.
func (c Class) Infrastructure() bool { return c != Permanent }

// classes is the one table of SQLSTATEs: five characters for one code, two for a class of codes; the longer one counts.
// SQL's copy, for claims, is pawl.is_infrastructure_error; a test compares.
var classes = map[string]Class{
	"40001": Contention,  // serialization failure
	"40P01": Contention,  // deadlock: counted, each is a bug
	"55P03": Contention,  // lock_timeout, nowait
	"42P01": Contention,  // a queue's table is missing
	"42883": Contention,  // a queue's functions are missing
	"25006": Unavailable, // read-only: a standby, or a full disk's protection
	"57014": Timeout,     // statement_timeout, or cancelled by an operator
	"57P02": Lost,        // another backend crashed, perhaps by what we asked of this one
	"57":    Unavailable, // operator intervention: shutting down, starting up, database dropped
	"53":    Unavailable, // out of memory, disk, connections
	"08":    Unavailable, // connection trouble
}

// CodeDeadlock is the SQLSTATE of a deadlock.
const CodeDeadlock = "40P01"

// Code is the SQLSTATE in an error's chain, or "".
func Code(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

// Classify says what an error means. Errors without a SQLSTATE are the connection's, never the message's.
func Classify(err error) Class {
	code := Code(err)
	if code == "" {
		var connecting *pgconn.ConnectError
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return Timeout
		case errors.Is(err, context.Canceled), errors.As(err, &connecting), pgconn.SafeToRetry(err):
			return Unavailable
		}
		return Lost
	}
	if class, ok := classes[code]; ok {
		return class
	}
	if class, ok := classes[code[:min(2, len(code))]]; ok {
		return class
	}
	return Permanent
}

// Reason is what a dead letter says of an error: the server's words and its code.
func Reason(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return "raised " + pgErr.Code + ": " + pgErr.Message
	}
	return err.Error()
}
