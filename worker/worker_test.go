package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/worker"
)

type order struct {
	ID    string `json:"id"`
	Lines []struct {
		Quantity int `json:"quantity"`
	} `json:"lines"`
}

func TestHandlerGetsItsInputAndItsResultIsTheSteps(t *testing.T) {
	k := newKit(t)
	task := k.submit("shop.charge", "shop_queue", map[string]any{"id": "o-1", "lines": []any{map[string]int{"quantity": 3}}, "more": true})[0]
	w := k.worker(worker.Config{Name: "w1"}, "shop_queue")
	steps := make(chan worker.Step[order], 1)
	worker.Handle(w, "shop.charge", func(_ context.Context, step worker.Step[order]) (map[string]any, error) {
		steps <- step
		return map[string]any{"charged": step.Input.Lines[0].Quantity}, nil
	})
	k.start(w)
	step := receive(k, steps, "the step")
	require.Equal(t, task, step.TaskID)
	require.Equal(t, "o-1", step.Input.ID)
	require.Equal(t, "run", step.Name)
	require.Equal(t, "shop_queue", step.Queue)
	require.Equal(t, 1, step.Attempt)
	require.Equal(t, 1, step.Delivery)
	require.Equal(t, task.String()+"/run", step.Token)
	r := k.await(task, "complete")
	require.JSONEq(t, `{"charged": 3}`, r.Result)
	require.Equal(t, "complete", r.TaskState)
}

func TestDependenciesAndConfigReachTheHandler(t *testing.T) {
	k := newKit(t)
	_, err := k.pool.Exec(t.Context(), `select pawl.register_template('{"namespace": "shop", "name": "flow", "version": "1", "steps": [
		{"no": 0, "name": "reserve", "handler": "reserve", "queue": "shop_queue"},
		{"no": 1, "name": "charge", "handler": "charge", "queue": "shop_queue", "needs": [0], "config": {"currency": "EUR"}}]}')`)
	require.NoError(t, err)
	var messages string
	require.NoError(t, k.pool.QueryRow(t.Context(), `select jsonb_build_array(jsonb_build_object('msg_id',
		pgmq.send('orchestration_task_requests', '{"template": "shop/flow", "input": {}}'),
		'template_id', (select template_id from pawl.templates where name = 'flow')))::text`).Scan(&messages))
	task := k.process(messages)[0]
	w := k.worker(worker.Config{}, "shop_queue")
	worker.Handle(w, "reserve", func(context.Context, worker.Step[struct{}]) (int, error) { return 42, nil })
	worker.Handle(w, "charge", func(_ context.Context, step worker.Step[struct{}]) (string, error) {
		var reserved int
		var config struct{ Currency string }
		if err := errors.Join(step.Dependency("reserve", &reserved), step.Config(&config)); err != nil {
			return "", err
		}
		return fmt.Sprint(reserved, config.Currency, step.Dependency("pack", &reserved) != nil, len(step.Dependencies())), nil
	})
	k.start(w)
	k.eventually(func() bool { k.settle(); return k.step(task, "charge").State == "complete" })
	require.Equal(t, `"42EURtrue 1"`, k.step(task, "charge").Result)
}

func TestThousandStepsRunOnceEachOnTwoWorkers(t *testing.T) {
	k := newKit(t)
	inputs := make([]any, 1000)
	for i := range inputs {
		inputs[i] = map[string]int{"n": i}
	}
	k.queue("many_queue")
	var mu sync.Mutex
	runs := map[uuid.UUID]int{}
	var atOnce, most atomic.Int64
	for i := range 2 {
		w := k.worker(worker.Config{Name: fmt.Sprint("w", i)}, "many_queue")
		worker.Handle(w, "many", func(_ context.Context, step worker.Step[struct{ N int }]) (int, error) {
			most.Store(max(most.Load(), atOnce.Add(1)))
			defer atOnce.Add(-1)
			mu.Lock()
			defer mu.Unlock()
			runs[step.TaskID]++
			return step.Input.N, nil
		})
		k.start(w)
	}
	k.submit("many", "many_queue", inputs...)
	k.eventually(func() bool {
		k.settle()
		return k.count(`select count(*) from pawl.tasks where state = 'complete'`) == len(inputs)
	})
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, runs, len(inputs))
	for task, n := range runs {
		require.Equal(t, 1, n, "task %s", task)
	}
	require.LessOrEqual(t, most.Load(), int64(64))
	require.Zero(t, k.count(`select count(*) from pgmq.q_many_queue`))
	require.Zero(t, k.count(`select count(*) from pawl.absorbed`))
	require.Equal(t, 499500, k.count(`select sum((result #>> '{}')::int) from pawl.steps`))
}

func TestConcurrencyOfEachQueueIsABound(t *testing.T) {
	k := newKit(t)
	k.submit("slow", "small_queue", make([]any, 12)...)
	w := k.worker(worker.Config{Queues: []worker.Queue{{Name: "small_queue", Concurrency: 3}}})
	var atOnce, most atomic.Int64
	release, entered := make(chan struct{}), make(chan struct{}, 12)
	worker.Handle(w, "slow", func(context.Context, worker.Step[any]) (any, error) {
		most.Store(max(most.Load(), atOnce.Add(1)))
		defer atOnce.Add(-1)
		entered <- struct{}{}
		<-release
		return nil, nil
	})
	k.start(w)
	for range 3 {
		receive(k, entered, "three handlers at work")
	}
	// Nothing is claimed that no slot is free for.
	require.Equal(t, 3, k.count(`select count(*) from pawl.steps where state = 'in_progress'`))
	require.Equal(t, 9, k.count(`select count(*) from pgmq.q_small_queue where read_ct = 0`))
	close(release)
	k.eventually(func() bool {
		k.settle()
		return k.count(`select count(*) from pawl.tasks where state = 'complete'`) == 12
	})
	require.EqualValues(t, 3, most.Load())
}

func TestUnknownQueueIsAnErrorWithTheNearestNames(t *testing.T) {
	k := newKit(t)
	k.queue("shop_queue")
	w := k.worker(worker.Config{}, "shop_queu")
	worker.Handle(w, "h", func(context.Context, worker.Step[any]) (any, error) { return nil, nil })
	err := w.Start(t.Context())
	require.ErrorContains(t, err, "shop_queu")
	require.ErrorContains(t, err, "Known queues: shop_queue")
	require.ErrorContains(t, err, "a first request for the queue makes it")
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]worker.Config{
		"pawl dev prints one":         {Queues: []worker.Queue{{Name: "a"}}},
		"name at least one queue":     {DatabaseURL: "postgres://localhost"},
		"named twice":                 {DatabaseURL: "postgres://localhost", Queues: []worker.Queue{{Name: "a"}, {Name: "a"}}},
		"for the engine's own":        {DatabaseURL: "postgres://localhost", Queues: []worker.Queue{{Name: "orchestration_step_results"}}},
		"use 1 to 40 characters":      {DatabaseURL: "postgres://localhost", Queues: []worker.Queue{{Name: "A"}}},
		"Poll is negative: -1s":       {DatabaseURL: "postgres://localhost", Queues: []worker.Queue{{Name: "a"}}, Poll: -time.Second},
		"ProvenPoll is negative: -1s": {DatabaseURL: "postgres://localhost", Queues: []worker.Queue{{Name: "a"}}, ProvenPoll: -time.Second},
		"concurrency -1 is negative":  {DatabaseURL: "postgres://localhost", Queues: []worker.Queue{{Name: "a", Concurrency: -1}}},
	} {
		_, err := worker.New(config)
		require.ErrorContains(t, err, want)
	}
	queues := []worker.Queue{{Name: "a"}}
	w, err := worker.New(worker.Config{DatabaseURL: "postgres://localhost", Queues: queues})
	require.NoError(t, err)
	require.Zero(t, queues[0].Concurrency, "the caller's queues are the caller's")
	require.ErrorContains(t, w.Start(t.Context()), "no handler is registered")
	handle := func(context.Context, worker.Step[any]) (any, error) { return nil, nil }
	worker.Handle(w, "h", handle)
	require.Panics(t, func() { worker.Handle(w, "h", handle) })
	require.PanicsWithValue(t, `worker: registering handler "n": the function is nil`, func() { worker.Handle[any, any](w, "n", nil) })
	require.NoError(t, w.Stop(t.Context()))
	require.NoError(t, w.Stop(t.Context()))
	require.ErrorContains(t, w.Start(t.Context()), "started or stopped before")
}
