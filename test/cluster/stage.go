package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/test/faults"
)

// Config of NewStage. DatabaseURL, Programs and Folder are required.
type Config struct {
	// DatabaseURL of a database that has been migrated, without any proxy.
	DatabaseURL string
	Programs    Programs
	// Folder takes logs and the ledger.
	Folder string
	// Seed of what the proxies leave to chance.
	Seed uint64
	// Orchestrators and Workers are how many run at once. Default: none.
	Orchestrators, Workers int
	// Extra are workers of other languages: commands by name. They get PAWL_DATABASE_URL, PAWL_LEDGER and PAWL_NAME.
	Extra map[string][]string
	// PgBouncer is the program; its path is before the last worker then. Empty: none.
	PgBouncer string
	// Clock of the server, when it may jump. Nil: it is spared.
	Clock *faults.Clock
	// Environment is added to that of every process.
	Environment []string
	// Log takes what the stage does. Nil: none.
	Log *slog.Logger
}

// applicationName of the stage's own connections: no fault ends them but those of the server.
const applicationName = "pawl stage"

// Kinds of members.
const (
	Orchestrator = "orchestrator"
	Worker       = "worker"
	Client       = "client"
)

// Member is one process and the proxy between it and the database. A client is a part of this process.
type Member struct {
	*Process // nil for clients
	Kind     string
	Proxy    *faults.Proxy
	URL      string // the database, through the proxy
}

// Stage is a cluster of processes on one database.
type Stage struct {
	Config     Config
	Members    []*Member
	Pool       *pgxpool.Pool // straight to the database
	LedgerFile string
	Bouncer    *Process // nil: none

	guard *guard
}

// NewStage starts all members and returns when they run; what they do then is in the database.
func NewStage(ctx context.Context, config Config) (*Stage, error) {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	s := &Stage{Config: config, LedgerFile: filepath.Join(config.Folder, "ledger.jsonl")}
	if err := s.start(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("setting the stage: %w", err)
	}
	return s, nil
}

func (s *Stage) start(ctx context.Context) (err error) {
	if s.guard, err = startGuard(); err != nil {
		return err
	}
	config, err := pgxpool.ParseConfig(s.Config.DatabaseURL)
	if err != nil {
		return fmt.Errorf("reading the database's URL: %w", err)
	}
	config.ConnConfig.RuntimeParams["application_name"] = applicationName
	config.MaxConns = 12
	if s.Pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return fmt.Errorf("opening a pool: %w", err)
	}
	for i := range s.Config.Orchestrators {
		if _, err := s.AddOrchestrator(fmt.Sprintf("orchestrator-%d", i+1)); err != nil {
			return err
		}
	}
	for i := range s.Config.Workers {
		name := fmt.Sprintf("worker-%d", i+1)
		if i == s.Config.Workers-1 && s.Config.PgBouncer != "" {
			err = s.addBouncedWorker(ctx, name)
		} else {
			_, err = s.AddWorker(name)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Config.Extra)) {
		if _, err := s.Add(Worker, name, s.Config.DatabaseURL, program{command: s.Config.Extra[name]}); err != nil {
			return err
		}
	}
	return nil
}

// AddOrchestrator starts one more.
func (s *Stage) AddOrchestrator(name string, env ...string) (*Member, error) {
	return s.Add(Orchestrator, name, s.Config.DatabaseURL, program{command: []string{s.Config.Programs.Orchestrator}, env: append([]string{
		"PAWL_LISTEN=off", "PAWL_CONNECTIONS=4", "PAWL_VISIBILITY_TIMEOUT=4s", "PAWL_RECONCILE_EVERY=2s", "PAWL_RECONCILE_GRACE=5s",
	}, env...)})
}

// AddWorker starts one more worker that keeps the ledger.
func (s *Stage) AddWorker(name string, env ...string) (*Member, error) {
	return s.Add(Worker, name, s.Config.DatabaseURL, program{command: []string{s.Config.Programs.LedgerWorker}, env: env})
}

// addBouncedWorker puts PgBouncer between a worker and the proxy.
func (s *Stage) addBouncedWorker(ctx context.Context, name string) error {
	proxy, err := s.proxy(s.Config.DatabaseURL)
	if err != nil {
		return err
	}
	process, url, err := startBouncer(ctx, s, proxy)
	if err != nil {
		return errors.Join(err, proxy.Close())
	}
	s.Bouncer = process
	command := []string{s.Config.Programs.LedgerWorker}
	m := &Member{Kind: Worker, Proxy: proxy, URL: url}
	m.Process = s.newProcess(name, command, s.environment(name, url, []string{"PAWL_POOLED=1"}))
	s.Members = append(s.Members, m)
	return m.Start()
}

// program is what a member runs: a command with environment of its own.
type program struct {
	command, env []string
}

// Add starts a process behind a proxy of its own to a database.
func (s *Stage) Add(kind, name, databaseURL string, p program) (*Member, error) {
	m, err := s.member(kind, databaseURL)
	if err != nil {
		return nil, err
	}
	m.Process = s.newProcess(name, p.command, s.environment(name, m.URL, p.env))
	return m, m.Start()
}

// AddClient makes a proxy for clients of this process.
func (s *Stage) AddClient() (*Member, error) { return s.member(Client, s.Config.DatabaseURL) }

func (s *Stage) member(kind, databaseURL string) (*Member, error) {
	proxy, err := s.proxy(databaseURL)
	if err != nil {
		return nil, err
	}
	m := &Member{Kind: kind, Proxy: proxy}
	s.Members = append(s.Members, m)
	m.URL, err = proxy.URL(databaseURL)
	return m, err
}

func (s *Stage) proxy(databaseURL string) (*faults.Proxy, error) {
	target, err := faults.Target(databaseURL)
	if err != nil {
		return nil, err
	}
	return faults.Start(faults.Config{Target: target, Seed: s.Config.Seed + uint64(len(s.Members)), Log: s.Config.Log})
}

func (s *Stage) environment(name, url string, env []string) []string {
	own := []string{"PAWL_DATABASE_URL=" + url, "PAWL_LEDGER=" + s.LedgerFile, "PAWL_NAME=" + name}
	return append(append(own, s.Config.Environment...), env...)
}

// Of returns the members of a kind, in order.
func (s *Stage) Of(kind string) []*Member {
	var members []*Member
	for _, m := range s.Members {
		if m.Kind == kind {
			members = append(members, m)
		}
	}
	return members
}

// Heal ends all faults of the proxies, and lets every process run.
func (s *Stage) Heal() error {
	var failed error
	for _, m := range s.Members {
		m.Proxy.Heal()
		if m.Process != nil {
			m.Resume()
			failed = errors.Join(failed, m.Start())
		}
	}
	if s.Bouncer != nil {
		failed = errors.Join(failed, s.Bouncer.Start())
	}
	return failed
}

// Stop ends the processes in order, which finish what they have in hand.
func (s *Stage) Stop(grace time.Duration) {
	for _, m := range s.Members {
		m.Proxy.Heal()
		if m.Process != nil {
			m.Process.Stop(grace)
		}
	}
}

// Close kills what runs and closes everything.
func (s *Stage) Close() {
	for _, m := range s.Members {
		if m.Process != nil {
			m.Kill()
		}
		_ = m.Proxy.Close() // it only listened
	}
	if s.Bouncer != nil {
		s.Bouncer.Kill()
	}
	if s.Pool != nil {
		s.Pool.Close()
	}
	if s.guard != nil {
		s.guard.close()
	}
}

// LogLines returns the lines of the processes' logs that contain a text, at most some of each.
func (s *Stage) LogLines(contains string, limit int) ([]string, error) {
	var found []string
	for _, m := range s.Members {
		if m.Process == nil {
			continue
		}
		log, err := os.ReadFile(m.LogFile)
		if err != nil {
			return nil, fmt.Errorf("reading the log of %s: %w", m.Name, err)
		}
		n := 0
		for line := range strings.Lines(string(log)) {
			if n < limit && strings.Contains(line, contains) {
				n++
				found = append(found, m.Name+": "+strings.TrimSpace(line))
			}
		}
	}
	return found, nil
}
