package doctor

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Config of an examination. The zero value asks what must always hold.
type Config struct {
	// AtRest asks as well what holds only while nothing happens.
	AtRest bool
	// Grace is how long something may lie before it counts as lying still. Default 1 minute; negative: no grace.
	Grace time.Duration
	// Samples of each violated invariant that the report shows. Default 5.
	Samples int
}

// Violation is what one invariant found.
type Violation struct {
	Check
	Count   int      `json:"count"`
	Samples []Sample `json:"samples"`
}

// Sample of a violation.
type Sample struct {
	Subject string `json:"subject"`
	Found   string `json:"found"`
}

// Report of an examination.
type Report struct {
	Database   string      `json:"database"`
	At         time.Time   `json:"at"`
	AtRest     bool        `json:"at_rest"`
	Checked    int         `json:"checked"`
	Violations []Violation `json:"violations"`
}

// Healthy tells whether nothing but advice was found.
func (r Report) Healthy() bool {
	for _, v := range r.Violations {
		if v.Kind != Advice {
			return false
		}
	}
	return true
}

// beginner is a pool or a connection.
type beginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Examine asks all invariants in one read-only snapshot.
func Examine(ctx context.Context, db beginner, c Config) (Report, error) {
	tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return Report{}, fmt.Errorf("opening a snapshot: %w", err)
	}
	defer tx.Rollback(ctx)
	return ExamineIn(ctx, tx, c)
}

// ExamineIn asks all invariants in a transaction of the caller's, which may see its own writes.
func ExamineIn(ctx context.Context, tx pgx.Tx, c Config) (Report, error) {
	checks, err := Checks()
	if err != nil {
		return Report{}, err
	}
	inner, err := tx.Begin(ctx) // what it sets ends with it
	if err != nil {
		return Report{}, fmt.Errorf("preparing to look: %w", err)
	}
	defer inner.Rollback(ctx)
	return examine(ctx, inner, c, checks)
}

// plans are those that fit: the invariants look at whole tables, and in a young database, whose statistics are missing, the
// planner would take a loop over the audit for each row of the audit. Loops that cannot be avoided only look dear, which
// must not bring in the compiler.
const plans = "set local enable_nestloop = off; set local jit = off"

// examine asks some invariants in a transaction.
func examine(ctx context.Context, tx pgx.Tx, c Config, checks []Check) (Report, error) {
	report := Report{AtRest: c.AtRest, Violations: []Violation{}}
	if _, err := tx.Exec(ctx, plans); err != nil {
		return Report{}, fmt.Errorf("preparing to look: %w", err)
	}
	if err := tx.QueryRow(ctx, "select current_database(), pawl.now()").Scan(&report.Database, &report.At); err != nil {
		return Report{}, fmt.Errorf("looking at the database: %w", err)
	}
	view, err := messages(ctx, tx)
	if err != nil {
		return Report{}, err
	}
	for _, check := range checks {
		if check.Kind == AtRest && !c.AtRest {
			continue
		}
		v, err := ask(ctx, tx, check, render(check.query, view, c))
		if err != nil {
			return Report{}, err
		}
		report.Checked++
		if v.Count > 0 {
			report.Violations = append(report.Violations, v)
		}
	}
	return report, nil
}

var usesMessages = regexp.MustCompile(`\bmessages\b`)

// render makes a statement of a check's query.
func render(query, view string, c Config) string {
	grace, samples := c.Grace, c.Samples
	if grace == 0 {
		grace = time.Minute
	}
	if samples <= 0 {
		samples = 5
	}
	query = strings.ReplaceAll(query, ":grace", fmt.Sprintf("interval '%d milliseconds'", max(grace, 0).Milliseconds()))
	with := "with "
	if usesMessages.MatchString(query) {
		with += "messages as materialized (\n" + view + "),\n"
	}
	return with + "violations(subject, found) as (\n" + query + ")\n" +
		fmt.Sprintf("select v.subject, coalesce(v.found, ''), count(*) over () from violations v order by 1, 2 limit %d", samples)
}

func ask(ctx context.Context, tx pgx.Tx, check Check, statement string) (Violation, error) {
	v := Violation{Check: check}
	rows, err := tx.Query(ctx, statement)
	if err != nil {
		return v, fmt.Errorf("asking %s: %w", check.ID, err)
	}
	var s Sample
	_, err = pgx.ForEachRow(rows, []any{&s.Subject, &s.Found, &v.Count}, func() error {
		v.Samples = append(v.Samples, s)
		return nil
	})
	if err != nil {
		return v, fmt.Errorf("asking %s: %w", check.ID, err)
	}
	return v, nil
}

// messages is a query of all live messages of the queues that Pawl knows, read as far as they can be.
func messages(ctx context.Context, tx pgx.Tx) (string, error) {
	rows, err := tx.Query(ctx, `select format($f$
		select %L::text as queue, %L::boolean as engine, %L::boolean as paused, q.msg_id, q.read_ct, q.vt, q.xmin::text as sent_by,
			q.message, q.headers, pawl.as_uuid(q.message->>'task_id') as task_id, q.message->>'step' as step,
			case when coalesce(q.message->>'index', '0') ~ '^[0-9]{1,9}$' then coalesce(q.message->>'index', '0')::int end as index,
			case when q.message->>'attempt' ~ '^[0-9]{1,9}$' then (q.message->>'attempt')::int end as attempt
		from pgmq.%I q$f$, queue, engine, paused, 'q_' || queue)
		from pawl.queues where to_regclass(format('pgmq.%I', 'q_' || queue)) is not null order by queue`)
	if err != nil {
		return "", fmt.Errorf("listing the queues: %w", err)
	}
	parts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", fmt.Errorf("listing the queues: %w", err)
	}
	return strings.Join(parts, "\nunion all"), nil
}
