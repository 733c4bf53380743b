package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/internal/devpg"
	"github.com/pawl-dev/pawl/test/cluster"
	"github.com/pawl-dev/pawl/test/faults"
)

// server is a durable Postgres of our own that is broken and comes back.
type server struct {
	config devpg.Config
	log    *slog.Logger

	mu        sync.Mutex
	running   *devpg.Server // guarded by mu
	deadlocks int           // in the logs of ended servers; guarded by mu
	breaks    int           // guarded by mu
}

// comeBack is how long a server may take to answer again.
const comeBack = 2 * time.Minute

// startServer starts it, with a clock that may jump unless that is nil.
func startServer(ctx context.Context, folder string, clock *faults.Clock, log *slog.Logger) (*server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	s := &server{log: log, config: devpg.Config{Dir: filepath.Join(folder, "postgres"), Port: port, Settings: map[string]string{
		"deadlock_timeout": "200ms", "log_min_messages": "warning", "shared_buffers": "128MB",
		"work_mem": "64MB", // an hour's audit is sorted for the invariants
	}}}
	if clock != nil {
		s.config.Environment = clock.Environment()
	}
	s.running, err = devpg.Start(ctx, s.config)
	return s, err
}

func freePort(ctx context.Context) (int, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	defer listener.Close() // only asked for its number
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func (s *server) url() string { return s.running.URL("postgres") }

// Break breaks the server and waits until it answers again.
func (s *server) Break(ctx context.Context, how cluster.Fault) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breaks++
	switch how {
	case cluster.KillBackend:
		return s.killBackend(ctx)
	case cluster.StopServer:
		return s.restart(ctx, syscall.SIGQUIT)
	default:
		return s.restart(ctx, syscall.SIGKILL)
	}
}

// restart ends the server with a signal and starts it anew in the same place.
func (s *server) restart(ctx context.Context, signal syscall.Signal) error {
	pid, err := s.pid()
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("breaking Postgres: %w", err)
	}
	select {
	case <-s.running.Exited():
	case <-time.After(comeBack):
		return errors.New("breaking Postgres: it does not end")
	}
	if err := s.readLog(); err != nil {
		return err
	}
	if err := s.running.Stop(); err != nil {
		return fmt.Errorf("breaking Postgres: %w", err)
	}
	err = until(ctx, func(ctx context.Context) error { // its last processes may live a little longer, and hold its memory
		again, err := devpg.Start(ctx, s.config)
		if err == nil {
			s.running = again
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("starting Postgres again: %w", err)
	}
	return nil
}

func (s *server) pid() (int, error) {
	text, err := os.ReadFile(filepath.Join(s.config.Dir, "data", "postmaster.pid"))
	if err != nil {
		return 0, fmt.Errorf("finding Postgres' process: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return 0, fmt.Errorf("finding Postgres' process: %w", err)
	}
	return pid, nil
}

// killBackend kills the process of one session: the server ends all sessions and recovers. An earlier break may not be over
// yet, or end our own session: then it tries again.
func (s *server) killBackend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, comeBack)
	defer cancel()
	if err := until(ctx, s.killOne); err != nil {
		return fmt.Errorf("killing a backend: %w", err)
	}
	return until(ctx, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, s.url())
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
}

func (s *server) killOne(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.url())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // the server may have ended it
	var pid int
	err = conn.QueryRow(ctx, `select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()
		order by (state = 'active') desc, random() limit 1`).Scan(&pid)
	if err != nil {
		return fmt.Errorf("choosing a session: %w", err)
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// until tries something again until it succeeds, for as long as a server may take to come back.
func until(ctx context.Context, do func(context.Context) error) error {
	deadline := time.Now().Add(comeBack)
	for {
		err := do(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// readLog looks for deadlocks in the log of a server that has ended, whose statistics are gone.
func (s *server) readLog() error {
	text, err := os.ReadFile(s.running.LogFile())
	if err != nil {
		return fmt.Errorf("reading the server's log: %w", err)
	}
	s.deadlocks += bytes.Count(text, []byte("deadlock detected"))
	if bytes.Contains(text, []byte("PANIC")) {
		s.log.Error("postgres panicked", "log", s.running.LogFile())
	}
	return nil
}

// stop ends the server and returns how many deadlocks its logs tell of.
func (s *server) stop() (deadlocks int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = errors.Join(s.readLog(), s.running.Stop())
	return s.deadlocks, err
}
