package sqlstate

import "errors"

// Infrastructure says whether a code tells of the database's state or of others' locks, and nothing of what was asked: the
// same may succeed later. The SQL functions ask pawl.is_infrastructure_error, its copy; a test compares.
func Infrastructure(code string) bool {
	switch code {
	case SerializationFailure, Deadlock, LockNotAvailable, ReadOnly, IdleInTransaction, TransactionTimeout,
		UndefinedFunction, UndefinedTable, // a queue that is missing
		UnknownStatement, DuplicateStatement:
		return true
	}
	switch Class(code) {
	case classConnection, classResources, classOperatorIntervention, ClassSystem:
		return true
	}
	return false
}

// Internal says whether the server found a fault in itself: a cache that a migration outran, a broken index, or a bug that
// one statement meets every time.
func Internal(code string) bool { return Class(code) == classInternal }

// Leaving says whether the server takes its connections away or takes none yet: shut down, crashed, starting, or a pooler
// that has lost it. A database that was dropped does not come back, and who cancels a statement wants it to end.
func Leaving(code string) bool {
	switch code {
	case OperatorIntervention, QueryCanceled, DatabaseDropped:
		return false
	}
	return Class(code) == classOperatorIntervention || Class(code) == classConnection
}

// Uncallable says whether a function is missing, in a database that another version made, or not granted.
func Uncallable(code string) bool {
	return code == UndefinedFunction || code == UndefinedSchema || code == InsufficientPrivilege
}

// Absent says whether what is asked for is not there for this role: no such database, table or function, no right to log in
// or to use it.
func Absent(code string) bool {
	return Class(code) == classLogin || Class(code) == classDatabase || Class(code) == classAccess
}

// Refused says whether a code is about what was asked, although other constraints and triggers than Pawl's may have raised
// it: not the database's state, not a database or a role that is not set up, not a queue that nobody named.
func Refused(code string) bool {
	switch {
	case code == "", Infrastructure(code), Uncallable(code), code == UnknownQueue:
		return false
	}
	return Class(code) != classLogin && Class(code) != classRollback // a transaction rolled back for whatever reason may be repeated
}

// AboutData says whether a code is about the values that were sent, so that sending them again is useless.
func AboutData(code string) bool {
	return code == MalformedReport || Class(code) == classData || Class(code) == classLimit
}

// Waited says whether a code ended a statement that had waited, most likely for a lock.
func Waited(code string) bool { return code == LockNotAvailable || code == QueryCanceled }

// Advice says what to do about a code, when that is not in the server's words; else it is "".
func Advice(code string) string {
	if code == UnknownStatement || code == DuplicateStatement {
		return "prepared statements do not get through a connection pooler: add default_query_exec_mode=exec to the database's URL"
	}
	return ""
}

// Explain adds the advice about an error, once, if there is any.
func Explain(err error) error {
	advice := Advice(Of(err))
	if advice == "" || errors.As(err, new(*advised)) {
		return err
	}
	return &advised{err, advice}
}

type advised struct {
	err    error
	advice string
}

// Error implements error.
func (a *advised) Error() string { return a.err.Error() + ": " + a.advice }

// Unwrap gives the error.
func (a *advised) Unwrap() error { return a.err }
