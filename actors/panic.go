package actors

import (
	"fmt"
	"runtime/debug"
)

// panicError is a panic that was caught, with the stack of where it happened.
type panicError struct {
	reason any
	stack  string
}

// Error tells the panic's type, and its text when it is the runtime's: others may hold a payload.
func (p *panicError) Error() string {
	if err, ok := p.reason.(interface {
		error
		RuntimeError()
	}); ok {
		return "panicked: " + err.Error()
	}
	return fmt.Sprintf("panicked with a %T", p.reason)
}

// caught must be called while the panic is being handled, so that the stack is the panic's.
func caught(reason any) *panicError {
	if p, ok := reason.(*panicError); ok {
		return p
	}
	return &panicError{reason: reason, stack: string(debug.Stack())}
}

// explainPanic is deferred by what actors receive: it panics again with what the supervisor needs to tell.
func explainPanic() {
	if reason := recover(); reason != nil {
		panic(caught(reason))
	}
}
