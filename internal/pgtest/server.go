package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/internal/cachedir"
	"github.com/pawl-dev/pawl/internal/devpg"
)

// EnvURL names the environment variable with the test server's address (any database of it, by a superuser).
const EnvURL = "PAWL_TEST_DATABASE_URL"

// server is this process' view of the test server.
type server struct {
	base     string        // address of the database postgres
	admin    *pgxpool.Pool // on the database postgres
	owner    string        // in the names of this process' databases
	life     *pgx.Conn     // holds the owner's advisory lock: when it is free, the databases are nobody's
	shared   *devpg.Shared // keeps the shared server alive
	template string
	count    atomic.Int64

	mu   sync.Mutex
	idle []string // databases that Tx may borrow; mu
}

// connect finds or starts the server and makes the template, once per process.
var connect = sync.OnceValues(func() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*timeout)
	defer cancel()
	s := &server{owner: strings.ToLower(rand.Text()[:12])}
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("opening the test server: %w", err)
	}
	return s, nil
})

func (s *server) open(ctx context.Context) error {
	if s.base = os.Getenv(EnvURL); s.base == "" {
		dir, err := cachedir.Path("test-server")
		if err != nil {
			return err
		}
		s.shared, err = devpg.Share(ctx, devpg.Config{Dir: dir, Settings: devpg.TestSettings()})
		if err != nil {
			return err
		}
		s.base = s.shared.URL("postgres")
	}
	config, err := pgxpool.ParseConfig(s.base)
	if err != nil {
		return fmt.Errorf("reading %s: %w", EnvURL, err)
	}
	config.MaxConns = 4
	config.MaxConnIdleTime = 10 * time.Second
	if s.admin, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	if s.life, err = pgx.Connect(ctx, s.base); err != nil {
		return err
	}
	if _, err := s.life.Exec(ctx, `select pg_advisory_lock(hashtextextended('pawl_test_' || $1, 0))`, s.owner); err != nil {
		return fmt.Errorf("taking this process' lock: %w", err)
	}
	if err := s.reap(ctx); err != nil {
		return err
	}
	s.template, err = s.makeTemplate(ctx)
	return err
}

func (s *server) url(database string) string {
	u, err := url.Parse(s.base)
	if err != nil {
		panic(fmt.Sprintf("reading %s: %v", EnvURL, err)) // pgx has read it before
	}
	u.Path = "/" + database
	return u.String()
}

func (s *server) name() string {
	return fmt.Sprintf("pawl_test_%s_%d", s.owner, s.count.Add(1))
}

func (s *server) empty(ctx context.Context) (string, error) {
	name := s.name()
	return name, s.create(ctx, name, "template0")
}

// clone copies the template, which another process may have dropped for a newer one meanwhile.
func (s *server) clone(ctx context.Context) (string, error) {
	name := s.name()
	err := s.create(ctx, name, s.template)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "3D000" {
		if _, err := s.makeTemplate(ctx); err != nil {
			return "", err
		}
		err = s.create(ctx, name, s.template)
	}
	return name, err
}

// create retries while somebody is connected to the template: autovacuum, or a session that is just ending.
func (s *server) create(ctx context.Context, name, template string) error {
	return s.alone(ctx, fmt.Sprintf(`create database %s template %s`, name, template))
}

// drop retries too: sessions that were told to end may need their time on a busy machine.
func (s *server) drop(ctx context.Context, name string) error {
	return s.alone(ctx, fmt.Sprintf(`drop database if exists %s with (force)`, name))
}

// alone repeats a statement until nobody else uses the database that it is about.
func (s *server) alone(ctx context.Context, statement string) error {
	for {
		_, err := s.admin.Exec(ctx, statement)
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) || pgErr.Code != "55006" {
			return err
		}
		if err := pause(ctx); err != nil {
			return errors.Join(pgErr, err)
		}
	}
}

// reap drops databases of test processes that were killed.
func (s *server) reap(ctx context.Context) error {
	rows, err := s.admin.Query(ctx, `select datname from pg_database where datname like 'pawl\_test\_%'
		and pg_try_advisory_xact_lock_shared(hashtextextended('pawl_test_' || split_part(datname, '_', 3), 0))`)
	if err != nil {
		return fmt.Errorf("looking for old test databases: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("looking for old test databases: %w", err)
	}
	for _, name := range names {
		if err := s.drop(ctx, name); err != nil {
			return fmt.Errorf("dropping an old test database: %w", err)
		}
	}
	return nil
}

// borrow takes an idle database for a transaction, or makes one more.
func (s *server) borrow(ctx context.Context) (string, error) {
	s.mu.Lock()
	if last := len(s.idle) - 1; last >= 0 {
		name := s.idle[last]
		s.idle = s.idle[:last]
		s.mu.Unlock()
		return name, nil
	}
	s.mu.Unlock()
	return s.clone(ctx)
}

func (s *server) giveBack(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, name)
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(50 * time.Millisecond):
		return nil
	}
}
