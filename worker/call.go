package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	fastjson "github.com/goccy/go-json" // five times as fast as encoding/json on fifty steps
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/internal/sqlstate"
)

// callTimeout bounds one call to the database: a third of the default lease, so that a connection that has silently died
// is noticed while what it carried is still held, and another one repeats it in time.
const callTimeout = 10 * time.Second

// briefly bounds, in the database, how long a call about leases waits for a message that somebody has locked: the leases
// that are with it are not to end for that. A case has an order; the setting ends with the statement.
const briefly = `select case when set_config('lock_timeout', '50ms', true) is not null then `

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row
}

// accepted is the database's answer to one report.
type accepted struct {
	MsgID    int64 `json:"msg_id"`
	Accepted bool  `json:"accepted"`
}

// lease names one message in calls about leases.
type lease struct {
	MsgID     int64  `json:"msg_id"`
	ReadCount int    `json:"read_ct"`
	Status    string `json:"status,omitempty"` // in answers: extended, cancelled, lost
}

func reportSteps(ctx context.Context, db querier, l *lane, reports []report) (answer []accepted, err error) {
	err = call(ctx, db, &answer, `select pawl.report_steps($1::text, $2::text::jsonb, $3::text)::text`, l.queue, reports, l.w.config.Name)
	return answer, err
}

func claimSteps(ctx context.Context, db querier, l *lane, quantity int) (claimed []*delivery, err error) {
	err = call(ctx, db, &claimed, `select pawl.claim_steps($1::text, $2::integer, $3::text)::text`, l.queue, quantity, l.w.config.Name)
	return claimed, err
}

func reportAndClaimSteps(ctx context.Context, db querier, l *lane, t turn) (reported []accepted, claimed []*delivery, err error) {
	var answer struct {
		Reported []accepted  `json:"reported"`
		Claimed  []*delivery `json:"claimed"`
	}
	err = call(ctx, db, &answer, `select pawl.report_and_claim_steps($1::text, $2::text::jsonb, $3::integer, $4::text)::text`,
		l.queue, t.reports(), t.quantity, l.w.config.Name)
	return answer.Reported, answer.Claimed, err
}

func extendLeases(ctx context.Context, db querier, l *lane, leases []lease, length time.Duration) (answer []lease, err error) {
	err = call(ctx, db, &answer, briefly+`pawl.extend_leases($1::text, $2::text::jsonb, $3::bigint, $4::text)::text end`,
		l.queue, leases, length.Milliseconds(), l.w.config.Name)
	return answer, err
}

func releaseSteps(ctx context.Context, db querier, l *lane, leases []lease) error {
	var answer []json.RawMessage
	return call(ctx, db, &answer, briefly+`pawl.release_steps($1::text, $2::text::jsonb, $3::text)::text end`, l.queue, leases, l.w.config.Name)
}

// call runs one function that gives JSON. Arguments that are slices go as JSON too.
func call(ctx context.Context, db querier, into any, sql string, arguments ...any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for i, argument := range arguments {
		switch argument.(type) {
		case []report, []lease:
			text, err := fastjson.Marshal(argument)
			if err != nil {
				return fmt.Errorf("writing arguments: %w", err)
			}
			arguments[i] = string(text)
		}
	}
	answer, err := ask(ctx, db, sql, arguments)
	if err != nil {
		return explain(err)
	}
	if err := fastjson.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("reading the database's answer: %w", err)
	}
	return nil
}

// ask borrows the connection itself, so that what keeps it from having one is taken for no answer.
func ask(ctx context.Context, db querier, sql string, arguments []any) (answer []byte, err error) {
	if pool, ok := db.(*pgxpool.Pool); ok {
		conn, err := sqlstate.Acquire(ctx, pool)
		if err != nil {
			return nil, err
		}
		defer conn.Release()
		db = conn
	}
	err = db.QueryRow(ctx, sql, arguments...).Scan(&answer)
	return answer, err
}

// explain adds what to do about an error of the database.
func explain(err error) error {
	switch code := sqlstate.OfStatement(err); {
	case code == sqlstate.InsufficientPrivilege:
		return fmt.Errorf("%w: grant the worker's role the queue", err)
	case isDoubtful(err):
		return fmt.Errorf("%w: the database lacks Pawl's functions, or an earlier version made them: run `pawl migrate`", err)
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Hint != "" {
		return fmt.Errorf("%w: %s", err, pgErr.Hint)
	}
	return sqlstate.Explain(err)
}

// isAboutData says whether the database refused what a call carried, so that repeating it is useless.
func isAboutData(err error) (code string, yes bool) {
	code = sqlstate.OfStatement(err)
	return code, sqlstate.AboutData(code)
}

// isLocked says whether a call ended while it waited, most likely for one message that somebody has locked.
func isLocked(err error) bool {
	if sqlstate.Connecting(err) {
		return false // it waited for the connection
	}
	return sqlstate.Waited(sqlstate.Of(err)) || errors.Is(err, context.DeadlineExceeded)
}

// isDoubtful says whether the database lacks something, or the right to it: Pawl's functions, which is its own state, or what
// a trigger of a user's table needs, which is a matter of one report with an entity claim.
func isDoubtful(err error) bool {
	code := sqlstate.OfStatement(err)
	return sqlstate.Uncallable(code) || code == sqlstate.UndefinedTable
}

// isRefused says whether the database refused a call for what one of its reports asked of it, not for a state that the
// database itself is in: then the others go through without that one. A report with an entity claim moves a row of the
// user's, whose constraints and triggers may raise anything.
func isRefused(err error) (code string, yes bool) {
	code = sqlstate.OfStatement(err)
	return code, sqlstate.Refused(code)
}
