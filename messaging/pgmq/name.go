package pgmq

import (
	"fmt"
)

// MaxQueueName is the length of the longest queue name, in characters. PGMQ
// itself takes 47; the difference is left for names derived from a queue's.
const MaxQueueName = 40

// ValidateQueueName refuses a name that does not match ^[a-z][a-z0-9_]{0,39}$.
// Every function of this package calls it before PGMQ sees the name: PGMQ keeps
// a name as typed in one place and lower-cased in another, puts it into
// identifiers and lets quotes, spaces and the empty string pass. The error is a
// [QueueNameError].
func ValidateQueueName(name string) error {
	switch {
	case name == "":
		return &QueueNameError{Name: name, Reason: "is empty"}
	case len(name) > MaxQueueName:
		return &QueueNameError{Name: name[:MaxQueueName], Reason: fmt.Sprintf("is longer than %d characters", MaxQueueName)}
	case name[0] < 'a' || name[0] > 'z':
		return &QueueNameError{Name: name, Reason: "does not start with a letter a-z"}
	}
	for at := range len(name) {
		if !nameByte(name[at]) {
			return &QueueNameError{Name: name, Reason: fmt.Sprintf("has a character other than a-z, 0-9 and _ at position %d", at+1)}
		}
	}
	return nil
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_'
}

// QueueNameError is the error for a queue name that is not allowed.
type QueueNameError struct {
	Name   string // the name, cut at MaxQueueName characters
	Reason string // what is wrong with it, a phrase without a subject
}

// Error says what is wrong and what a name looks like.
func (e *QueueNameError) Error() string {
	return fmt.Sprintf("queue name %q %s: use 1 to %d characters a-z, 0-9 and _, the first a letter", e.Name, e.Reason, MaxQueueName)
}
