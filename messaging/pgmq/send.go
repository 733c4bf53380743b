package pgmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Outgoing is a message to send.
type Outgoing struct {
	// Body is the message, any JSON value. What jsonb cannot store (\u0000, half
	// surrogate pairs, invalid UTF-8) is refused with a JSONError before anything
	// is sent.
	Body json.RawMessage
	// Headers is a JSON object beside the body; empty: no headers.
	Headers json.RawMessage
	// Delay is how long the message stays invisible, by the database's clock.
	// Zero: visible at once.
	Delay time.Duration
}

// Send appends one message to a queue and returns its id. It is visible to
// readers when the caller's transaction has committed and its delay is over.
func Send(ctx context.Context, db DB, queue string, message Outgoing) (id int64, err error) {
	if err := ValidateQueueName(queue); err != nil {
		return 0, fmt.Errorf("sending to queue: %w", err)
	}
	if err := message.check(); err != nil {
		return 0, fmt.Errorf("sending to queue %q: %w", queue, err)
	}
	err = db.QueryRow(ctx, `
		select sent.msg_id
		from pgmq.send($1::text, $2::text::jsonb, $3::text::jsonb,
		               clock_timestamp() + make_interval(secs => $4::double precision)) as sent(msg_id)`,
		queue, string(message.Body), message.headers(), message.Delay.Seconds()).Scan(&id)
	return id, failed("sending to", queue, err)
}

// SendBatch appends messages to a queue in one statement and returns their ids,
// in the order of the messages. All of them have the first message's delay: PGMQ
// has one delay a batch, and a batch with several is refused. No messages: no
// statement.
func SendBatch(ctx context.Context, db DB, queue string, messages []Outgoing) ([]int64, error) {
	if err := ValidateQueueName(queue); err != nil {
		return nil, fmt.Errorf("sending to queue: %w", err)
	}
	if len(messages) == 0 {
		return nil, nil
	}
	bodies, headers := make([]string, len(messages)), make([]*string, len(messages))
	for i, message := range messages {
		err := message.check()
		if err == nil && message.Delay != messages[0].Delay {
			err = errors.New("its delay differs from the first message's: send one batch for each delay")
		}
		if err != nil {
			return nil, fmt.Errorf("sending to queue %q: message %d of %d: %w", queue, i+1, len(messages), err)
		}
		bodies[i], headers[i] = string(message.Body), message.headers()
	}
	rows, err := db.Query(ctx, `
		select sent.msg_id
		from pgmq.send_batch($1::text, $2::text[]::jsonb[], $3::text[]::jsonb[],
		                     clock_timestamp() + make_interval(secs => $4::double precision)) as sent(msg_id)
		order by sent.msg_id`,
		queue, bodies, headers, messages[0].Delay.Seconds())
	if err != nil {
		return nil, failed("sending to", queue, err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, failed("sending to", queue, err)
	}
	return ids, nil
}

func (m Outgoing) check() error {
	if m.Delay < 0 {
		return fmt.Errorf("delay %s is negative", m.Delay)
	}
	if err := CheckJSON(m.Body, JSONLimits{}); err != nil {
		return fmt.Errorf("checking body: %w", err)
	}
	if len(m.Headers) == 0 {
		return nil
	}
	if err := CheckJSON(m.Headers, JSONLimits{}); err != nil {
		return fmt.Errorf("checking headers: %w", err)
	}
	if firstByte(m.Headers) != '{' {
		return errors.New("checking headers: not a JSON object")
	}
	return nil
}

// headers is nil for SQL's null.
func (m Outgoing) headers() *string {
	if len(m.Headers) == 0 {
		return nil
	}
	text := string(m.Headers)
	return &text
}
