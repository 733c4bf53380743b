package pgmq

import (
	"context"
	"fmt"
	"time"
)

// QueueMetrics is what PGMQ counts of one queue.
type QueueMetrics struct {
	Queue   string
	Length  int64 // messages in the queue
	Visible int64 // of these, messages that a read would return now
	// Newest and Oldest are the ages of the newest and the oldest message, in
	// whole seconds; nil when the queue is empty.
	Newest, Oldest *time.Duration
	Total          int64 // messages ever sent, as the queue's sequence counts them
	ScrapedAt      time.Time
}

// Metrics counts the messages of a queue. PGMQ reads the whole table for it:
// about 100 ms with a million messages.
func Metrics(ctx context.Context, db DB, queue string) (QueueMetrics, error) {
	if err := ValidateQueueName(queue); err != nil {
		return QueueMetrics{}, fmt.Errorf("measuring queue: %w", err)
	}
	var (
		m              QueueMetrics
		newest, oldest *int64
	)
	err := db.QueryRow(ctx, `
		select queue_name::text, queue_length, queue_visible_length,
		       newest_msg_age_sec::bigint, oldest_msg_age_sec::bigint, total_messages, scrape_time
		from pgmq.metrics($1::text)`, queue).
		Scan(&m.Queue, &m.Length, &m.Visible, &newest, &oldest, &m.Total, &m.ScrapedAt)
	if err != nil {
		return QueueMetrics{}, failed("measuring", queue, err)
	}
	m.Newest, m.Oldest = seconds(newest), seconds(oldest)
	return m, nil
}

func seconds(n *int64) *time.Duration {
	if n == nil {
		return nil
	}
	d := time.Duration(*n) * time.Second
	return &d
}
