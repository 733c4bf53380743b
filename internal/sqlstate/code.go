package sqlstate

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// Codes that Pawl knows by name, as Postgres' appendix A and the SQL functions' header comments have them.
const (
	ReadOnly                  = "25006" // a standby, or a full disk's protection
	IdleInTransaction         = "25P03" // idle_in_transaction_session_timeout
	TransactionTimeout        = "25P04"
	UnknownStatement          = "26000" // a prepared statement that this server's connection never saw
	LoginRefused              = "28000" // by pg_hba.conf, or for the role
	WrongPassword             = "28P01"
	UndefinedDatabase         = "3D000"
	UndefinedSchema           = "3F000"
	SerializationFailure      = "40001"
	Deadlock                  = "40P01"
	InsufficientPrivilege     = "42501"
	UndefinedFunction         = "42883"
	UndefinedTable            = "42P01"
	DuplicateStatement        = "42P05" // a prepared statement that another client left on this server's connection
	TooManyConnections        = "53300"
	LockNotAvailable          = "55P03" // lock_timeout, nowait
	OperatorIntervention      = "57000"
	QueryCanceled             = "57014" // statement_timeout, or cancelled by an operator
	CrashShutdown             = "57P02"
	DatabaseDropped           = "57P04"
	classConnection           = "08"
	classData                 = "22"
	classLogin                = "28"
	classDatabase             = "3D" // there is none of that name
	classRollback             = "40"
	classAccess               = "42" // there is no such table or function, or no right to it
	classResources            = "53"
	classLimit                = "54" // of the server's code: a row or an expression that is too large
	classOperatorIntervention = "57"
	ClassSystem               = "58" // files of the server's
	classInternal             = "XX"
)

// Codes that Pawl's own SQL functions raise.
const (
	InvalidTransition    = "PW001"
	UnknownQueue         = "PW010"
	TemplateChanged      = "PW011" // other content under a used version
	TemplateUnsorted     = "PW012"
	InvalidTemplate      = "PW013"
	WorkerMissing        = "PW014" // in a call of the worker API
	MalformedReport      = "PW016"
	NotFound             = "PW020" // what an operator's command names
	NotPossible          = "PW021" // in the state that it is in
	KeyTaken             = "PW022" // by a later task
	ActorOrReasonMissing = "PW023"
	InvalidSetting       = "PW024"
	InvalidEntity        = "PW030"
	EntityClaimed        = "PW031"
	ClaimNotAllowed      = "PW032"
)

// Of is the SQLSTATE in an error's chain, or "". A login's is among them.
func Of(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

// OfStatement is the SQLSTATE that a statement was answered with, or "": what is said while a connection is made is about
// nobody's statement, whatever the code.
func OfStatement(err error) string {
	if Connecting(err) {
		return ""
	}
	return Of(err)
}

// Class of a code: its first two characters.
func Class(code string) string { return code[:min(2, len(code))] }

// ConnectionError is of a connection that could not be had, or not be made ready: nobody's statement has reached it.
type ConnectionError struct{ Err error }

// Error implements error.
func (e *ConnectionError) Error() string { return e.Err.Error() }

// Unwrap gives what went wrong.
func (e *ConnectionError) Unwrap() error { return e.Err }

// Connecting says whether an error is of getting a connection: nobody there, a login refused, a setting refused. Statements
// borrow connections from a pool, which may have to make one: such an error is never about the statement. What a pool's hook
// raises, and that time ran out meanwhile, is told only by [Acquire].
func Connecting(err error) bool {
	var refused *pgconn.ConnectError
	var unready *ConnectionError
	return errors.As(err, &refused) || errors.As(err, &unready)
}
