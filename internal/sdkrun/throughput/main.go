package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/internal/sandbox"
)

// config of a run, from the flags.
type config struct {
	workers                    []contender
	steps, concurrency, rounds int
}

// contender is a worker with what its turns gave.
type contender struct {
	name, command string
	rates         []float64     // steps per second, a turn each
	cpu           time.Duration // of the worker's process in all turns
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "throughput:", err)
		os.Exit(1)
	}
}

func parse() (c config, err error) {
	flag.Func("worker", "`NAME=COMMAND`; repeated", func(text string) error {
		name, command, ok := strings.Cut(text, "=")
		if !ok {
			return errors.New("write it as NAME=COMMAND")
		}
		c.workers = append(c.workers, contender{name: name, command: command})
		return nil
	})
	flag.IntVar(&c.steps, "steps", 20_000, "steps a turn")
	flag.IntVar(&c.concurrency, "concurrency", 100, "handlers at once in a worker")
	flag.IntVar(&c.rounds, "rounds", 5, "turns of each worker")
	flag.Parse()
	if len(c.workers) == 0 || c.steps < 1 || c.concurrency < 1 || c.rounds < 1 {
		return c, errors.New("give a --worker NAME=COMMAND, and numbers above 0")
	}
	return c, nil
}

func run(ctx context.Context) (err error) {
	c, err := parse()
	if err != nil {
		return err
	}
	s, err := sandbox.Start(ctx, sandbox.Config{Durable: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	pool, err := pgxpool.New(ctx, s.DatabaseURL())
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer pool.Close()
	for round := range c.rounds {
		for i := range c.workers {
			w := &c.workers[(i+round)%len(c.workers)] // each is first once
			t := turn{pool: pool, url: s.DatabaseURL(), steps: c.steps, concurrency: c.concurrency,
				queue: fmt.Sprintf("throughput_%d_%d", round+1, i+1), command: w.command}
			rate, cpu, err := t.run(ctx)
			if err != nil {
				return fmt.Errorf("measuring %s: %w", w.name, err)
			}
			w.rates, w.cpu = append(w.rates, rate), w.cpu+cpu
			fmt.Fprintf(os.Stderr, "round %d of %d: %-18s %6.0f steps per second\n", round+1, c.rounds, w.name, rate)
		}
	}
	c.print()
	return nil
}

// print writes a table for documents.
func (c *config) print() {
	fmt.Printf("%d rounds of %d steps each, %d handlers at once:\n\n", c.rounds, c.steps, c.concurrency)
	fmt.Println("| one worker process | steps per second, median | from | to | its CPU time a step |")
	fmt.Println("| --- | --- | --- | --- | --- |")
	for _, w := range c.workers {
		slices.Sort(w.rates)
		median := (w.rates[(len(w.rates)-1)/2] + w.rates[len(w.rates)/2]) / 2
		fmt.Printf("| %s | %.0f | %.0f | %.0f | %d µs |\n", w.name, median, w.rates[0], w.rates[len(w.rates)-1],
			w.cpu.Microseconds()/int64(c.steps*c.rounds))
	}
}
