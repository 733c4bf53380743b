package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawl-dev/pawl/internal/store"
)

// suspectAfter deliveries a message is worked alone: one before it may have taken the process down.
const suspectAfter = 3

// delivery works what was read. Its rule: a batch that fails is worked message by message. What fails alone, through a
// fault of its own, and does so again at once, is a dead letter (R8); what fails through the infrastructure stays for a later
// delivery; what does so again and again in a way that the message may have caused (timeouts, lost connections, panics,
// errors internal to the server) is a dead letter after MaxDeliveries.
type delivery struct {
	*environment
	name  string // of the actor
	queue string
	span  string // name of the spans of its messages
}

// deliver works a batch. The error says that nothing is worth trying now.
func (d *delivery) deliver(w work, messages []store.Message) error {
	until := time.Now().Add(d.config.VisibilityTimeout) // then others may have them
	d.config.Metrics.BatchSize.WithLabelValues(d.queue).Observe(float64(len(messages)))
	fresh, suspects := make([]store.Message, 0, len(messages)), []store.Message(nil)
	for _, m := range messages {
		if m.ReadCount > suspectAfter {
			suspects = append(suspects, m)
		} else {
			fresh = append(fresh, m)
		}
	}
	if len(fresh) == 1 {
		return d.alone(w, append(fresh, suspects...), until)
	}
	if len(fresh) > 0 {
		err := d.together(w, fresh)
		switch {
		case err == nil:
		case hopeless(err):
			d.config.Metrics.Returned.WithLabelValues(d.queue).Add(float64(len(messages)))
			return d.fail("working", err)
		default:
			_ = d.fail("working", err) // counted; each message will say for itself
			suspects = append(fresh, suspects...)
		}
	}
	return d.alone(w, suspects, until)
}

// together works messages in one transaction. A panic of a batch goes to the supervisor, and its messages come back.
func (d *delivery) together(w work, messages []store.Message) error {
	ctx, cancel := d.bounded()
	defer cancel()
	began := time.Now()
	err := w.process(ctx, messages)
	d.config.Metrics.Batch.WithLabelValues(d.queue).Observe(time.Since(began).Seconds())
	if err == nil {
		d.config.Metrics.Messages.WithLabelValues(d.queue).Add(float64(len(messages)))
	}
	return err
}

// alone works messages each in its own transaction, what raises a second time. A panic is the message's failure here, so
// that those behind it get their turn; the supervisor hears of it afterwards.
func (d *delivery) alone(w work, messages []store.Message, until time.Time) error {
	var first *panicError
	for i, m := range messages {
		if i > 0 && d.stopping.Load() || time.Now().After(until) {
			break // the rest comes back by itself
		}
		err := d.recovering(w, m)
		if err != nil && store.Classify(err) == store.Permanent {
			_ = d.fail("working one message", err)
			err = d.recovering(w, m) // once may have been the moment's
		}
		var panicked *panicError
		if first == nil && errors.As(err, &panicked) {
			first = panicked
		}
		if err := d.conclude(m, err); err != nil {
			return err
		}
	}
	if first != nil {
		panic(first)
	}
	return nil
}

// recovering turns a panic into an error.
func (d *delivery) recovering(w work, m store.Message) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = caught(reason)
		}
	}()
	return d.together(w, []store.Message{m})
}

// conclude decides about a message that was worked alone. The error says that nothing is worth trying now.
func (d *delivery) conclude(m store.Message, err error) error {
	if err == nil {
		return nil
	}
	class, reason := store.Classify(err), store.Reason(err)
	var panicked *panicError
	if errors.As(err, &panicked) {
		class, reason = store.Lost, panicked.Error()
	} else {
		_ = d.fail("working one message", err)
	}
	spent := m.ReadCount > d.config.MaxDeliveries && class.Doubtful()
	if class != store.Permanent && !spent {
		d.config.Metrics.Returned.WithLabelValues(d.queue).Inc()
		if class == store.Unavailable {
			return err
		}
		return nil
	}
	if spent {
		reason = fmt.Sprintf("failed alone after %d deliveries: %s", m.ReadCount, reason)
	}
	ctx, cancel := d.bounded()
	defer cancel()
	moved, err := store.DeadLetter(ctx, d.config.Work, d.queue, m, reason)
	if err != nil {
		return d.fail("moving to the dead letters", err)
	}
	if moved {
		d.config.Metrics.DeadLetters.WithLabelValues(d.queue).Inc()
		d.log().Warn("message became a dead letter", "queue", d.queue, "msg_id", m.ID, "deliveries", m.ReadCount, "class", class)
	}
	return nil
}

// fail counts and logs an error of the database and gives it back. The log has the code and not the server's words:
// they may quote what a message holds.
func (d *delivery) fail(doing string, err error) error { return d.report(d.name, doing, err) }

// hopeless says whether trying the messages one by one would only fail again.
func hopeless(err error) bool {
	class := store.Classify(err)
	return class == store.Unavailable || class == store.Lost
}

// bounded is the context of one transaction: as long as the messages are ours, ended by the end of the grace period.
func (e *environment) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(e.ctx, e.config.VisibilityTimeout/2)
}

// backOff doubles from least to most with the number of failures, and varies by a fifth so that instances part ways.
func backOff(failures int, least, most time.Duration) time.Duration {
	wait := least << min(max(failures-1, 0), 20)
	if wait > most || wait <= 0 {
		wait = most
	}
	return wait*9/10 + time.Duration(rand.Int64N(int64(wait/5)+1)) //nolint:gosec // no secret
}
