package workflow

// The event by which a task enters each open state.
var enteredBy = map[TaskState]string{
	TaskPending:                "scheduled",
	TaskInitializing:           "accepted",
	TaskEnqueuingSteps:         "held",
	TaskStepsInProcess:         "enqueued",
	TaskWaitingForRetry:        "backed_off",
	TaskWaitingForDependencies: "suspended",
	TaskEvaluatingResults:      "evaluated",
	TaskBlockedByFailures:      "blocked",
}

func taskTransitions() []Transition {
	var all []Transition
	for _, from := range append([]TaskState{""}, taskStates...) {
		for _, to := range taskStates {
			if t, ok := taskTransition(from, to); ok {
				t.Entity, t.From, t.To = EntityTask, string(from), string(to)
				t.Hops = 1
				if t.Via != "" {
					t.Hops = 2
				}
				all = append(all, t)
			}
		}
	}
	return all
}

// taskTransition decides one pair. A task ends as complete or error only by
// way of evaluating_results, also when one statement does both. The open states
// of a task whose steps are built follow from its counters (pawl.open_state)
// and lead to each other freely.
func taskTransition(from, to TaskState) (Transition, bool) {
	switch {
	case from == to, from == TaskComplete, from == TaskResolvedManually:
		return Transition{}, false
	case from == "":
		return Transition{Event: "created"}, to.IsOpen()
	case from.IsFinal():
		return reopenTask(to)
	case to.IsFinal():
		return endTask(from, to), true
	case to == TaskPending:
		return Transition{Event: enteredBy[to]}, from == TaskInitializing
	case to == TaskInitializing:
		return Transition{Event: enteredBy[to]}, from == TaskPending
	}
	return Transition{Event: enteredBy[to]}, true
}

func endTask(from, to TaskState) Transition {
	var t Transition
	switch to {
	case TaskComplete:
		t.Event = "finalized"
	case TaskError:
		t.Event = "failed"
	case TaskCancelled:
		return Transition{Event: "cancelled"}
	case TaskTimedOut:
		return Transition{Event: "timed_out"}
	default:
		return Transition{Event: "resolved", OperatorOnly: true}
	}
	if from != TaskEvaluatingResults {
		t.Via = string(TaskEvaluatingResults)
	}
	return t
}

// reopenTask is what an operator may do with a task in error, cancelled or timed_out.
func reopenTask(to TaskState) (Transition, bool) {
	switch {
	case to == TaskResolvedManually:
		return Transition{Event: "resolved", Via: string(TaskEvaluatingResults), OperatorOnly: true}, true
	case to.IsOpen() && to != TaskInitializing:
		return Transition{Event: "reopened", OperatorOnly: true}, true
	}
	return Transition{}, false
}
