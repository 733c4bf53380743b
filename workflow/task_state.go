package workflow

import (
	"fmt"
	"slices"
	"strings"
)

// TaskState is the stored state of a task, the label of pawl.task_state.
type TaskState string

// The states of a task. The first eight are open, the others final.
const (
	// TaskPending waits for its start time.
	TaskPending TaskState = "pending"
	// TaskInitializing is accepted and durable; not all of its steps are built.
	TaskInitializing TaskState = "initializing"
	// TaskEnqueuingSteps has ready steps that a gate or the bound of one transaction holds.
	TaskEnqueuingSteps TaskState = "enqueuing_steps"
	// TaskStepsInProcess has a step enqueued or in progress.
	TaskStepsInProcess TaskState = "steps_in_process"
	// TaskWaitingForRetry has nothing active and a step in back-off.
	TaskWaitingForRetry TaskState = "waiting_for_retry"
	// TaskWaitingForDependencies has open steps that wait for a held key, or for a person.
	TaskWaitingForDependencies TaskState = "waiting_for_dependencies"
	// TaskEvaluatingResults has no open step and is not final yet.
	TaskEvaluatingResults TaskState = "evaluating_results"
	// TaskBlockedByFailures can run nothing because a step failed, and its template says hold.
	TaskBlockedByFailures TaskState = "blocked_by_failures"
	// TaskComplete ended well. It is never left.
	TaskComplete TaskState = "complete"
	// TaskError ended because a step failed.
	TaskError TaskState = "error"
	// TaskCancelled was cancelled.
	TaskCancelled TaskState = "cancelled"
	// TaskTimedOut ran longer than its template's timeout.
	TaskTimedOut TaskState = "timed_out"
	// TaskResolvedManually was ended by an operator. It is never left.
	TaskResolvedManually TaskState = "resolved_manually"
)

var taskStates = []TaskState{
	TaskPending, TaskInitializing, TaskEnqueuingSteps, TaskStepsInProcess, TaskWaitingForRetry,
	TaskWaitingForDependencies, TaskEvaluatingResults, TaskBlockedByFailures,
	TaskComplete, TaskError, TaskCancelled, TaskTimedOut, TaskResolvedManually,
}

// TaskStates returns every state of a task in the order of pawl.task_state.
func TaskStates() []TaskState { return slices.Clone(taskStates) }

// ParseTaskState returns the state of this name. The error names all states.
func ParseTaskState(name string) (TaskState, error) {
	names := make([]string, len(taskStates))
	for i, s := range taskStates {
		if names[i] = string(s); name == names[i] {
			return s, nil
		}
	}
	return "", fmt.Errorf("there is no task state %q; there are %s", name, strings.Join(names, ", "))
}

// IsFinal reports whether a task in this state has ended.
func (s TaskState) IsFinal() bool {
	switch s {
	case TaskComplete, TaskError, TaskCancelled, TaskTimedOut, TaskResolvedManually:
		return true
	}
	return false
}

// IsOpen reports whether a task in this state has still to be moved on by somebody.
func (s TaskState) IsOpen() bool { return s.IsKnown() && !s.IsFinal() }

// IsKnown reports whether this is a state at all.
func (s TaskState) IsKnown() bool { return slices.Contains(taskStates, s) }

func (TaskState) entity() Entity { return EntityTask }
