package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/messaging"
)

// Message is one delivery of a message of an engine queue.
type Message struct {
	ID          int64
	ReadCount   int    // how often it was delivered, this time included
	Traceparent string // W3C trace context of its headers, or ""
	Body        []byte // of task requests alone; nil when it is over the limit
	Size        int    // of the body as text, in bytes; of task requests alone; -1: a number in it is too long to be written
}

// Bounds of one read: at most so many messages and so many bytes of bodies (R13).
type Bounds struct {
	Messages int
	Bytes    int64
	LeaseMS  int64 // how long the messages stay invisible to others
}

// quick makes a read's commit asynchronous: when it is lost in a crash, the messages are delivered again, uncounted.
// Reading is a transaction of its own (R2), so that this touches nothing else.
const quick = `with quick as materialized (select set_config('synchronous_commit', 'off', true))
select q.msg_id, q.read_ct, q.headers->>'traceparent'`

// reads has the statement for each engine queue whose bodies stay in the database.
var reads = map[string]string{
	messaging.StepEnqueues:      quick + ` from quick, unnest(pawl_queues.read_orchestration_step_enqueues($1, $2, $3)) q`,
	messaging.StepResults:       quick + ` from quick, unnest(pawl_queues.read_orchestration_step_results($1, $2, $3)) q`,
	messaging.TaskFinalizations: quick + ` from quick, unnest(pawl_queues.read_orchestration_task_finalizations($1, $2, $3)) q`,
}

// readRequests brings bodies of up to twice the limit: jsonb's text has blanks that the sender's need not have had. A body
// with a number that would be written out with more than a thousand digits is not made a text at all. "offset 0" keeps the planner
// from working text and verdict out again wherever they are named.
const readRequests = quick + `, case when octet_length(b.body) <= $4 then b.body end, case when v.vast then -1 else octet_length(b.body) end
from quick, unnest(pawl_queues.read_orchestration_task_requests($1, $2, $3)) q
cross join lateral (select pawl.has_vast_number(q.message) offset 0) v(vast)
cross join lateral (select case when not v.vast then q.message::text end offset 0) b(body)`

// Read takes the next messages of an engine queue: R2's first transaction.
func Read(ctx context.Context, db DB, queue string, bounds Bounds) ([]Message, error) {
	rows, err := db.Query(ctx, reads[queue], bounds.Messages, bounds.LeaseMS, bounds.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", queue, err)
	}
	messages, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Message, err error) {
		var trace *string
		err = row.Scan(&m.ID, &m.ReadCount, &trace)
		m.Traceparent = orEmpty(trace)
		return m, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", queue, err)
	}
	return messages, nil
}

// ReadRequests takes the next task requests with their bodies: R2's first transaction.
func ReadRequests(ctx context.Context, db DB, bounds Bounds) ([]Message, error) {
	rows, err := db.Query(ctx, readRequests, bounds.Messages, bounds.LeaseMS, bounds.Bytes, 2*messaging.MaxBody)
	if err != nil {
		return nil, fmt.Errorf("reading task requests: %w", err)
	}
	messages, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Message, err error) {
		var trace *string
		var size *int
		err = row.Scan(&m.ID, &m.ReadCount, &trace, &m.Body, &size)
		m.Traceparent = orEmpty(trace)
		if size != nil { // SQL's null instead of a body
			m.Size = *size
		}
		return m, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading task requests: %w", err)
	}
	return messages, nil
}

// Waiting says which engine queues have messages that a read would return: one statement for all of them, for the idle
// poll.
func Waiting(ctx context.Context, db DB) ([]string, error) {
	rows, err := db.Query(ctx, `
		select 'orchestration_task_requests' where exists (
		  select from pgmq.q_orchestration_task_requests where vt <= clock_timestamp())
		union all select 'orchestration_step_enqueues' where exists (
		  select from pgmq.q_orchestration_step_enqueues where vt <= clock_timestamp())
		union all select 'orchestration_step_results' where exists (
		  select from pgmq.q_orchestration_step_results where vt <= clock_timestamp())
		union all select 'orchestration_task_finalizations' where exists (
		  select from pgmq.q_orchestration_task_finalizations where vt <= clock_timestamp())`)
	if err != nil {
		return nil, fmt.Errorf("looking for waiting messages: %w", err)
	}
	queues, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("looking for waiting messages: %w", err)
	}
	return queues, nil
}

// PutBack makes messages visible again only after a minute: for an instance that can work them, or for a time when this
// one can. The read is taken from their count: waiting is no delivery. A message that somebody else holds by now is left
// alone.
func PutBack(ctx context.Context, db DB, messages []Message) error {
	ids, counts := make([]int64, len(messages)), make([]int32, len(messages))
	for i, m := range messages {
		ids[i], counts[i] = m.ID, int32(m.ReadCount) //nolint:gosec // read_ct is an int in the database
	}
	_, err := db.Exec(ctx, `select pawl.put_back_requests($1, $2)`, ids, counts)
	if err != nil {
		return fmt.Errorf("putting %d task requests back: %w", len(messages), err)
	}
	return nil
}

// DeadLetter moves a message of an engine queue to the dead letters and ends the attempt it belongs to. It returns false
// when the message was gone or held by somebody.
func DeadLetter(ctx context.Context, db DB, queue string, m Message, reason string) (bool, error) {
	var moved int
	err := db.QueryRow(ctx, `select pawl.dead_letter_messages($1, $2, $3)`, queue, []int64{m.ID}, reason).Scan(&moved)
	if err != nil {
		return false, fmt.Errorf("moving message %d of %s to the dead letters: %w", m.ID, queue, err)
	}
	return moved > 0, nil
}

func messageIDs(messages []Message) []int64 {
	ids := make([]int64, len(messages))
	for i, m := range messages {
		ids[i] = m.ID
	}
	return ids
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
