package workflow

// Counters are what a task knows of its steps without reading them.
type Counters struct {
	// Open steps are those not final.
	Open int
	// Active steps are enqueued or in progress.
	Active int
	// Held steps are ready, and a gate or the bound of one transaction keeps them.
	Held int
	// Retrying steps are in back-off.
	Retrying int
	// Waiting steps wait for a held key, or for a person.
	Waiting int
	// Failed steps ended in error.
	Failed int
}

// EvaluateCounters returns the open state that follows from the counters of a
// task whose steps are built. It is the rule by which the engine's SQL sets the
// state, under the lock of the task, whenever a counter changes.
func EvaluateCounters(c Counters) TaskState {
	switch {
	case c.Open == 0:
		return TaskEvaluatingResults
	case c.Active > 0:
		return TaskStepsInProcess
	case c.Held > 0:
		return TaskEnqueuingSteps
	case c.Retrying > 0:
		return TaskWaitingForRetry
	case c.Waiting > 0:
		return TaskWaitingForDependencies
	case c.Failed > 0:
		return TaskBlockedByFailures
	}
	return TaskEnqueuingSteps
}
