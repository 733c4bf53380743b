// Package trial lets package workertest run a worker's handlers without a database, and nobody else.
package trial

import (
	"context"
	"encoding/json"

	"github.com/pawl-dev/pawl/messaging"
)

// Outcome is how a delivery ended.
type Outcome struct {
	Status    messaging.ResultStatus // empty when the step is given back
	Result    json.RawMessage
	Error     *messaging.StepError
	Err       error // that the handler returned
	Completed bool  // by CompleteTx
}

// Deliver gives a message, as a claim brings it, to the handler of a *worker.Worker that it names. Package worker sets it.
var Deliver func(ctx context.Context, worker any, queue string, message []byte) (Outcome, error)
