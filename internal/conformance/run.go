package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/internal/nearest"
	"github.com/pawl-dev/pawl/internal/sandbox"
)

// Queue that the worker has to serve.
const Queue = "conformance_queue"

// Config of Run. Command is required.
type Config struct {
	// Name of the worker in tables. Default: worker.
	Name string
	// Command runs the worker; a shell reads it.
	Command string
	// Level of the worker. Default: LevelSQL.
	Level Level
	// Patience is how long a check waits for what must come. Default 60 s.
	Patience time.Duration
	// Only the checks with these names. Default: all.
	Only []string
	// Output takes what the worker writes, as it comes. Default: it is kept, and shown when a check fails.
	Output io.Writer
	// Progress is told of each result as it comes. Default: nobody.
	Progress func(Result)
}

func (c *Config) normalize() error {
	if c.Command == "" {
		return errors.New("name the worker's command")
	}
	if c.Name == "" {
		c.Name = "worker"
	}
	if c.Level == 0 {
		c.Level = LevelSQL
	}
	if c.Level < LevelPGMQ || c.Level > LevelHTTP {
		return fmt.Errorf("level %d: there are 1 (PGMQ only), 2 (SQL) and 3 (HTTP)", c.Level)
	}
	if c.Patience == 0 {
		c.Patience = time.Minute
	}
	if c.Progress == nil {
		c.Progress = func(Result) {}
	}
	names := Names()
	for _, name := range c.Only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("there is no check %q%s", name, nearest.Suggestion(name, names))
		}
	}
	return nil
}

// Run puts one worker through all checks. The error says why it could not; checks that fail are in the report.
func Run(ctx context.Context, config Config) (report Report, err error) {
	if err := config.normalize(); err != nil {
		return report, fmt.Errorf("checking a worker: %w", err)
	}
	s, err := sandbox.Start(ctx, sandbox.Config{})
	if err != nil {
		return report, fmt.Errorf("checking worker %s: %w", config.Name, err)
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	dir, err := os.MkdirTemp("", "pawl-conformance-")
	if err != nil {
		return report, fmt.Errorf("making a folder for the worker: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // temporary either way
	pool, err := pgxpool.New(ctx, s.DatabaseURL())
	if err != nil {
		return report, fmt.Errorf("connecting: %w", err)
	}
	defer pool.Close()
	k := &kit{config: config, pool: pool}
	url, err := k.prepare(ctx, s.DatabaseURL())
	if err != nil {
		return report, fmt.Errorf("preparing the database: %w", err)
	}
	k.process, err = newProcess(processConfig{
		command: config.Command, output: config.Output, log: filepath.Join(dir, "worker.log"), env: append(os.Environ(),
			"PAWL_DATABASE_URL="+url, "PAWL_URL="+s.URL(), "PAWL_TOKEN="+s.Token(), "PAWL_QUEUE="+Queue, "PAWL_GRACE_SECONDS=6"),
	})
	if err != nil {
		return report, fmt.Errorf("running worker %s: %w", config.Name, err)
	}
	defer k.process.end()
	report = Report{Name: config.Name, Level: config.Level}
	if silent := k.takesSteps(ctx); silent != nil {
		report.Silent = silent.Error()
		config.Progress(Result{Check: "takes a step at all", Outcome: Fails, Detail: report.Silent})
		report.Results = notTried(chosen(config.Only), config.Level)
	} else {
		report.Results = k.runAll(ctx, chosen(config.Only))
	}
	if report.Failed() > 0 {
		report.Log = k.process.tail()
	}
	return report, ctx.Err()
}

func chosen(names []string) (some []check) {
	wanted := make(map[string]bool)
	for _, name := range names {
		wanted[name] = true
	}
	for _, c := range checks() {
		if len(names) == 0 || wanted[c.Name] {
			some = append(some, c)
		}
	}
	return some
}

// runAll runs what does not disturb others side by side, then the rest one by one.
func (k *kit) runAll(ctx context.Context, all []check) []Result {
	results := make([]Result, len(all))
	var side sync.WaitGroup
	var mu sync.Mutex
	judge := func(i int) {
		r := k.judge(ctx, all[i])
		mu.Lock()
		defer mu.Unlock()
		results[i] = r
		k.config.Progress(r)
	}
	for i := range all {
		if !all[i].Alone {
			side.Go(func() { judge(i) })
		}
	}
	side.Wait()
	for i := range all {
		if all[i].Alone {
			judge(i)
		}
	}
	return results
}

// tooManyExits of a worker that has not taken a step: it will not.
const tooManyExits = 5

// takesSteps runs one step, so that a worker that does nothing is not waited for in every check.
func (k *kit) takesSteps(ctx context.Context) error {
	task, err := k.submit(ctx, request{Handler: "echo", Input: "hello"})
	if err != nil {
		return err
	}
	var s step
	err = k.until(ctx, func() (bool, error) {
		if s, err = k.step(ctx, task, "run"); err != nil && !errors.Is(err, errNoStep) {
			return false, err
		}
		if n := k.process.unexpected(); n >= tooManyExits {
			return false, fmt.Errorf("it has ended %d times, the last time with exit code %d", n, k.process.exitCode())
		}
		return s.State == "complete" || s.State == "error", nil
	})
	if errors.Is(err, errPatience) {
		return fmt.Errorf("it runs, and the first step for its handler echo is %s after %s; does it serve the queue $PAWL_QUEUE, %s?", s.State, k.config.Patience, Queue)
	}
	if err != nil {
		return err
	}
	return k.compare(ctx, s, "hello")
}

// notTried are the results of a worker that takes no steps.
func notTried(all []check, level Level) []Result {
	results := make([]Result, len(all))
	for i, c := range all {
		results[i] = Result{Check: c.Name, Outcome: Fails, Detail: "not tried: the worker does not even echo"}
		if why, cannot := c.Cannot[level]; cannot {
			results[i] = Result{Check: c.Name, Outcome: Cannot, Detail: why}
		}
	}
	return results
}

func (k *kit) judge(ctx context.Context, c check) Result {
	if why, cannot := c.Cannot[k.config.Level]; cannot {
		return Result{Check: c.Name, Outcome: Cannot, Detail: why}
	}
	ctx, cancel := context.WithTimeout(ctx, 3*k.config.Patience) // each wait has its own, shorter limit
	defer cancel()
	if err := c.Run(ctx, k); err != nil {
		return Result{Check: c.Name, Outcome: Fails, Detail: err.Error()}
	}
	return Result{Check: c.Name, Outcome: Passes}
}
