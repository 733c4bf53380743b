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
	failed := make(chan error, 2)
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

// strike kills a worker when a third of the requests is sent and an orchestrator at two thirds, and starts them again.
func (r *run) strike(ctx context.Context) error {
	for _, blow := range []struct {
		name string
		at   int
	}{{"worker-1", len(r.requests) / 3}, {"orchestrator-1", 2 * len(r.requests) / 3}} {
		if err := until(ctx, func() (bool, error) { return r.sent.Load() >= int64(blow.at), nil }); err != nil {
			return err
		}
		p := r.process(blow.name)
		if p == nil {
			return fmt.Errorf("killing %s: there is no such process", blow.name)
		}
		pid, err := p.kill()
		if err != nil {
			return err
		}
		r.say("kill -9 %d   %s, with work in its hands", pid, p.name)
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
		r.say("started again   %s", p.name)
	}
	return nil
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
