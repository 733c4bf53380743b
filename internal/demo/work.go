package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	lookEvery  = 200 * time.Millisecond
	restartGap = time.Second // between a kill and the new start
)

// work sends the orders, kills and restarts processes on the way, shows progress, and returns when every task has ended.
func (r *run) work(ctx context.Context) error {
	r.say("sending %d requests with pgmq.send, %d of them repeated\n", len(r.requests), repeated(r.requests))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.started = time.Now()
	failed := make(chan error, 2) // for the sender and the killer
	go func() { failed <- send(ctx, r.pool, r.requests, r.config.Rate, &r.sent) }()
	go func() { failed <- r.strike(ctx) }()

	open := 2
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case err := <-failed:
			if err != nil {
				return err
			}
			open--
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		p, err := r.look(ctx)
		if err != nil {
			return err
		}
		r.show(p)
		if open == 0 && p.finished() {
			r.ended = time.Now()
			r.show(p)
			r.screen.Keep()
			return r.settled(ctx)
		}
	}
}

// victims are killed while the requests are sent: every worker, and an orchestrator that leaves another.
func (r *run) victims() []*process {
	var list []*process
	for _, p := range r.processes {
		if p.language != "" {
			list = append(list, p)
		}
	}
	return append(list, r.process("orchestrator-1"))
}

// strike kills the victims one by one, spread over the requests, and starts each again.
func (r *run) strike(ctx context.Context) error {
	victims := r.victims()
	for i, p := range victims {
		at := int64(len(r.requests) * (i + 1) / (len(victims) + 2))
		if err := until(ctx, func() (bool, error) { return r.sent.Load() >= at, nil }); err != nil {
			return err
		}
		held, err := r.held(ctx, p)
		if err != nil {
			return err
		}
		pid, err := p.kill()
		if err != nil {
			return err
		}
		r.say("kill -9 %-8d %s%s", pid, p.name, held)
		timer := time.NewTimer(restartGap)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		if err := p.start(); err != nil {
			return err
		}
		r.say("started again    %s", p.name)
	}
	return nil
}

// held waits a moment until the worker has steps in its hands, and says how many.
func (r *run) held(ctx context.Context, p *process) (string, error) {
	if p.language == "" {
		return "", nil
	}
	var n int
	patience, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := until(patience, func() (bool, error) {
		err := r.pool.QueryRow(ctx, "select count(*) from pawl.steps where state = 'in_progress' and worker = $1", p.name).Scan(&n)
		return n > 0, err
	})
	if err != nil && patience.Err() == nil {
		return "", fmt.Errorf("counting the steps of %s: %w", p.name, err)
	}
	return fmt.Sprintf(", steps in its hands: %d", n), ctx.Err()
}

func (r *run) process(name string) *process {
	for _, p := range r.processes {
		if p.name == name {
			return p
		}
	}
	return nil
}

// allReady waits until every process has connected. A process that ended at once is an error with the end of its log.
func (r *run) allReady(ctx context.Context) error {
	return until(ctx, func() (bool, error) {
		for _, p := range r.processes {
			if !p.running() {
				return false, fmt.Errorf("starting %s: it ended at once", p.name)
			}
		}
		var connected int
		err := r.pool.QueryRow(ctx, `select count(distinct application_name) from pg_stat_activity
			where application_name like 'pawl-demo %'`).Scan(&connected)
		return connected >= len(r.processes), err
	})
}

// settled waits until the last messages are gone: a repeated request may still be in its queue when all tasks have ended.
func (r *run) settled(ctx context.Context) error {
	return until(ctx, func() (bool, error) {
		var messages int64
		err := r.pool.QueryRow(ctx, "select coalesce(sum(m.queue_length), 0) from pawl.queues q, pgmq.metrics(q.queue) m").Scan(&messages)
		return messages == 0, err
	})
}

// until asks again and again until the answer is yes.
func until(ctx context.Context, done func() (bool, error)) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		ok, err := done()
		if err != nil || ok {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tailLogs shows the last lines of the processes' logs, after a failure.
func (r *run) tailLogs() {
	for _, p := range r.processes {
		data, err := os.ReadFile(p.logFile)
		if errors.Is(err, os.ErrNotExist) || len(data) == 0 {
			continue
		}
		lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
		r.say("\nend of the log of %s:\n%s", p.name, bytes.Join(lines[max(0, len(lines)-8):], []byte("\n")))
	}
}
