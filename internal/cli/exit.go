package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/internal/migrate"
	"github.com/pawl-dev/pawl/internal/sqlstate"
)

// Exit codes of pawl.
const (
	ExitOK          = 0 // done
	ExitFailed      = 1 // something went wrong that no other code names
	ExitUsage       = 2 // unknown command or flag, bad argument, missing --reason
	ExitNotFound    = 3 // no such task, step, template, queue or dead letter
	ExitTaskFailed  = 4 // the task ended, but not complete
	ExitRefused     = 5 // duplicate, invalid request, or not possible in the present state
	ExitUnavailable = 6 // no database, or not migrated
	ExitTimeout     = 7 // --timeout ran out before the end
)

const exitHelp = `Exit codes: 0 done · 1 failed · 2 usage · 3 not found · 4 the task did not complete ·
5 refused (duplicate, invalid, not possible now) · 6 no database or not migrated · 7 --timeout ran out`

// exitNames are what a failure is called in JSON when it has no name of its own.
var exitNames = map[int]string{
	ExitFailed: "Failed", ExitUsage: "Usage", ExitNotFound: "NotFound", ExitTaskFailed: "TaskFailed", ExitRefused: "Refused",
	ExitUnavailable: "Unavailable", ExitTimeout: "Timeout",
}

// failure is an error with its exit code and what the user can do about it.
type failure struct {
	code int
	err  error
	hint string
	body map[string]any // what JSON tells beside: error, existing_execution_id, …
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func usagef(format string, args ...any) error {
	return &failure{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

func notFoundf(hint, format string, args ...any) error {
	return &failure{code: ExitNotFound, err: fmt.Errorf(format, args...), hint: hint}
}

// sqlCodes maps what the SQL functions raise.
var sqlCodes = map[string]int{
	sqlstate.InvalidTransition: ExitRefused, sqlstate.UnknownQueue: ExitUsage, sqlstate.TemplateChanged: ExitRefused,
	sqlstate.TemplateUnsorted: ExitRefused, sqlstate.InvalidTemplate: ExitUsage, sqlstate.MalformedReport: ExitUsage,
	sqlstate.NotFound: ExitNotFound, sqlstate.NotPossible: ExitRefused, sqlstate.KeyTaken: ExitRefused,
	sqlstate.ActorOrReasonMissing: ExitUsage, sqlstate.InvalidSetting: ExitUsage,
	sqlstate.InvalidEntity: ExitRefused, sqlstate.EntityClaimed: ExitRefused, sqlstate.ClaimNotAllowed: ExitRefused,
}

// classify gives every error its code and hint; what a command already classified stays.
func classify(err error) *failure {
	var known *failure
	if errors.As(err, &known) {
		return &failure{code: known.code, err: err, hint: known.hint, body: known.body}
	}
	var refused *pgconn.PgError
	var unreachable *pgconn.ConnectError
	switch {
	case errors.Is(err, context.Canceled):
		return &failure{code: ExitFailed, err: err, hint: "Interrupted."}
	case errors.As(err, &unreachable):
		return &failure{code: ExitUnavailable, err: errors.New(oneByOne(err.Error())), hint: connectHint(err, unreachable.Config.Database)}
	case sqlstate.Connecting(err):
		return &failure{code: ExitUnavailable, err: err}
	case errors.Is(err, migrate.ErrDatabaseOlder):
		return &failure{code: ExitUnavailable, err: err} // it says what to run
	case errors.Is(err, migrate.ErrDatabaseNewer):
		return &failure{code: ExitUnavailable, err: err}
	case errors.As(err, &refused):
		code, ok := sqlCodes[refused.Code]
		if !ok {
			return &failure{code: ExitFailed, err: sqlstate.Explain(err), hint: refused.Hint}
		}
		return &failure{code: code, err: errors.New(refused.Message), hint: refused.Hint}
	case errors.Is(err, pgx.ErrNoRows), errors.Is(err, client.ErrNotFound):
		return &failure{code: ExitNotFound, err: err}
	}
	return &failure{code: ExitFailed, err: err}
}

// connectHint is what to do when there is no connection, by what the server answered, if there is one.
func connectHint(err error, database string) string {
	var dialing *net.OpError
	var name *net.DNSError
	switch code := sqlstate.Of(err); {
	case code == sqlstate.WrongPassword:
		return "The password is wrong, or missing: it stands in the URL, in PGPASSWORD or in ~/.pgpass."
	case code == sqlstate.LoginRefused:
		return "The server lets this user not in from here, or not so: pg_hba.conf says whom."
	case code == sqlstate.UndefinedDatabase:
		return fmt.Sprintf("Make it, then Pawl in it: createdb %s; pawl migrate", database)
	case code != "":
		return ""
	case errors.As(err, &name), errors.As(err, &dialing), errors.Is(err, context.DeadlineExceeded):
		return "is the server running? " + hintNoDatabase
	}
	return "There is a server, and it speaks otherwise; of TLS the URL's sslmode decides: disable, prefer, require, verify-full."
}

// grantHint gives a refusal for want of a right the role of Pawl's that has it.
func grantHint(err error, role string) error {
	var known *failure
	if errors.As(err, &known) || sqlstate.Of(err) != sqlstate.InsufficientPrivilege {
		return err
	}
	return &failure{code: ExitFailed, err: err, hint: "Grant " + role + " to this role: grant " + role + " to …; select pawl.install_roles() makes it."}
}

// within does work for so long at most, which --timeout gives; 0 is for ever. Time that is over for other reasons, as that
// of connecting, is another error.
func within(ctx context.Context, limit time.Duration, work func(ctx context.Context) error) error {
	if limit == 0 {
		return work(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := work(limited)
	var known *failure
	if !errors.Is(err, context.DeadlineExceeded) || limited.Err() == nil || ctx.Err() != nil || errors.As(err, &known) {
		return err
	}
	return &failure{code: ExitTimeout, err: err, hint: "The time given with --timeout is over."}
}

// oneByOne brings an error of many lines, one for each address that was tried, into one line that says each thing once.
func oneByOne(message string) string {
	var lines []string
	for line := range strings.Lines(message) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

// printFailure tells people in two lines, machines in one object, on the error stream.
func printFailure(w io.Writer, f *failure, asJSON bool) {
	if asJSON {
		body := map[string]any{"error": exitNames[f.code], "message": f.err.Error(), "exit_code": f.code}
		if f.hint != "" {
			body["hint"] = f.hint
		}
		maps.Copy(body, f.body)
		text, _ := json.Marshal(body) // plain values, and JSON of the database
		fmt.Fprintf(w, "%s\n", text)
		return
	}
	fmt.Fprintf(w, "pawl: %v\n", f.err)
	if f.hint != "" {
		fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(f.hint, "\n", "\n  "))
	}
}
