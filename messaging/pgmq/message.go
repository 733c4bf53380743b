package pgmq

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
)

// Message is a message read from a queue.
type Message struct {
	ID         int64
	ReadCount  int // how often it was read, this time included
	EnqueuedAt time.Time
	VisibleAt  time.Time       // when another reader may get it
	Body       json.RawMessage // nil when somebody sent SQL's null
	Headers    json.RawMessage // nil without headers
}

// messageColumns are the columns that collectMessages scans, of whatever
// returns PGMQ's messages. Text, because it is the same under every way in which
// pgx may speak to the server.
const messageColumns = `msg_id, read_ct, enqueued_at, vt, message::text, headers::text`

func collectMessages(rows pgx.Rows) ([]Message, error) {
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Message, err error) {
		var body, headers []byte
		err = row.Scan(&m.ID, &m.ReadCount, &m.EnqueuedAt, &m.VisibleAt, &body, &headers)
		m.Body, m.Headers = body, headers
		return m, err
	})
}
