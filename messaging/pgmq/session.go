package pgmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errDeaf is the end of a session whose probe was sent and did not arrive.
var errDeaf = errors.New("a notification was sent and did not arrive")

// session is the life of one connection. Only the listener's goroutine uses it.
type session struct {
	*Listener
	conn      *pgx.Conn
	listening map[string]bool
	probe     *probe
}

// connectAndServe opens a connection and serves it until it fails or ctx ends.
// heard is whether it ever proved to hear.
func (l *Listener) connectAndServe(ctx context.Context) (heard bool, err error) {
	connectCtx, cancel := context.WithTimeout(ctx, l.config.ProbeTimeout)
	conn, err := l.config.Connect(connectCtx)
	cancel()
	if err != nil {
		return false, fmt.Errorf("connecting listener: %w", err)
	}
	s := &session{Listener: l, conn: conn, listening: make(map[string]bool), probe: newProbe(l)}
	defer s.close()
	err = s.serve(ctx)
	return s.probe.heardAny, err
}

func (s *session) close() {
	s.probe.stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.conn.Close(ctx) // a connection that cannot say goodbye is closed all the same
}

func (s *session) serve(ctx context.Context) error {
	if err := s.listen(ctx, s.probeChannel); err != nil {
		return err
	}
	// Whatever was sent while nobody listened is found by looking: on a new
	// connection adjust wakes everybody, after LISTEN, so that nothing falls
	// between the two.
	s.subs.forget()
	for {
		if err := s.adjust(ctx); err != nil {
			return err
		}
		wait, err := s.probe.step(ctx, time.Now())
		if err != nil {
			return err
		}
		notification, err := s.wait(ctx, wait)
		if err != nil {
			return err
		}
		switch {
		case notification == nil: // something to look at, or the time for it
		case notification.Channel == s.probeChannel:
			s.probe.heard()
			s.prove(proven, nil)
		default:
			s.subs.wake(notification.Channel)
		}
	}
}

// adjust makes the connection listen to what there are subscribers for, and
// greets the new ones among them.
func (s *session) adjust(ctx context.Context) error {
	wanted := make(map[string]bool)
	for _, channel := range s.subs.channels() {
		wanted[channel] = true
		if !s.listening[channel] {
			if err := s.listen(ctx, channel); err != nil {
				return err
			}
			s.listening[channel] = true
		}
		s.subs.greet(channel)
	}
	for channel := range s.listening {
		if wanted[channel] {
			continue
		}
		if err := s.exec(ctx, "unlisten "+pgx.Identifier{channel}.Sanitize()); err != nil {
			return err
		}
		delete(s.listening, channel)
	}
	return nil
}

func (s *session) listen(ctx context.Context, channel string) error {
	return s.exec(ctx, "listen "+pgx.Identifier{channel}.Sanitize())
}

// exec runs a command under the probe's deadline, so that a connection that has
// silently died is noticed here too.
func (s *session) exec(ctx context.Context, sql string) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.ProbeTimeout)
	defer cancel()
	if _, err := s.conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("changing the listener's channels: %w", err)
	}
	return nil
}

// wait returns the next notification, or nil when the time is over or poke was
// called. A poke between two waits is not lost: dirty remembers it.
func (s *session) wait(ctx context.Context, atMost time.Duration) (*pgconn.Notification, error) {
	waitCtx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	s.mu.Lock()
	if s.dirty {
		s.dirty = false
		s.mu.Unlock()
		return nil, nil
	}
	s.interrupt = cancel
	s.mu.Unlock()

	notification, err := s.conn.WaitForNotification(waitCtx)

	s.mu.Lock()
	s.interrupt, s.dirty = nil, false
	s.mu.Unlock()
	if err == nil {
		return notification, nil
	}
	// An interrupted wait leaves the connection usable.
	if waitCtx.Err() != nil && ctx.Err() == nil && !s.conn.IsClosed() {
		return nil, nil
	}
	return nil, fmt.Errorf("waiting for notifications: %w", err)
}
