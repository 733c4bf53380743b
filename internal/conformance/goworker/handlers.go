package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/pawl-dev/pawl/worker"
)

// told is what the handlers that fail are told to say.
type told struct {
	Type    string  `json:"type"`
	Message string  `json:"message"`
	Seconds float64 `json:"seconds"`
}

func (t told) error() error { return worker.Error{Type: t.Type, Err: errors.New(t.Message)} }

type nap struct {
	MS int `json:"ms"`
}

type object = map[string]any

func register(w *worker.Worker) {
	worker.Handle(w, "echo", func(_ context.Context, step worker.Step[json.RawMessage]) (json.RawMessage, error) {
		return step.Input, nil
	})
	worker.Handle(w, "gather", gather)
	worker.Handle(w, "facts", facts)
	worker.Handle(w, "sleep", sleep)
	worker.Handle(w, "fail_once", func(_ context.Context, step worker.Step[any]) (object, error) {
		if step.Attempt == 1 {
			return nil, errors.New("as told")
		}
		return object{"attempt": step.Attempt}, nil
	})
	worker.Handle(w, "fail", func(_ context.Context, step worker.Step[told]) (any, error) { return nil, step.Input.error() })
	worker.Handle(w, "fail_permanently", func(_ context.Context, step worker.Step[told]) (any, error) {
		return nil, worker.Permanent(step.Input.error())
	})
	worker.Handle(w, "reject", func(_ context.Context, step worker.Step[told]) (any, error) {
		return nil, worker.Rejected(step.Input.error())
	})
	worker.Handle(w, "retry_later", func(_ context.Context, step worker.Step[told]) (any, error) {
		return nil, worker.RetryAfter(errors.New("later"), time.Duration(step.Input.Seconds*float64(time.Second)))
	})
	worker.Handle(w, "blow_up", func(context.Context, worker.Step[any]) (any, error) { panic("as told") })
	worker.Handle(w, "bad_output", func(context.Context, worker.Step[any]) (string, error) { return "a\x00b", nil })
	worker.Handle(w, "crash", func(_ context.Context, step worker.Step[any]) (object, error) {
		if step.Delivery == 1 {
			os.Exit(7)
		}
		return object{"delivery": step.Delivery}, nil
	})
}

func gather(_ context.Context, step worker.Step[json.RawMessage]) (object, error) {
	var config any
	err := step.Config(&config)
	return object{"input": step.Input, "dependencies": step.Dependencies(), "config": config}, err
}

func facts(_ context.Context, step worker.Step[object]) (object, error) {
	if step.Input["fail_first"] == true && step.Attempt == 1 {
		return nil, errors.New("token " + step.Token)
	}
	var config any
	err := step.Config(&config)
	return object{"attempt": step.Attempt, "token": step.Token, "step": step.Name, "correlation_id": step.CorrelationID, "config": config}, err
}

func sleep(ctx context.Context, step worker.Step[nap]) (object, error) {
	select {
	case <-time.After(time.Duration(step.Input.MS) * time.Millisecond):
		return object{"slept": step.Input.MS}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
