package worker

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/pawl-dev/pawl/messaging"
)

// maxErrorText bounds an error's text in a result, in bytes; maxErrorType its type.
const (
	maxErrorText = 8 << 10
	maxErrorType = 100
)

// failure makes of a handler's error what is reported. cause is why the handler's context has ended, nil when it has not.
func failure(err, cause error) (status messaging.ResultStatus, e *messaging.StepError) {
	// An error's methods are the handler's code too; those of a nil pointer panic. Nobody else would recover here.
	defer func() {
		if value := recover(); value != nil {
			status, e = messaging.Failed, &messaging.StepError{Type: typePanic, Retryable: true,
				Message: clean(fmt.Sprintf("reading the handler's error of type %T: %v", err, value), maxErrorText)}
		}
	}()
	status = messaging.Failed
	e = &messaging.StepError{Type: errorType(err, cause), Message: clean(err.Error(), maxErrorText), Retryable: true}
	walk(err, func(err error) bool {
		if v, ok := err.(*verdict); ok { //nolint:errorlint // the walk unwraps
			e.Retryable = e.Retryable && !v.permanent && !v.rejected
			e.RetryAfter = max(e.RetryAfter, v.after.Seconds())
			if v.rejected {
				status = messaging.Rejected
			}
		}
		return true
	})
	if !e.Retryable {
		e.RetryAfter = 0
	}
	return status, e
}

// errorType names an error: what the handler says, else why its context ended, else the first Go type in its chain that
// says something.
func errorType(err, cause error) string {
	var typed Error
	var pointed *Error
	var panicked *panicError
	switch {
	case errors.As(err, &typed) && typed.Type != "":
		return clean(typed.Type, maxErrorType)
	case errors.As(err, &pointed) && pointed.Type != "":
		return clean(pointed.Type, maxErrorType)
	case errors.As(err, &panicked):
		return typePanic
	case errors.Is(cause, ErrCancelled):
		return "cancelled"
	case errors.Is(cause, ErrTimeout) && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrTimeout)):
		return "timeout"
	}
	found := "error"
	walk(err, func(err error) bool {
		t := reflect.TypeOf(err)
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch name := t.String(); {
		case strings.HasPrefix(name, "errors."), strings.HasPrefix(name, "fmt."), strings.HasPrefix(name, "worker."), t.Name() == "":
			return true
		case err == context.DeadlineExceeded: //nolint:errorlint // the walk unwraps
			found = "deadline_exceeded"
		default:
			found = name
		}
		return false
	})
	return clean(found, maxErrorType)
}

// walk visits an error and what it wraps, depth first, until visit returns false.
func walk(err error, visit func(error) bool) bool {
	if err == nil {
		return true
	}
	if !visit(err) {
		return false
	}
	switch wrapped := err.(type) { //nolint:errorlint // this is what unwraps
	case interface{ Unwrap() error }:
		return walk(wrapped.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		for _, one := range wrapped.Unwrap() {
			if !walk(one, visit) {
				return false
			}
		}
	}
	return true
}

// clean makes a text one that the database stores.
func clean(text string, limit int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "�")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}
