package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/nearest"
	"github.com/pawl-dev/pawl/worker"
)

// Set registers handlers that belong together.
type Set func(w *worker.Worker)

// Sets returns the sets by name. A program adds its own to the map.
func Sets() map[string]Set {
	return map[string]Set{
		"noop":  func(w *worker.Worker) { worker.Handle(w, "noop", noop) },
		"echo":  func(w *worker.Worker) { worker.Handle(w, "echo", echo) },
		"sleep": func(w *worker.Worker) { worker.Handle(w, "sleep", sleep) },
		"fail":  func(w *worker.Worker) { worker.Handle(w, "fail", fail) },
	}
}

// Register registers the named sets, all of them when no name is given.
func Register(w *worker.Worker, sets map[string]Set, names []string) error {
	known := slices.Sorted(maps.Keys(sets))
	if len(names) == 0 {
		names = known
	}
	for i, name := range names {
		if sets[name] == nil {
			return fmt.Errorf("registering handlers: there is no set %q%s; there are %s", name, nearest.Suggestion(name, known), strings.Join(known, ", "))
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("registering handlers: %q is named twice", name)
		}
	}
	for _, name := range names {
		sets[name](w)
	}
	return nil
}

func noop(context.Context, worker.Step[json.RawMessage]) (any, error) { return nil, nil }

func echo(_ context.Context, step worker.Step[json.RawMessage]) (json.RawMessage, error) {
	return step.Input, nil
}

type sleepInput struct {
	MS float64 `json:"ms"`
}

func sleep(ctx context.Context, step worker.Step[sleepInput]) (any, error) {
	timer := time.NewTimer(time.Duration(step.Input.MS * float64(time.Millisecond)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

type failInput struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Permanent bool   `json:"permanent"`
	Attempts  int    `json:"attempts"` // that fail; 0: all
}

func fail(_ context.Context, step worker.Step[failInput]) (any, error) {
	in := step.Input
	if in.Attempts > 0 && step.Attempt > in.Attempts {
		return nil, nil
	}
	err := error(worker.Error{Type: cmp.Or(in.Type, "asked_for"), Err: errors.New(cmp.Or(in.Message, "the input asks for a failure"))})
	if in.Permanent {
		err = worker.Permanent(err)
	}
	return nil, err
}
