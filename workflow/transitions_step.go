package workflow

type stepRule struct {
	from, to StepState
	via      StepState
	event    string
	operator bool
}

// The legal transitions of a step, in any order.
var stepRules = []stepRule{
	{from: "", to: StepPending, event: "created"},
	{from: "", to: StepEnqueued, event: "created"},
	{from: "", to: StepWaiting, event: "created"},

	{from: StepPending, to: StepEnqueued, event: "enqueued"},
	{from: StepPending, to: StepWaiting, event: "suspended"},
	{from: StepPending, to: StepComplete, event: "attached"}, // its key is held by a finished execution
	{from: StepPending, to: StepSkipped, event: "skipped"},
	{from: StepPending, to: StepError, event: "failed"},
	{from: StepPending, to: StepCancelled, event: "cancelled"},
	{from: StepPending, to: StepResolvedManually, event: "resolved", operator: true},

	{from: StepEnqueued, to: StepPending, event: "held"}, // pulled back by a gate or a pause
	{from: StepEnqueued, to: StepInProgress, event: "started"},
	// A worker that only speaks PGMQ never claims: its result begins the attempt and ends it.
	{from: StepEnqueued, to: StepComplete, via: StepInProgress, event: "completed"},
	{from: StepEnqueued, to: StepError, via: StepInProgress, event: "failed"},
	{from: StepEnqueued, to: StepWaitingForRetry, via: StepInProgress, event: "failed"},
	{from: StepEnqueued, to: StepCancelled, event: "cancelled"},
	{from: StepEnqueued, to: StepResolvedManually, event: "resolved", operator: true},

	{from: StepInProgress, to: StepInProgress, event: "redelivered"},
	{from: StepInProgress, to: StepComplete, event: "completed"},
	{from: StepInProgress, to: StepError, event: "failed"},
	{from: StepInProgress, to: StepWaitingForRetry, event: "failed"},
	{from: StepInProgress, to: StepWaiting, event: "suspended"},
	{from: StepInProgress, to: StepCancelled, event: "cancelled"},
	{from: StepInProgress, to: StepResolvedManually, event: "resolved", operator: true},

	{from: StepWaitingForRetry, to: StepEnqueued, event: "retried"},
	{from: StepWaitingForRetry, to: StepPending, event: "held"},
	{from: StepWaitingForRetry, to: StepError, event: "failed"},
	{from: StepWaitingForRetry, to: StepCancelled, event: "cancelled"},
	{from: StepWaitingForRetry, to: StepComplete, event: "completed", operator: true},
	{from: StepWaitingForRetry, to: StepResolvedManually, event: "resolved", operator: true},

	{from: StepWaiting, to: StepEnqueued, event: "resumed"},
	{from: StepWaiting, to: StepPending, event: "held"},
	{from: StepWaiting, to: StepComplete, event: "completed"},
	{from: StepWaiting, to: StepError, event: "failed"},
	{from: StepWaiting, to: StepCancelled, event: "cancelled"},
	{from: StepWaiting, to: StepResolvedManually, event: "resolved", operator: true},

	{from: StepComplete, to: StepPending, event: "retry_from", operator: true},
	{from: StepResolvedManually, to: StepPending, event: "retry_from", operator: true},

	{from: StepSkipped, to: StepPending, event: "reopened", operator: true},
	{from: StepSkipped, to: StepEnqueued, event: "reopened", operator: true},
	{from: StepError, to: StepPending, event: "reopened", operator: true},
	{from: StepError, to: StepEnqueued, event: "reopened", operator: true},
	{from: StepError, to: StepComplete, event: "completed", operator: true},
	{from: StepError, to: StepResolvedManually, event: "resolved", operator: true},
	{from: StepCancelled, to: StepPending, event: "reopened", operator: true},
	{from: StepCancelled, to: StepEnqueued, event: "reopened", operator: true},
	{from: StepCancelled, to: StepComplete, event: "completed", operator: true},
	{from: StepCancelled, to: StepResolvedManually, event: "resolved", operator: true},
}

func stepTransitions() []Transition {
	rules := make(map[pair]stepRule, len(stepRules))
	for _, r := range stepRules {
		rules[pair{EntityStep, string(r.from), string(r.to)}] = r
	}
	var all []Transition
	for _, from := range append([]StepState{""}, stepStates...) {
		for _, to := range stepStates {
			r, ok := rules[pair{EntityStep, string(from), string(to)}]
			if !ok {
				continue
			}
			t := Transition{Entity: EntityStep, From: string(from), To: string(to), Hops: 1, Event: r.event, OperatorOnly: r.operator}
			if r.via != "" {
				t.Via, t.Hops = string(r.via), 2
			}
			all = append(all, t)
		}
	}
	return all
}
