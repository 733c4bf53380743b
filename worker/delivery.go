package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/worker/internal/trial"
)

// delivery is a step that this worker has claimed, as pawl.claim_steps gives it. Fields that this worker does not know
// are a newer engine's, and harmless.
type delivery struct {
	MsgID         int64                      `json:"msg_id"`
	ReadCount     int                        `json:"read_ct"` // with MsgID the fence of the lease
	TaskID        uuid.UUID                  `json:"task_id"`
	Step          string                     `json:"step"`
	Index         int                        `json:"index"`
	Attempt       int                        `json:"attempt"`
	Delivery      int                        `json:"delivery"`
	Handler       string                     `json:"handler"`
	Input         json.RawMessage            `json:"input"`
	Dependencies  map[string]json.RawMessage `json:"dependencies"`
	Config        json.RawMessage            `json:"config"`
	Token         string                     `json:"token"`
	CorrelationID string                     `json:"correlation_id"`
	LeaseMS       int64                      `json:"lease_ms"`
	Headers       json.RawMessage            `json:"headers"`

	lane      *lane
	handle    handler
	trial     *trial.Outcome          // of a test without a database, else nil
	ctx       context.Context         // the handler's; the delivery is one call of it
	cancel    context.CancelCauseFunc // ends it
	claimedAt time.Time

	// These are guarded by lane.mu.
	beatAt    time.Time // when the lease is to be extended
	leaseFrom time.Time // when it was surely ours last
	ended     bool      // the handler has returned
	inTx      bool      // CompleteTx was called: the message may be locked or gone
	apart     bool      // its outcome was set aside
}

func (d *delivery) lease() time.Duration { return time.Duration(d.LeaseMS) * time.Millisecond }

func (d *delivery) call() Call {
	return Call{
		TaskID: d.TaskID, Name: d.Step, Index: d.Index, Attempt: d.Attempt, Delivery: d.Delivery, Handler: d.Handler,
		Queue: d.lane.queue, Token: d.Token, CorrelationID: d.CorrelationID, Headers: d.Headers, delivery: d,
	}
}

// enterTx notes that a transaction of the handler decides about the message.
func (d *delivery) enterTx() {
	d.lane.mu.Lock()
	defer d.lane.mu.Unlock()
	d.inTx = true
}

func (d *delivery) isInTx() bool {
	d.lane.mu.Lock()
	defer d.lane.mu.Unlock()
	return d.inTx
}

// timeout of an attempt as the engine put it into the message's headers; 0 is none.
func (d *delivery) timeout() time.Duration {
	if !bytes.Contains(d.Headers, []byte(`"timeout_ms"`)) {
		return 0
	}
	var headers struct {
		TimeoutMS float64 `json:"timeout_ms"`
	}
	if json.Unmarshal(d.Headers, &headers) != nil { // not the engine's: no timeout is known
		return 0
	}
	return time.Duration(headers.TimeoutMS * float64(time.Millisecond))
}

// claims says whether the step may have an entity claim, so that its report moves a row of the user's.
func (d *delivery) claims() bool {
	if !bytes.Contains(d.Headers, []byte(`"claim"`)) {
		return false
	}
	var headers struct {
		Claim bool `json:"claim"`
	}
	return json.Unmarshal(d.Headers, &headers) == nil && headers.Claim
}

// report is the end of an attempt, as pawl.report_steps takes it.
type report struct {
	MsgID     int64                  `json:"msg_id"`
	ReadCount int                    `json:"read_ct"`
	Status    messaging.ResultStatus `json:"status"`
	Result    json.RawMessage        `json:"result,omitempty"`
	Error     *messaging.StepError   `json:"error,omitempty"`
}

// outcome is a delivery whose handler has returned.
type outcome struct {
	delivery *delivery
	report   report
	giveBack bool // instead of reporting: the worker stops, and the handler did not finish
	presumed bool // to have ended with its transaction: the report counts only when that did not commit
	replaced bool // a failure stands in for a result that the database refuses

	// These are of an outcome that was set aside, and whoever holds it uses them.
	tries   int       // that failed
	retryAt time.Time // no try before this
}

// refused says whether the database refused the report for what it asked of it, or may have.
func (o *outcome) refused(err error) bool {
	if isDoubtful(err) {
		return o.delivery.claims()
	}
	_, yes := isRefused(err)
	return yes
}

// explain adds what else an error of a report may come from: one with an entity claim runs the triggers of the user's row.
func (d *delivery) explain(err error) error {
	if d.claims() && isDoubtful(err) {
		return fmt.Errorf("%w; or a trigger of the claimed row lacks it", err)
	}
	return err
}

func (o *outcome) size() int {
	size := 200 + len(o.report.Result)
	if o.report.Error != nil {
		size += len(o.report.Error.Message)
	}
	return size
}

// conclude makes the outcome of what a handler returned. cause is why its context has ended, nil when it has not.
func (d *delivery) conclude(result json.RawMessage, err, cause error) *outcome {
	o := &outcome{delivery: d, report: report{MsgID: d.MsgID, ReadCount: d.ReadCount}}
	if err == nil && d.isInTx() {
		// When the transaction has committed the message is gone, and this report with it. It counts only otherwise.
		o.presumed = true
		err = Error{Type: typeNotCommitted, Err: errors.New("the handler returned without an error, but the transaction given to CompleteTx was not committed")}
	}
	if err == nil {
		o.report.Status, o.report.Result = messaging.Complete, result
		return o
	}
	o.giveBack = errors.Is(cause, ErrStopping)
	o.report.Status, o.report.Error = failure(err, cause)
	return o
}
