package worker_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"encoding/json"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/worker"
)

func TestErrorsBecomeTypedFailures(t *testing.T) {
	k := newKit(t)
	boom := errors.New("boom")
	type expectation struct {
		err       error
		state     string
		kind      string
		retryable bool
		after     float64
	}
	cases := map[string]expectation{
		"plain":     {fmt.Errorf("charging: %w", boom), "waiting_for_retry", "error", true, 0},
		"permanent": {fmt.Errorf("charging: %w", worker.Permanent(boom)), "error", "error", false, 0},
		"later":     {worker.RetryAfter(boom, 90*time.Second), "waiting_for_retry", "error", true, 90},
		"rejected":  {worker.Rejected(worker.Error{Type: "fraud", Err: boom}), "error", "fraud", false, 0},
		"typed":     {&worker.Error{Type: "card_declined", Err: boom}, "waiting_for_retry", "card_declined", true, 0},
		"by_type":   {fmt.Errorf("calling: %w", &url.Error{Op: "Get", URL: "http://x", Err: boom}), "waiting_for_retry", "url.Error", true, 0},
		"joined":    {errors.Join(boom, worker.Permanent(&url.Error{Op: "Get", URL: "http://x", Err: boom})), "error", "url.Error", false, 0},
		"deadline":  {fmt.Errorf("calling: %w", context.DeadlineExceeded), "waiting_for_retry", "deadline_exceeded", true, 0},
		"zero_byte": {errors.New("a\x00b\xff"), "waiting_for_retry", "error", true, 0},
		"long":      {errors.New(strings.Repeat("x", 100_000)), "waiting_for_retry", "error", true, 0},
	}
	k.queue("fail_queue")
	w := k.worker(worker.Config{}, "fail_queue")
	for name, expected := range cases {
		worker.Handle(w, name, func(context.Context, worker.Step[any]) (any, error) { return nil, expected.err })
	}
	k.start(w)
	for name, expected := range cases {
		r := k.await(k.submit(name, "fail_queue", nil)[0], expected.state)
		require.Equal(t, expected.kind, r.Error.Type, name)
		require.Equal(t, expected.retryable, r.Error.Retryable, name)
		require.Equal(t, expected.after, r.Error.RetryAfter, name)
		require.LessOrEqual(t, len(r.Error.Message), 9000, name)
		require.NotEmpty(t, r.Error.Message, name)
	}
}

func TestPanicsAreFailuresAndTheWorkerLivesOn(t *testing.T) {
	k := newKit(t)
	k.queue("panic_queue")
	w := k.worker(worker.Config{}, "panic_queue")
	worker.Handle(w, "panics", func(context.Context, worker.Step[any]) (any, error) { panic("no such thing") })
	worker.Handle(w, "exits", func(context.Context, worker.Step[any]) (any, error) { runtime.Goexit(); return nil, nil })
	worker.Handle(w, "works", func(context.Context, worker.Step[any]) (any, error) { return 1, nil })
	k.start(w)
	r := k.await(k.submit("panics", "panic_queue", nil)[0], "waiting_for_retry")
	require.Equal(t, "panic", r.Error.Type)
	require.Equal(t, "no such thing", r.Error.Message)
	r = k.await(k.submit("exits", "panic_queue", nil)[0], "waiting_for_retry")
	require.Equal(t, "panic", r.Error.Type)
	require.Equal(t, "the handler ended its goroutine", r.Error.Message)
	k.await(k.submit("works", "panic_queue", nil)[0], "complete")
	// With claims ahead, each of them has others that wait for its slot.
	k.submit("exits", "panic_queue", make([]any, 300)...)
	k.eventually(func() bool {
		return k.count(`select count(*) from pawl.steps where handler = 'exits' and failures > 0`) == 301
	},
		"each has failed once, however far its retries are")
}

// told is an error whose text needs what it points to.
type told struct{ text string }

func (t *told) Error() string { return t.text }

func TestAnErrorThatPanicsWhenAskedIsAFailure(t *testing.T) {
	k := newKit(t)
	k.queue("nil_queue")
	w := k.worker(worker.Config{}, "nil_queue")
	failures := map[string]error{
		"plain": (*told)(nil), "marked": worker.Permanent((*told)(nil)), "typed": (*worker.Error)(nil),
		"wrapped": worker.Error{Type: "told", Err: (*told)(nil)},
	}
	for name, err := range failures {
		worker.Handle(w, name, func(context.Context, worker.Step[any]) (any, error) { return nil, err })
	}
	worker.Handle(w, "works", func(context.Context, worker.Step[any]) (any, error) { return 1, nil })
	k.start(w)
	for name := range failures {
		r := k.await(k.submit(name, "nil_queue", nil)[0], "waiting_for_retry")
		require.Equal(t, "panic", r.Error.Type, name)
		require.Contains(t, r.Error.Message, "reading the handler's error of type", name)
	}
	k.await(k.submit("works", "nil_queue", nil)[0], "complete")
}

func TestResultsThatCannotBeStoredFailForGood(t *testing.T) {
	k := newKit(t)
	ones := make([]int, 400_000)
	results := map[string]any{
		"zero_byte":      "a\x00b",
		"surrogate":      json.RawMessage(`"\ud800"`),
		"too_long":       strings.Repeat("x", 1<<20),
		"longer_in_sql":  ones, // under the limit here, over it with the spaces that jsonb writes
		"no_json":        func() {},
		"endless_number": json.RawMessage(`1e100000`),
	}
	k.queue("bad_queue")
	w := k.worker(worker.Config{}, "bad_queue")
	for name, result := range results {
		worker.Handle(w, name, func(context.Context, worker.Step[any]) (any, error) { return result, nil })
	}
	worker.Handle(w, "good", func(context.Context, worker.Step[any]) (any, error) { return strings.Repeat("é", 400_000), nil })
	k.start(w)
	good := k.submit("good", "bad_queue", nil)[0]
	for name := range results {
		r := k.await(k.submit(name, "bad_queue", nil)[0], "error")
		require.Equal(t, "invalid_result", r.Error.Type, name)
		require.False(t, r.Error.Retryable, name)
	}
	k.await(good, "complete")
}

func TestInputThatDoesNotFitFailsForGoodAndNamesTheField(t *testing.T) {
	k := newKit(t)
	k.queue("typed_queue")
	w := k.worker(worker.Config{}, "typed_queue")
	worker.Handle(w, "typed", func(context.Context, worker.Step[order]) (any, error) { return nil, nil })
	k.start(w)
	r := k.await(k.submit("typed", "typed_queue", map[string]any{"lines": []any{map[string]any{"quantity": "secret"}}})[0], "error")
	require.Equal(t, "invalid_input", r.Error.Type)
	require.Equal(t, `reading input: field "lines.quantity" is a JSON string, and the handler wants int`, r.Error.Message)
	r = k.await(k.submit("typed", "typed_queue", 12)[0], "error")
	require.Equal(t, `reading input: it is a JSON number, and the handler wants worker_test.order`, r.Error.Message)
}

func TestUnknownFieldsAreRefusedWhenAskedFor(t *testing.T) {
	k := newKit(t)
	k.queue("strict_queue")
	w := k.worker(worker.Config{RefuseUnknownFields: true}, "strict_queue")
	worker.Handle(w, "strict", func(context.Context, worker.Step[order]) (any, error) { return nil, nil })
	k.start(w)
	r := k.await(k.submit("strict", "strict_queue", map[string]any{"idd": "o"})[0], "error")
	require.Equal(t, "invalid_input", r.Error.Type)
	require.Contains(t, r.Error.Message, `"idd"`)
}

func TestAStepWithoutAHandlerHereIsLeftToOtherWorkersThenFails(t *testing.T) {
	k := newKit(t)
	task := k.submit("shop.chrge", "shop_queue", nil)[0]
	_, err := k.pool.Exec(t.Context(), "update pawl.template_steps set base_ms = 1000") // where all its deliveries met the first worker
	require.NoError(t, err)
	w := k.worker(worker.Config{}, "shop_queue")
	worker.Handle(w, "shop.charge", func(context.Context, worker.Step[any]) (any, error) { return nil, nil })
	k.start(w)
	k.eventually(func() bool { return k.step(task, "run").Deliveries == 1 })
	other := k.worker(worker.Config{Name: "other"}, "shop_queue")
	worker.Handle(other, "shop.chrge", func(context.Context, worker.Step[any]) (any, error) { return "here", nil })
	lost := k.submit("shop.lost", "shop_queue", nil)[0]
	k.start(other)
	k.eventually(func() bool {
		k.expire("shop_queue") // instead of waiting for the seconds between deliveries
		_, err = k.pool.Exec(t.Context(), `select pg_notify('pgmq.q_shop_queue.INSERT', '')`)
		require.NoError(t, err)
		k.settle()
		return k.step(task, "run").State == "complete" && k.step(lost, "run").Error.Type != ""
	})
	r := k.step(lost, "run")
	require.Equal(t, "unknown_handler", r.Error.Type)
	require.Regexp(t, `in ([5-9]|\d\d+) deliveries`, r.Error.Message)
	require.Contains(t, r.Error.Message, "shop.lost")
}
