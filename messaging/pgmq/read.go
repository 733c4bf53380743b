package pgmq

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"
)

// ReadConfig says what to read.
type ReadConfig struct {
	Queue string
	// Visibility is how long the messages stay invisible to other readers, in
	// whole seconds (rounded up). Zero: they are visible again at once.
	Visibility time.Duration
	// Limit is how many messages to read at most. Zero: 1.
	Limit int
	// PollFor is how long ReadWithPoll waits for a first message, in whole
	// seconds (rounded up). Zero: 5 s.
	PollFor time.Duration
	// PollEvery is how often the server looks meanwhile, in milliseconds. Zero:
	// 100 ms.
	PollEvery time.Duration
}

// Read returns visible messages, oldest first, counts the delivery in each and
// hides it for the configured time. Messages that another reader is taking at
// this moment are passed over. No messages: an empty slice at once.
//
// Run it outside longer transactions: until the commit the messages are locked,
// and a rollback takes back the count of the delivery too.
func Read(ctx context.Context, db DB, config ReadConfig) ([]Message, error) {
	if err := config.normalize(); err != nil {
		return nil, err
	}
	rows, err := db.Query(ctx, `
		select `+messageColumns+`
		from pgmq.read($1::text, $2::integer, $3::integer)
		order by msg_id`,
		config.Queue, ceilSeconds(config.Visibility), config.Limit)
	if err != nil {
		return nil, failed("reading from", config.Queue, err)
	}
	messages, err := collectMessages(rows)
	return messages, failed("reading from", config.Queue, err)
}

// ReadWithPoll is Read that waits on the server until there is a message. The
// wait holds a connection, and a snapshot that keeps vacuum from its work: for
// anything but scripts use a [Listener] and Read. Under REPEATABLE READ it never
// sees a message sent after it began.
func ReadWithPoll(ctx context.Context, db DB, config ReadConfig) ([]Message, error) {
	if err := config.normalize(); err != nil {
		return nil, err
	}
	rows, err := db.Query(ctx, `
		select `+messageColumns+`
		from pgmq.read_with_poll($1::text, $2::integer, $3::integer, $4::integer, $5::integer)
		order by msg_id`,
		config.Queue, ceilSeconds(config.Visibility), config.Limit,
		ceilSeconds(config.PollFor), config.PollEvery.Milliseconds())
	if err != nil {
		return nil, failed("polling", config.Queue, err)
	}
	messages, err := collectMessages(rows)
	return messages, failed("polling", config.Queue, err)
}

// Pop takes the oldest visible message out of the queue and returns it; ok is
// false when there is none. The message is gone when the transaction commits,
// whatever becomes of the caller: at most once.
func Pop(ctx context.Context, db DB, queue string) (message Message, ok bool, err error) {
	if err := ValidateQueueName(queue); err != nil {
		return Message{}, false, fmt.Errorf("popping from queue: %w", err)
	}
	rows, err := db.Query(ctx, `select `+messageColumns+` from pgmq.pop($1::text)`, queue)
	if err != nil {
		return Message{}, false, failed("popping from", queue, err)
	}
	messages, err := collectMessages(rows)
	if err != nil || len(messages) == 0 {
		return Message{}, false, failed("popping from", queue, err)
	}
	return messages[0], true, nil
}

func (c *ReadConfig) normalize() error {
	if err := ValidateQueueName(c.Queue); err != nil {
		return fmt.Errorf("reading from queue: %w", err)
	}
	c.Limit = cmp.Or(c.Limit, 1)
	c.PollFor = cmp.Or(c.PollFor, 5*time.Second)
	c.PollEvery = cmp.Or(c.PollEvery, 100*time.Millisecond)
	switch {
	case c.Limit < 0:
		return fmt.Errorf("reading from queue %q: limit %d is negative", c.Queue, c.Limit)
	case c.Visibility < 0:
		return fmt.Errorf("reading from queue %q: visibility %s is negative", c.Queue, c.Visibility)
	case c.PollFor < 0:
		return fmt.Errorf("reading from queue %q: polling time %s is negative", c.Queue, c.PollFor)
	case c.PollEvery < time.Millisecond:
		// At zero milliseconds PGMQ spins.
		return fmt.Errorf("reading from queue %q: polling interval %s is under 1 ms", c.Queue, c.PollEvery)
	}
	return nil
}

// ceilSeconds is what PGMQ takes for a duration. Rounded up: a lease may be
// longer than asked for, never shorter.
func ceilSeconds(d time.Duration) int32 {
	n := d / time.Second
	if d%time.Second > 0 {
		n++
	}
	return int32(min(n, math.MaxInt32))
}
