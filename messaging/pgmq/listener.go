package pgmq

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// ListenerConfig is what a Listener needs. Connect and Probe are required.
type ListenerConfig struct {
	// Connect opens the listener's own connection. It should lead to the server
	// itself, not to a transaction pooler.
	Connect func(ctx context.Context) (*pgx.Conn, error)
	// Probe sends the listener's notifications to itself. It must use another
	// connection (a pool is best) to the same database.
	Probe DB
	// Log takes what happens to the connection. Nil: slog.Default().
	Log *slog.Logger
	// OnProof is called when Proven changes, and when the first probe fails; why
	// says what failed. It is called by the listener's own goroutine, and must not
	// block or call Stop. Nil: the log alone says it.
	OnProof func(proven bool, why error)
	// ProbeEvery is the time between probes. Zero: 10 s.
	ProbeEvery time.Duration
	// ProbeTimeout is how long a probe may take, to send and to arrive. Zero: 5 s.
	ProbeTimeout time.Duration
	// RetryMin and RetryMax bound the back-off between connections. It doubles
	// from the one to the other, and begins anew once a connection has proved to
	// hear. Zero: 100 ms and 10 s.
	RetryMin, RetryMax time.Duration
}

// Listener wakes subscribers when Postgres notifies on their channels. It keeps
// one connection of its own, opens it again when it is lost, and sends itself a
// notification now and then through another connection: a connection through a
// transaction pooler takes LISTEN without an error and never hears anything.
//
// A wake-up is a hint and carries nothing. Subscribers look for work when woken,
// and also now and then by themselves: seldom while Proven is true, often while
// it is not.
type Listener struct {
	config       ListenerConfig
	probeChannel string
	subs         subscriptions

	mu sync.Mutex
	// These are guarded by mu.
	state     proof
	started   bool
	stopped   bool
	cancel    context.CancelFunc // ends the running listener
	interrupt context.CancelFunc // ends its current wait, nil when it is not waiting
	dirty     bool               // something changed since its last wait ended

	done chan struct{} // closed when the goroutine of Start has ended
}

// proof is what is known of the connection's hearing.
type proof int

const (
	unknown proof = iota
	proven
	deaf
)

// NewListener makes a listener that does nothing until Start.
func NewListener(config ListenerConfig) (*Listener, error) {
	if config.Connect == nil || config.Probe == nil {
		return nil, errors.New("making listener: set Connect and Probe")
	}
	for name, value := range map[string]time.Duration{"ProbeEvery": config.ProbeEvery, "ProbeTimeout": config.ProbeTimeout,
		"RetryMin": config.RetryMin, "RetryMax": config.RetryMax} {
		if value < 0 { // it would connect or probe without a pause
			return nil, fmt.Errorf("making listener: %s is negative: %s; set a time, or zero for the default", name, value)
		}
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	config.ProbeEvery = cmp.Or(config.ProbeEvery, 10*time.Second)
	config.ProbeTimeout = cmp.Or(config.ProbeTimeout, 5*time.Second)
	config.RetryMin = cmp.Or(config.RetryMin, 100*time.Millisecond)
	config.RetryMax = max(cmp.Or(config.RetryMax, 10*time.Second), config.RetryMin)
	return &Listener{
		config: config,
		// Random: nobody else's notification is to prove that we hear.
		probeChannel: "pgmq.probe." + strings.ToLower(rand.Text()),
		done:         make(chan struct{}),
	}, nil
}

// Start begins to listen and returns at once; that the server cannot be reached
// is retried, not returned. The listener runs until Stop, or until ctx ends. It
// starts once: a second Start, or one after Stop, is an error.
func (l *Listener) Start(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.started || l.stopped {
		return errors.New("starting listener: it was started or stopped before; make a new one")
	}
	l.started = true
	ctx, l.cancel = context.WithCancel(ctx)
	go func() {
		defer close(l.done)
		l.run(ctx)
	}()
	return nil
}

// Stop ends the listener and returns when its goroutines have ended and its
// connection is closed. It can be called any number of times, also concurrently
// and before Start. Subscribers' channels are left open and stay silent.
func (l *Listener) Stop() {
	l.mu.Lock()
	l.stopped = true
	started := l.started
	if started {
		l.cancel()
	}
	l.mu.Unlock()
	if started {
		<-l.done
	}
}

// Subscribe returns a channel that gets a value when the database channel is
// notified, and one to begin with and after every reconnect, as soon as the
// channel is listened to. Wake-ups that come before the last one was taken are
// one. It works before Start and while the listener runs. The returned function ends the subscription; it can be
// called more than once.
//
// For a queue's inserts the name is QueueChannel's. A name that is empty, longer
// than 63 bytes or holds a zero byte is a mistake in the program: it panics.
func (l *Listener) Subscribe(channel string) (<-chan struct{}, func()) {
	if channel == "" || len(channel) > maxChannel || strings.ContainsRune(channel, 0) {
		panic(fmt.Sprintf("pgmq: subscribing to channel %.80q: a name has 1 to %d bytes, none of them zero", channel, maxChannel))
	}
	wake := l.subs.add(channel)
	l.poke()
	var once sync.Once
	return wake, func() {
		once.Do(func() {
			l.subs.remove(channel, wake)
			l.poke()
		})
	}
}

// Proven says whether the present connection heard its last probe. While it is
// false, consumers should poll as if there were no listener.
func (l *Listener) Proven() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == proven
}

// poke makes the listener look at what has changed.
func (l *Listener) poke() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirty = true
	if l.interrupt != nil {
		l.interrupt()
	}
}

// prove notes what is known of the connection, and tells it when it is news.
func (l *Listener) prove(now proof, why error) {
	l.mu.Lock()
	before := l.state
	l.state = now
	l.mu.Unlock()
	news := before != now && (now != unknown || before == proven)
	if !news {
		return
	}
	switch now {
	case proven:
		l.config.Log.Debug("listening for notifications: a probe arrived")
	case deaf:
		l.config.Log.Warn("listening for notifications: nothing arrives, consumers poll; "+
			"connect the listener to the server itself, not through a transaction pooler", "error", why)
	case unknown:
		level := slog.LevelInfo
		if errors.Is(why, context.Canceled) { // a stop
			level = slog.LevelDebug
		}
		l.config.Log.Log(context.Background(), level, "listening for notifications: not proven now, consumers poll", "error", why)
	}
	if l.config.OnProof != nil {
		l.config.OnProof(now == proven, why)
	}
}

// run keeps a connection until ctx ends.
func (l *Listener) run(ctx context.Context) {
	defer l.prove(unknown, context.Canceled)
	retry := l.config.RetryMin
	for {
		heard, err := l.connectAndServe(ctx)
		if ctx.Err() != nil {
			return
		}
		if heard {
			retry = l.config.RetryMin
		}
		if errors.Is(err, errDeaf) && !heard { // one that has heard fell silent: it was cut
			l.prove(deaf, err)
		} else {
			l.config.Log.Warn("listening for notifications: connecting again", "error", err, "in", retry.String())
			l.prove(unknown, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(retry):
		}
		retry = min(2*retry, l.config.RetryMax)
	}
}
