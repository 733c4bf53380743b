package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// outage cuts the worker's connections again and again while it works, then those over which it reports.
func outage(ctx context.Context, k *kit) error {
	if err := cutAtWork(ctx, k); err != nil {
		return err
	}
	for range 3 {
		if err := cutReports(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

func cutAtWork(ctx context.Context, k *kit) error {
	ref, err := k.template(ctx, "outage", `
steps:
  - {name: run, handler: sleep, queue: QUEUE, lease: 5s}
`)
	if err != nil {
		return err
	}
	requests := make([]request, 40)
	for i := range requests {
		requests[i] = request{Template: ref, Input: object{"ms": 30 + i%3}}
	}
	tasks, err := k.submitMany(ctx, requests)
	if err != nil {
		return err
	}
	cuts := 0
	err = k.until(ctx, func() (bool, error) {
		var n int
		err := k.pool.QueryRow(ctx, `select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = $1`, role).Scan(&n)
		cuts += n
		return cuts >= 5, err
	})
	if err != nil {
		return fmt.Errorf("cutting the worker's connections, %d so far: %w", cuts, err)
	}
	for i, task := range tasks {
		// A message whose reader lost its connection comes back when its lease is over.
		err := k.until(ctx, func() (bool, error) {
			s, err := k.step(ctx, task, "run")
			return s.State == "complete", ignoreNoStep(err)
		})
		if err != nil {
			return fmt.Errorf("step %d of %d after the outage: %w", i+1, len(tasks), err)
		}
		s, err := k.step(ctx, task, "run")
		if err == nil {
			err = k.compare(ctx, s, object{"slept": 30 + i%3})
		}
		if err == nil && s.Failures > 0 {
			err = errors.New("a lost connection was reported as a failure of the handler")
		}
		if err != nil {
			return fmt.Errorf("step %d of %d after the outage: %w", i+1, len(tasks), err)
		}
	}
	return nil
}

// cutReports has two reports of one result in a row wait for a lock, and cuts their connections then: a worker that lets go
// of a result whose report failed gets the step again, if at all.
func cutReports(ctx context.Context, k *kit) error {
	task, tx, err := k.lockWorkedOn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // it only locks

	cut := []int32{} // backends; one that was cut may be seen waiting for a moment longer
	for n := range 2 {
		err := k.until(ctx, func() (bool, error) {
			var now []int32
			err := k.pool.QueryRow(ctx, `select coalesce(array_agg(pid) filter (where pg_terminate_backend(pid)), '{}') from pg_stat_activity
				where usename = $1 and $2 = any(pg_blocking_pids(pid)) and pid <> all($3)`,
				role, int32(tx.Conn().PgConn().PID()), cut).Scan(&now) //nolint:gosec // a PID
			cut = append(cut, now...)
			return len(now) > 0, err
		})
		if errors.Is(err, errPatience) && n > 0 {
			err = fmt.Errorf("the result is not reported again: %w", err)
		}
		if err != nil {
			return fmt.Errorf("cutting report %d of a result: %w", n+1, err)
		}
	}
	if err := tx.Rollback(ctx); err != nil {
		return fmt.Errorf("unlocking the step's message: %w", err)
	}
	s, err := k.await(ctx, task, "run", "complete", "error", "waiting_for_retry")
	if err == nil {
		err = k.compare(ctx, s, object{"slept": reportedAfter})
	}
	if err == nil && (s.Deliveries != 1 || s.Failures > 0) {
		err = fmt.Errorf("it took %d deliveries and %d failures", s.Deliveries, s.Failures)
	}
	if err != nil {
		return fmt.Errorf("a step whose report lost its connection: %w", err)
	}
	return nil
}

// reportedAfter is how long the handler works whose report is cut, in milliseconds: its message is locked by then.
const reportedAfter = 1500

// lockWorkedOn starts a step and locks its message while the handler is at work.
func (k *kit) lockWorkedOn(ctx context.Context) (task uuid.UUID, tx pgx.Tx, err error) {
	err = k.until(ctx, func() (bool, error) {
		if task, err = k.submit(ctx, request{Handler: "sleep", Input: object{"ms": reportedAfter}}); err != nil {
			return false, err
		}
		if err = k.taken(ctx, task); err != nil {
			return false, err
		}
		if tx, err = k.pool.Begin(ctx); err != nil {
			return false, err
		}
		tag, err := tx.Exec(ctx, fmt.Sprintf(`select from pgmq.q_%s where message->>'task_id' = $1::text for update`, Queue), task)
		if err != nil || tag.RowsAffected() == 0 { // this machine was too slow, the worker has reported
			return false, errors.Join(err, tx.Rollback(ctx))
		}
		return true, nil
	})
	if err != nil {
		return task, nil, fmt.Errorf("locking the message of a step that the worker works on: %w", err)
	}
	return task, tx, nil
}

func ignoreNoStep(err error) error {
	if errors.Is(err, errNoStep) {
		return nil
	}
	return err
}
