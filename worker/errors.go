package worker

import (
	"errors"
	"fmt"
	"time"
)

// What context.Cause of a handler's context says when the work is no longer wanted.
var (
	// ErrCancelled says that the task or the step was ended by somebody else; the result will not count.
	ErrCancelled = errors.New("the step was cancelled")
	// ErrLeaseLost says that the lease could not be extended in time; another worker has the step now or soon.
	ErrLeaseLost = errors.New("the lease of the step is lost")
	// ErrTimeout says that the step's timeout is over.
	ErrTimeout = errors.New("the step's timeout is over")
	// ErrStopping says that the worker stops and the grace period is over; an error returned now hands the step back.
	ErrStopping = errors.New("the worker stops")
)

// Types of failures that the worker itself finds.
const (
	typeInvalidInput   = "invalid_input"
	typeInvalidResult  = "invalid_result"
	typePanic          = "panic"
	typeUnknownHandler = "unknown_handler"
	typeNotCommitted   = "transaction_not_committed"
)

// Error gives a failure its type: a short name by which failures are counted and told apart. Without it the type is the
// name of the error's Go type.
type Error struct {
	Type string
	Err  error
}

// Error is the text of the wrapped error.
func (e Error) Error() string {
	if e.Err == nil {
		return e.Type
	}
	return e.Err.Error()
}

// Unwrap returns the wrapped error.
func (e Error) Unwrap() error { return e.Err }

// Permanent marks an error as one that trying again will not cure: the step fails at once.
func Permanent(err error) error { return mark(err, func(v *verdict) { v.permanent = true }) }

// Rejected marks an error as a refusal: the handler will not do this. The step fails at once, with status rejected.
func Rejected(err error) error { return mark(err, func(v *verdict) { v.rejected = true }) }

// RetryAfter marks an error as one to try again, not before a time has passed: a day at most.
func RetryAfter(err error, after time.Duration) error {
	return mark(err, func(v *verdict) { v.after = max(after, 0) })
}

// verdict is an error with the word of the handler on what follows from it.
type verdict struct {
	err       error
	permanent bool
	rejected  bool
	after     time.Duration
}

func mark(err error, how func(*verdict)) error {
	if err == nil {
		return nil
	}
	v := &verdict{err: err}
	how(v)
	return v
}

// Error is the text of the marked error.
func (v *verdict) Error() string { return v.err.Error() }

// Unwrap returns the marked error.
func (v *verdict) Unwrap() error { return v.err }

// panicError is a panic of a handler.
type panicError struct{ value any }

// Error is the panic's text.
func (p *panicError) Error() string { return fmt.Sprint(p.value) }
