package conformance

import (
	"context"
	"fmt"
)

func failureChecks() []check {
	return []check{
		{Name: "a failure is tried again", Run: func(ctx context.Context, k *kit) error {
			s, err := k.completes(ctx, request{Handler: "fail_once", Input: object{}}, object{"attempt": 2})
			if err == nil && s.Failures != 1 {
				err = fmt.Errorf("there were %d failures, and should be 1", s.Failures)
			}
			return err
		}},
		{Name: "a failure keeps its type and its text", Run: func(ctx context.Context, k *kit) error {
			return k.fails(ctx, request{Handler: "fail", Input: object{"type": "card_declined", "message": "kein Geld ✗ \"0\""}},
				wanted{state: "waiting_for_retry", kind: "card_declined", message: "kein Geld ✗ \"0\"", retryable: true})
		}},
		{Name: "a permanent failure is not tried again", Run: func(ctx context.Context, k *kit) error {
			return k.fails(ctx, request{Handler: "fail_permanently", Input: object{"type": "bad_address", "message": "no such street"}},
				wanted{state: "error", kind: "bad_address", message: "no such street"})
		}},
		{Name: "a rejection is not tried again", Run: func(ctx context.Context, k *kit) error {
			return k.fails(ctx, request{Handler: "reject", Input: object{"type": "not_allowed", "message": "not for minors"}},
				wanted{state: "error", kind: "not_allowed", message: "not for minors"})
		}},
		{Name: "retry-after is passed on", Run: func(ctx context.Context, k *kit) error {
			return k.fails(ctx, request{Handler: "retry_later", Input: object{"seconds": 1000}},
				wanted{state: "waiting_for_retry", retryable: true, retryAfter: 1000})
		}},
		{Name: "an unexpected error of a handler is a failure like any other", Run: func(ctx context.Context, k *kit) error {
			return k.fails(ctx, request{Handler: "blow_up", Input: object{}}, wanted{state: "waiting_for_retry", retryable: true})
		}},
		{Name: "a result that the database cannot store is a permanent failure", Run: func(ctx context.Context, k *kit) error {
			return k.fails(ctx, request{Handler: "bad_output", Input: object{}}, wanted{state: "error", kind: "invalid_result"})
		}},
		{Name: "a step whose handler nobody has ends as unknown_handler", Run: func(ctx context.Context, k *kit) error {
			return k.fails(ctx, request{Handler: "nobody_has_this", Input: object{}}, wanted{state: "waiting_for_retry", kind: "unknown_handler", retryable: true})
		}},
	}
}

// wanted is how a step should have failed. An empty kind or message is any.
type wanted struct {
	state, kind, message string
	retryable            bool
	retryAfter           float64
}

// fails runs a step whose first attempt is to fail; there is no second one.
func (k *kit) fails(ctx context.Context, r request, w wanted) error {
	ref, err := k.template(ctx, "fails_"+r.Handler, fmt.Sprintf(`
retry: {max_attempts: 2, backoff: fixed, base: 1h}
steps:
  - {name: run, handler: %s, queue: QUEUE}
`, r.Handler))
	if err != nil {
		return err
	}
	r.Template, r.Handler = ref, ""
	task, err := k.submit(ctx, r)
	if err != nil {
		return err
	}
	s, err := k.await(ctx, task, "run", "complete", "error", "waiting_for_retry")
	if err != nil {
		return err
	}
	retryable := s.Error.Retryable == nil || *s.Error.Retryable
	switch {
	case s.State != w.state:
		return fmt.Errorf("the step is %s%s, and should be %s", s.State, s.failure(), w.state)
	case s.Error.Type == "" || w.kind != "" && s.Error.Type != w.kind:
		return fmt.Errorf("the error's type is %q, and should be %q", s.Error.Type, w.kind)
	case w.message != "" && s.Error.Message != w.message:
		return fmt.Errorf("the error's message is %q, and should be %q", s.Error.Message, w.message)
	case retryable != w.retryable:
		return fmt.Errorf("the error's retryable is %t, and should be %t", retryable, w.retryable)
	case s.Failures != 1:
		return fmt.Errorf("there were %d failures, and should be 1", s.Failures)
	case w.retryAfter > 0 && (s.Error.RetryAfter != w.retryAfter || s.Waits < w.retryAfter):
		return fmt.Errorf("retry_after is %v and the step waits for %v s, and should for %v s", s.Error.RetryAfter, s.Waits, w.retryAfter)
	}
	return nil
}
