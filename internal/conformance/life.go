package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/pawl-dev/pawl/internal/child"
)

// forever is a sleep in milliseconds that no check waits for.
const forever = 3_600_000

func lifeChecks() []check {
	return []check{
		{Name: "a slow handler keeps its lease", Run: slow,
			Cannot: noLease("At level 1 a heartbeat would be pgmq.set_vt, without a fence: the visibility timeout has to be longer than the slowest handler instead.")},
		{Name: "cancelling a task ends its handler", Run: cancelled,
			Cannot: noLease("Level 1 does not hear of cancels and timeouts: the handler runs on, and its result is absorbed.")},
		{Name: "a step's timeout ends its handler", Run: timedOut,
			Cannot: noLease("Level 1 does not hear of cancels and timeouts: the handler runs on, and its result is absorbed.")},
		{Name: "has not ended by itself so far", Alone: true, Run: func(_ context.Context, k *kit) error {
			if n := k.process.unexpected(); n > 0 {
				return fmt.Errorf("the process ended %d times without being asked", n)
			}
			return nil
		}},
		{Name: "a worker that dies in the middle costs a delivery, not an attempt", Alone: true, Run: crash},
		{Name: "a frozen worker's late result does not count", Alone: true, Run: frozen},
		{Name: "survives the loss of its connections, and loses no result", Alone: true, Run: outage,
			Cannot: map[Level]string{LevelHTTP: "Level 3 has no connection to the database."}},
		{Name: "SIGTERM: finishes what is quick, hands back what is slow", Alone: true, Run: handsBack,
			Cannot: noLease("At level 1 handing back would be pgmq.set_vt, without a fence: what is unfinished comes back when its visibility timeout is over.")},
		{Name: "SIGTERM: ends with exit code 0", Alone: true, Run: ends},
	}
}

// slow takes more than two leases.
func slow(ctx context.Context, k *kit) error {
	ref, err := k.template(ctx, "slow", `
steps:
  - {name: run, handler: sleep, queue: QUEUE, lease: 8s}
`)
	if err != nil {
		return err
	}
	s, err := k.completes(ctx, request{Template: ref, Input: object{"ms": 20_000}}, object{"slept": 20_000})
	if err == nil && s.Deliveries != 1 {
		err = fmt.Errorf("it was delivered %d times", s.Deliveries)
	}
	return err
}

func cancelled(ctx context.Context, k *kit) error {
	ref, err := k.template(ctx, "cancelled", `
steps:
  - {name: run, handler: sleep, queue: QUEUE, lease: 5s}
`)
	if err != nil {
		return err
	}
	task, err := k.submit(ctx, request{Template: ref, Input: object{"ms": forever}})
	if err != nil {
		return err
	}
	if _, err := k.await(ctx, task, "run", "in_progress"); err != nil {
		return err
	}
	if _, err := k.pool.Exec(ctx, `select pawl.cancel_task($1, 'conformance', 'to see what the worker does')`, task); err != nil {
		return fmt.Errorf("cancelling: %w", err)
	}
	if err := k.gone(ctx, task); err != nil {
		return err
	}
	_, err = k.await(ctx, task, "run", "cancelled")
	return err
}

func timedOut(ctx context.Context, k *kit) error {
	ref, err := k.template(ctx, "timed_out", `
retry: {max_attempts: 1}
steps:
  - {name: run, handler: sleep, queue: QUEUE, lease: 5s, timeout: 2s}
`)
	if err != nil {
		return err
	}
	task, err := k.submit(ctx, request{Template: ref, Input: object{"ms": forever}})
	if err != nil {
		return err
	}
	s, err := k.await(ctx, task, "run", "error", "complete")
	if err != nil {
		return err
	}
	if s.State != "error" || s.Error.Type != "timeout" {
		return fmt.Errorf("the step is %s%s, and should have failed with type timeout", s.State, s.failure())
	}
	return k.gone(ctx, task)
}

// crash has the worker end itself in the middle of a step. The lease is ended by hand, as time would.
func crash(ctx context.Context, k *kit) error {
	before := k.process.unexpected()
	task, err := k.submit(ctx, request{Handler: "crash", Input: object{}})
	if err != nil {
		return err
	}
	if err := k.until(ctx, func() (bool, error) { return k.process.unexpected() > before, nil }); err != nil {
		return fmt.Errorf("waiting until the handler crash has ended the process: %w", err)
	}
	if err := k.expire(ctx, task); err != nil {
		return err
	}
	s, err := k.await(ctx, task, "run", "complete", "error", "waiting_for_retry")
	if err != nil {
		return err
	}
	var result struct{ Delivery int }
	if s.State == "complete" {
		err = json.Unmarshal([]byte(s.Result), &result)
	}
	if err != nil || s.State != "complete" || s.Attempt != 1 || s.Failures != 0 || result.Delivery < 2 {
		return fmt.Errorf(`the step is %s%s in attempt %d with result %.100s, and should be complete in attempt 1 with {"delivery": 2}`,
			s.State, s.failure(), s.Attempt, s.Result)
	}
	return nil
}

// frozen stops the worker in the middle of a step for longer than its lease; another worker ends the step meanwhile.
func frozen(ctx context.Context, k *kit) error {
	task, err := k.submit(ctx, request{Handler: "sleep", Input: object{"ms": 8000}})
	if err != nil {
		return err
	}
	if err := k.taken(ctx, task); err != nil {
		return err
	}
	k.process.signal(child.Suspend)
	err = k.steal(ctx, task)
	k.process.signal(child.Resume)
	if err != nil {
		return err
	}
	// When the worker has answered this, it is well; when the 8 s are over its late result has come.
	for _, r := range []request{{Handler: "echo", Input: 1}, {Handler: "sleep", Input: object{"ms": 9000}}} {
		late, err := k.submit(ctx, r)
		if err == nil {
			_, err = k.await(ctx, late, "run", "complete")
		}
		if err != nil {
			return fmt.Errorf("after it was frozen: %w", err)
		}
	}
	s, err := k.step(ctx, task, "run")
	if err != nil {
		return err
	}
	return k.compare(ctx, s, "stolen")
}

// steal claims and completes the step as another worker would.
func (k *kit) steal(ctx context.Context, task uuid.UUID) error {
	err := k.until(ctx, func() (bool, error) {
		if err := k.expire(ctx, task); err != nil {
			return false, err
		}
		var accepted *bool
		err := k.pool.QueryRow(ctx, `
			with claimed as (select c from json_array_elements(pawl.claim_steps($1, 10, 'thief')) c where c->>'task_id' = $2::text)
			select (pawl.report_steps($1, jsonb_build_array(jsonb_build_object('msg_id', (c->>'msg_id')::bigint, 'read_ct', (c->>'read_ct')::int,
				'status', 'complete', 'result', 'stolen')), 'thief')->0->>'accepted')::boolean
			from claimed union all select null limit 1`, Queue, task).Scan(&accepted)
		return accepted != nil && *accepted, err
	})
	if err != nil {
		return fmt.Errorf("taking the step from the frozen worker: %w", err)
	}
	return nil
}

func handsBack(ctx context.Context, k *kit) error {
	tasks, err := k.submitMany(ctx, []request{
		{Handler: "sleep", Input: object{"ms": 3000}}, {Handler: "sleep", Input: object{"ms": forever}},
	})
	if err != nil {
		return err
	}
	for _, task := range tasks {
		if _, err := k.await(ctx, task, "run", "in_progress", "complete"); err != nil {
			return err
		}
	}
	// The database knew of the claim before the worker did. After another step the handlers are at work.
	if _, err := k.completes(ctx, request{Handler: "echo", Input: "at work?"}, "at work?"); err != nil {
		return err
	}
	if _, err := k.process.terminate(k.config.Patience); err != nil {
		return err
	}
	// The result may be on its way.
	if _, err := k.await(ctx, tasks[0], "run", "complete"); err != nil {
		return fmt.Errorf("the quick one: %w", err)
	}
	var visible bool
	err = k.pool.QueryRow(ctx, fmt.Sprintf(`select coalesce(bool_and(vt <= clock_timestamp()), false) from pgmq.q_%s where message->>'task_id' = $1::text`, Queue), tasks[1]).Scan(&visible)
	if err != nil {
		return fmt.Errorf("looking for the slow one's message: %w", err)
	}
	s, err := k.step(ctx, tasks[1], "run")
	if err != nil {
		return err
	}
	if !visible || s.Attempt != 1 || s.Failures != 0 {
		return fmt.Errorf("the slow one is %s in attempt %d%s, its message visible: %t; it should be visible at once, in attempt 1", s.State, s.Attempt, s.failure(), visible)
	}
	return nil
}

func ends(_ context.Context, k *kit) error {
	code, err := k.process.terminate(max(k.config.Patience, 30*time.Second))
	if err == nil && code != 0 {
		err = fmt.Errorf("its exit code is %d", code)
	}
	return err
}
