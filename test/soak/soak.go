package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/internal/migrate"
	"github.com/pawl-dev/pawl/internal/pgmqsql"
	"github.com/pawl-dev/pawl/test/cluster"
	"github.com/pawl-dev/pawl/test/faults"
)

// settleTimeout is how long everything may take to end after a round's faults. Liveness is a promise: what takes longer
// is stuck.
const settleTimeout = 3 * time.Minute

// soak is one run.
type soak struct {
	options
	folder string
	out    io.Writer
	plans  []*cluster.Plan // one a round

	server  *server
	clock   *faults.Clock // of the server; nil: it does not jump
	stage   *cluster.Stage
	fire    *cluster.Fire
	history *cluster.History
	cores   int           // liveness rounds passed
	settled time.Duration // how long the last round took to settle
	judged  time.Duration // and to be examined
	burnt   time.Duration
	commit  string // that the programs are built of
}

// draw makes the plans, or reads them, and writes them down before anything runs.
func (s *soak) draw() error {
	if s.plan != "" {
		file, err := os.Open(s.plan)
		if err != nil {
			return fmt.Errorf("reading the plan: %w", err)
		}
		defer file.Close()
		s.plans, err = cluster.ReadPlans(file)
		if err == nil {
			s.seed = s.plans[0].Seed
		}
		return err
	}
	if s.seed == 0 {
		s.seed = uint64(time.Now().UnixNano())
	}
	workers := 2 + len(others())
	for left := s.duration; left > 0; left -= s.round {
		p := &cluster.Plan{Seed: s.seed + uint64(len(s.plans)), DurationMS: int(min(left, s.round).Milliseconds()), Rate: s.rate,
			Orchestrators: 3, Workers: workers, Clients: 2, Bouncer: cluster.FindBouncer() != "", Server: true,
			Clock: !s.noClock}
		p.Draw()
		s.plans = append(s.plans, p)
	}
	if s.planOut == "" {
		s.planOut = filepath.Join(os.TempDir(), fmt.Sprintf("soak-%d.jsonl", s.seed))
	}
	file, err := os.Create(s.planOut)
	if err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	for _, p := range s.plans {
		if err := p.Write(file); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	return file.Close()
}

// run sets the stage, burns round after round, and reports.
func (s *soak) run(ctx context.Context) (ok bool, err error) {
	s.announce()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if s.plans[0].Clock && !s.noClock {
		if s.clock, err = faults.NewClock(filepath.Join(s.folder, "clock")); err != nil {
			return false, fmt.Errorf("making Postgres' clock jump: %w; -no-clock leaves it out", err)
		}
	}
	if s.server, err = startServer(ctx, s.folder, s.clock, log); err != nil {
		return false, err
	}
	defer func() { _, stopErr := s.server.stop(); err = errors.Join(err, stopErr) }()
	if err := s.set(ctx, log); err != nil {
		return false, err
	}
	defer s.stage.Close()
	verdict := cluster.Verdict{}
	for i, p := range s.plans {
		if verdict, err = s.burn(ctx, i, p); err != nil {
			break
		}
		s.burnt += p.Duration()
		s.progress(i, verdict)
		if len(verdict.Violations) > 0 {
			break
		}
	}
	if err != nil && ctx.Err() == nil {
		return false, err
	}
	return s.report(ctx, verdict)
}

func (s *soak) announce() {
	fmt.Fprintf(s.out, "Seed %d, %d rounds, %s.\n", s.seed, len(s.plans), s.planOut+s.plan)
	kinds := make(map[cluster.Fault]int)
	total := 0
	for _, p := range s.plans {
		for _, e := range p.Events {
			kinds[e.Fault]++
			total++
		}
	}
	fmt.Fprintf(s.out, "The plan has %d faults of %d kinds, through %d orchestrators, %d workers and %d clients.\n",
		total, len(kinds), s.plans[0].Orchestrators, s.plans[0].Workers, s.plans[0].Clients)
	if cluster.FindBouncer() == "" {
		fmt.Fprintln(s.out, "PgBouncer is not installed: no worker is behind it.")
	}
	if s.noClock {
		fmt.Fprintln(s.out, "The clock of Postgres does not jump.")
	}
	if len(others()) < 2 {
		fmt.Fprintln(s.out, "A worker is missing: Python needs psycopg 3, TypeScript Node 20 and `make sdk-typescript`.")
	}
}

// set migrates the database and starts the processes.
func (s *soak) set(ctx context.Context, log *slog.Logger) error {
	s.commit = commit(ctx)
	programs, err := cluster.Build(ctx, "", s.folder, true)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, s.server.url())
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	_, err = migrate.Up(ctx, conn, migrate.Config{PGMQ: pgmqsql.Ensure})
	if err = errors.Join(err, conn.Close(ctx)); err != nil {
		return err
	}
	first := s.plans[0]
	config := cluster.Config{
		DatabaseURL: s.server.url(), Programs: programs, Folder: s.folder, Seed: s.seed, Orchestrators: first.Orchestrators, Workers: 2,
		Extra: others(), Clock: s.clock, Log: log, Environment: []string{"PAWL_LOG_LEVEL=warn"},
	}
	if first.Bouncer {
		config.PgBouncer = cluster.FindBouncer()
	}
	if s.stage, err = cluster.NewStage(ctx, config); err != nil {
		return err
	}
	for range first.Clients {
		if _, err := s.stage.AddClient(); err != nil {
			return err
		}
	}
	s.history = cluster.NewHistory()
	s.fire = s.stage.NewFire(s.history, s.server)
	return cluster.Prepare(ctx, s.stage.Pool)
}

// burn is one round: load and faults, then peace, then the verdict.
func (s *soak) burn(ctx context.Context, round int, plan *cluster.Plan) (v cluster.Verdict, err error) {
	load, err := s.stage.StartLoad(cluster.LoadConfig{Seed: plan.Seed, Rate: s.load, Open: s.open, History: s.history})
	if err != nil {
		return v, err
	}
	err = s.fire.Run(ctx, plan)
	if err == nil && round%3 == 2 {
		err = s.core(ctx)
	}
	load.Stop()
	if err != nil {
		return v, err
	}
	settling, cancel := context.WithTimeout(ctx, settleTimeout+s.behind())
	defer cancel()
	began := time.Now()
	if err := load.Settle(settling); err != nil {
		return v, err
	}
	s.settled = time.Since(began)
	s.fire.Recover()
	v, err = s.stage.Judge(ctx, s.history, s.fire.Copied())
	s.judged = time.Since(began) - s.settled
	return v, err
}

// behind is how long the server's clock must go to tell the latest time again that it has told; until then a jump back may
// keep back what was under way.
func (s *soak) behind() time.Duration {
	if s.clock == nil {
		return 0
	}
	return s.clock.Behind()
}

// core breaks all but one orchestrator and one worker for good; what is sent then must end before they are healed.
func (s *soak) core(ctx context.Context) error {
	for _, m := range append(s.stage.Of(cluster.Orchestrator)[1:], s.stage.Of(cluster.Worker)[1:]...) {
		if s.cores%2 == 0 {
			m.Proxy.BlackHole()
		} else {
			m.Suspend()
		}
	}
	began, deadline := time.Now(), time.Now().Add(settleTimeout+s.behind())
	for {
		if _, any := s.history.EndedSince(began, 50); any {
			s.cores++
			return s.stage.Heal()
		}
		if time.Now().After(deadline) {
			return errors.Join(errors.New("a healthy orchestrator and a healthy worker make no progress beside broken ones"), s.stage.Heal())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *soak) progress(round int, v cluster.Verdict) {
	_, effective := s.fire.Report(v).Effective()
	fmt.Fprintf(s.out, "round %d of %d: %d tasks, %d steps, %d effective faults so far, %d violations; settled in %.0f s, examined in %.0f s\n",
		round+1, len(s.plans), v.Tasks, v.Steps, effective, len(v.Violations), s.settled.Seconds(), s.judged.Seconds())
}

// report prints, and writes the file that -out names.
func (s *soak) report(ctx context.Context, v cluster.Verdict) (ok bool, err error) {
	deadlocks, err := s.server.stop()
	if err != nil {
		return false, err
	}
	v.Deadlocks += deadlocks
	if deadlocks > 0 {
		v.Violations = append(v.Violations, fmt.Sprintf("the server's logs tell of %d deadlocks", deadlocks))
	}
	r := s.fire.Report(v)
	r.Seed, r.Duration, r.Commit = s.seed, s.burnt, s.commit
	r.Extra = []string{
		fmt.Sprintf("crashes of Postgres: %d", s.server.breaks),
		fmt.Sprintf("rounds: %d, each settled and examined; %d with all but one orchestrator and one worker broken", len(s.plans), s.cores),
		"PgBouncer: " + s.bounced(),
		"clock of Postgres: " + s.jumped(),
	}
	fmt.Fprintln(s.out)
	r.Print(s.out)
	if s.options.out == "" {
		return !r.Failed(), nil
	}
	file, err := os.Create(s.options.out)
	if err != nil {
		return false, fmt.Errorf("writing the report: %w", err)
	}
	command := fmt.Sprintf("make soak DURATION=%s SEED=%d", s.duration, s.seed)
	if s.plan != "" {
		command = "make replay PLAN=" + filepath.Base(s.plan)
	}
	fmt.Fprintf(file, "# The soak\n\nPrinted by `%s`: three orchestrators, workers and clients, each behind a proxy that breaks its\n"+
		"conversation with Postgres; processes killed and suspended; Postgres itself stopped and killed, its clock moved forward and back. See `test/soak`.\n\n", command)
	r.Print(file)
	return !r.Failed(), file.Close()
}

func (s *soak) jumped() string {
	if s.clock == nil {
		return "left in peace"
	}
	return fmt.Sprintf("%+.0f s from the machine's at the end", s.clock.Offset().Seconds())
}

func (s *soak) bounced() string {
	if s.stage.Bouncer == nil {
		return "not installed"
	}
	return "before the second Go worker"
}

// commit of the source, marked when something was changed since.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
