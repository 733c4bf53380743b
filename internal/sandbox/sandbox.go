package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/internal/devpg"
	"github.com/pawl-dev/pawl/internal/migrate"
	"github.com/pawl-dev/pawl/internal/orchestrator"
)

// stopTimeout bounds the orchestrator's stop.
const stopTimeout = 30 * time.Second

// Config of Start. The zero value is the default.
type Config struct {
	// Durable keeps the server's defaults for durability: for kills and for measuring. Default: fsync off.
	Durable bool
	// Log of server and orchestrator. Nil: none.
	Log *slog.Logger
}

// Sandbox is a running database with an orchestrator. It dies with this process.
type Sandbox struct {
	server       *devpg.Server
	orchestrator *orchestrator.Orchestrator
	token        string
}

// Start starts all of it and returns when it works.
func Start(ctx context.Context, config Config) (*Sandbox, error) {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	s := &Sandbox{token: rand.Text()}
	if err := s.start(ctx, config); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a sandbox: %w", err), s.Stop())
	}
	return s, nil
}

func (s *Sandbox) start(ctx context.Context, config Config) (err error) {
	server := devpg.Config{Logger: config.Log}
	if !config.Durable {
		server.Settings, server.InMemory = devpg.TestSettings(), true
	}
	if s.server, err = devpg.Start(ctx, server); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, s.DatabaseURL())
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	_, err = migrate.Up(ctx, conn, migrate.Config{})
	if err = errors.Join(err, conn.Close(ctx)); err != nil {
		return err
	}
	s.orchestrator, err = orchestrator.Start(ctx, orchestrator.Config{
		DatabaseURL: s.DatabaseURL(), Listen: "127.0.0.1:0", WorkerToken: s.token, Logger: config.Log,
	})
	return err
}

// DatabaseURL is the address of the database, by its superuser.
func (s *Sandbox) DatabaseURL() string { return s.server.URL("postgres") }

// URL is the address of the orchestrator's HTTP.
func (s *Sandbox) URL() string { return "http://" + s.orchestrator.Addr() }

// Token is what the worker API over HTTP asks for.
func (s *Sandbox) Token() string { return s.token }

// Environment tells programs where the sandbox is: PAWL_DATABASE_URL, and PAWL_URL with PAWL_TOKEN.
func (s *Sandbox) Environment() []string {
	return []string{"PAWL_DATABASE_URL=" + s.DatabaseURL(), "PAWL_URL=" + s.URL(), "PAWL_TOKEN=" + s.token}
}

// Stop stops everything. It may be repeated.
func (s *Sandbox) Stop() error {
	var err error
	if s.orchestrator != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		err = s.orchestrator.Stop(ctx)
	}
	if s.server != nil {
		err = errors.Join(err, s.server.Stop())
	}
	return err
}
