package messaging

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/pawl-dev/pawl/messaging/pgmq"
)

// Version is the version of message bodies that this package speaks. A body
// without a v has version 1.
const Version = 1

// The limits at the door. They hold for requests, results and whatever else
// comes from outside.
const (
	MaxBody     = 1 << 20 // bytes of a body
	MaxDepth    = 64      // nested arrays and objects
	MaxNumber   = 64      // characters of a number literal
	MaxExponent = 999     // of a number literal, either way: jsonb writes numbers out in full
	MaxKey      = 255     // bytes of a task's key
)

// CheckBody refuses a body that is not one JSON value, that jsonb cannot store
// (\u0000, half surrogate pairs, invalid UTF-8) or that is over a limit: 1 MiB,
// depth 64, number literals of 64 characters with exponents of up to 999. The
// error is a [pgmq.JSONError] with byte offset and path.
func CheckBody(body []byte) error {
	return pgmq.CheckJSON(body, pgmq.JSONLimits{Size: MaxBody, Depth: MaxDepth, Number: MaxNumber, Exponent: MaxExponent})
}

// NewRequestID makes an id for a task request, a UUIDv7. It becomes the task's
// id, so that a request repeated with it meets its own task.
func NewRequestID() uuid.UUID {
	return uuid.Must(uuid.NewV7()) // fails only when the system has no randomness
}

// BodyError says what is wrong with a message body.
type BodyError struct {
	Body   string // what it was read as, such as "task request"
	Field  string // the field at fault, dotted when nested; empty: the body as a whole
	Reason string // what is wrong and what to write instead
}

// Error names the body, the field and the reason.
func (e *BodyError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s: %s", e.Body, e.Reason)
	}
	return fmt.Sprintf("%s: field %q: %s", e.Body, e.Field, e.Reason)
}

// NewerVersionError is the error for a body of a version that this package does
// not know. It is left for an instance that does.
type NewerVersionError struct {
	Body    string // what it was read as, such as "task request"
	Version int    // the version it says it has
}

// Error says which version came and which is known.
func (e *NewerVersionError) Error() string {
	return fmt.Sprintf("%s: version %d is newer than %d, the newest that this program knows: upgrade it", e.Body, e.Version, Version)
}
