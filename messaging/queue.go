package messaging

import (
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/messaging/pgmq"
)

// The engine's own queues.
const (
	TaskRequests      = "orchestration_task_requests"
	StepEnqueues      = "orchestration_step_enqueues"
	StepResults       = "orchestration_step_results"
	TaskFinalizations = "orchestration_task_finalizations"
)

// enginePrefix begins the names of queues that only the engine reads.
const enginePrefix = "orchestration_"

// ValidateQueueName refuses a name that does not match ^[a-z][a-z0-9_]{0,39}$.
func ValidateQueueName(name string) error { return pgmq.ValidateQueueName(name) }

// ValidateStepQueueName refuses, beyond what ValidateQueueName refuses, names
// that begin with orchestration_: steps and replies do not go to the engine's own
// queues.
func ValidateStepQueueName(name string) error {
	if err := ValidateQueueName(name); err != nil {
		return err
	}
	if strings.HasPrefix(name, enginePrefix) {
		return fmt.Errorf("queue name %q begins with %s, which is for the engine's own queues: choose another name", name, enginePrefix)
	}
	return nil
}

// NamespaceQueue is the queue of a namespace's steps that name none.
func NamespaceQueue(namespace string) string { return namespace + "_queue" }
