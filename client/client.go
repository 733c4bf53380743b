package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/messaging/pgmq"
)

// Config is what a client needs. The zero value of everything but the database is its default.
type Config struct {
	// Pool or DatabaseURL leads to the database. A pool that the client did not make is left open.
	Pool        *pgxpool.Pool
	DatabaseURL string
	// ListenerURL leads to the server itself when Pool or DatabaseURL leads through a transaction pooler, which passes no
	// notification on. Empty: as the pool's connections.
	ListenerURL string
	// NoListen does without LISTEN, where ListenerURL cannot be had: waiting polls, every second at last.
	NoListen bool
	// Tracer makes a span for each submit, to which the task's steps belong. Nil: OpenTelemetry's global provider.
	Tracer trace.TracerProvider
	// Log takes what happens to the connection that listens, and that the database cannot be asked for what is waited for.
	// Nil: slog.Default().
	Log *slog.Logger
}

// Client talks to Pawl's database.
type Client struct {
	pool *pgxpool.Pool
	own  bool // the pool is the client's
	hub  *hub
	// tracer of submits.
	tracer trace.Tracer
	once   sync.Once
	// sendOnly is set once the role turns out to have no right to more than sending messages.
	sendOnly atomic.Bool
	// met is set once the database has answered. One that never has may be the wrong one.
	met atomic.Bool
}

// DB is what a request may be sent on: *pgxpool.Pool, *pgx.Conn and pgx.Tx are all one.
type DB = pgmq.DB

// New makes a client. It does not connect.
func New(config Config) (*Client, error) {
	c := &Client{pool: config.Pool, own: config.Pool == nil}
	var direct *pgxpool.Config // of ListenerURL: what it says of pools is no setting of the server's
	if config.ListenerURL != "" {
		var err error
		if direct, err = pgxpool.ParseConfig(config.ListenerURL); err != nil {
			return nil, fmt.Errorf("making client: reading ListenerURL: %w", err)
		}
	}
	switch {
	case config.ListenerURL != "" && config.NoListen:
		return nil, errors.New("making client: set ListenerURL or NoListen, not both")
	case c.own && config.DatabaseURL == "":
		return nil, errors.New("making client: set Pool or DatabaseURL, which is empty: pawl dev prints one, for PAWL_DATABASE_URL")
	case !c.own && config.DatabaseURL != "":
		return nil, errors.New("making client: set Pool or DatabaseURL, not both")
	case c.own:
		pool, err := pgxpool.New(context.Background(), config.DatabaseURL)
		if err != nil {
			return nil, fmt.Errorf("making client: reading DatabaseURL: %w", err)
		}
		c.pool = pool
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.Tracer == nil {
		config.Tracer = otel.GetTracerProvider()
	}
	c.tracer = config.Tracer.Tracer("github.com/pawl-dev/pawl/client")
	c.hub = newHub(c, config.Log)
	if !config.NoListen {
		listener, err := pgmq.NewListener(pgmq.ListenerConfig{
			Connect: pgmq.Connector(cmp.Or(direct, c.pool.Config())), Probe: c.pool, Log: config.Log,
		})
		if err != nil {
			return nil, fmt.Errorf("making client: %w", err)
		}
		c.hub.listener = listener
	}
	return c, nil
}

// Close ends all waiting with ErrClosed and lets go of the connections. Whatever is asked of the client afterwards is
// ErrClosed, too. It can be called any number of times. With a DatabaseURL it returns when the other calls that have a
// connection have ended; ending them is for their contexts.
func (c *Client) Close() {
	c.once.Do(func() {
		c.hub.close()
		if c.own {
			c.pool.Close()
		}
	})
}
