package workflow

import "slices"

// StepState is the stored state of a step, the label of pawl.step_state.
type StepState string

// The states of a step. The first five are open, the others final.
const (
	// StepPending waits for its dependencies, or for a gate.
	StepPending StepState = "pending"
	// StepEnqueued has a message on its queue that nobody has claimed yet.
	StepEnqueued StepState = "enqueued"
	// StepInProgress is in the hands of a worker, under a lease.
	StepInProgress StepState = "in_progress"
	// StepWaitingForRetry is in back-off after a failed attempt.
	StepWaitingForRetry StepState = "waiting_for_retry"
	// StepWaiting waits for a held key, or for a person after a crash under an entity claim.
	StepWaiting StepState = "waiting"
	// StepComplete ended well. Only the operator's retry_from leaves it.
	StepComplete StepState = "complete"
	// StepSkipped was not run, on purpose. Reserved: nothing skips steps yet.
	StepSkipped StepState = "skipped"
	// StepError failed and is not tried again.
	StepError StepState = "error"
	// StepCancelled was cancelled, or can never run because a dependency failed.
	StepCancelled StepState = "cancelled"
	// StepResolvedManually was ended by an operator.
	StepResolvedManually StepState = "resolved_manually"
)

var stepStates = []StepState{
	StepPending, StepEnqueued, StepInProgress, StepWaitingForRetry, StepWaiting,
	StepComplete, StepSkipped, StepError, StepCancelled, StepResolvedManually,
}

// StepStates returns every state of a step in the order of pawl.step_state.
func StepStates() []StepState { return slices.Clone(stepStates) }

// IsFinal reports whether a step in this state has ended.
func (s StepState) IsFinal() bool {
	switch s {
	case StepComplete, StepSkipped, StepError, StepCancelled, StepResolvedManually:
		return true
	}
	return false
}

// IsOpen reports whether a step in this state has still to be moved on by somebody.
func (s StepState) IsOpen() bool { return s.IsKnown() && !s.IsFinal() }

// IsKnown reports whether this is a state at all.
func (s StepState) IsKnown() bool { return slices.Contains(stepStates, s) }

func (StepState) entity() Entity { return EntityStep }
