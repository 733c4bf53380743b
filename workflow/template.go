package workflow

import (
	"encoding/json"
	"time"
)

// Limits of a template file.
const (
	// MaxFileBytes bounds one file of templates.
	MaxFileBytes = 16 << 20
	// MaxSteps bounds the steps of one template.
	MaxSteps = 10_000
	// MaxNeeds bounds the dependencies of one template, all steps together.
	MaxNeeds = 200_000
	// MaxConfigBytes bounds the config of a step and an input schema, as JSON.
	MaxConfigBytes = 256 << 10
)

// Template is a versioned definition of a workflow, checked and with its
// defaults filled in. Templates are made by [ParseTemplates]; changing one
// afterwards does not change its [Template.Definition].
type Template struct {
	// File and Line say where the template begins.
	File string
	Line int

	Namespace   string
	Name        string
	Version     string
	Description string
	// InputSchema is a JSON Schema as JSON; nil accepts every input.
	InputSchema json.RawMessage
	// Timeout bounds a task from its start; 0 is no bound.
	Timeout   time.Duration
	OnFailure OnFailure
	// Result names the step whose result is the task's; empty means the only
	// last step, or an object of all last steps.
	Result   string
	Identity Identity
	// Retention is how long finished tasks are kept; nil follows the queue or the default.
	Retention *time.Duration
	// StuckAfter holds, for open states, the time after which a task counts as stuck.
	StuckAfter  map[TaskState]time.Duration
	StuckPolicy string
	// Steps are in topological order: every step comes after those it needs.
	Steps []Step

	definition json.RawMessage
}

// Ref returns namespace/name@version.
func (t *Template) Ref() string { return t.Namespace + "/" + t.Name + "@" + t.Version }

// OnFailure says what a task does when one of its steps has failed for good.
type OnFailure string

// The failure policies.
const (
	// Finish runs what can still run, then ends in error. It is the default.
	Finish OnFailure = "finish"
	// FailFast cancels the rest at once.
	FailFast OnFailure = "fail_fast"
	// Hold runs what can still run, then waits for an operator.
	Hold OnFailure = "hold"
)

// Identity says when two requests mean the same task.
type Identity struct {
	// Strategy is default (the request's key if it has one, else every request
	// is its own), caller_provided, strict or always_unique.
	Strategy string
	// Scope is template (all versions of the name) or namespace.
	Scope string
	// DedupWindow is how long a finished task holds its key; nil means its retention.
	DedupWindow *time.Duration
}

// Step is one node of a template.
type Step struct {
	// No is the position in topological order, from 0.
	No      int
	Name    string
	Handler string
	Queue   string
	Needs   []Need
	// Config is a JSON object handed to the handler; nil when there is none.
	Config json.RawMessage
	Retry  Retry
	// MaxDeliveries bounds how often one attempt is handed out, that is, how many crashes it survives.
	MaxDeliveries int
	// Timeout bounds one attempt from its first claim; 0 is no bound.
	Timeout time.Duration
	// Lease is how long a worker may be silent; whole seconds.
	Lease time.Duration
	// Key is literal text with ${input.…} in it; empty when the step has none.
	Key string
	// Claims are by requester; nil when the step claims nothing, a nil claim is none.
	Claims map[string]*Claim
	// OnCrash is what follows a crash under a claim: hold (an operator decides) or retry.
	OnCrash string
}

// Need is a dependency on an earlier step.
type Need struct {
	// No is the position of the step needed.
	No int
	// AcceptsSkipped says that a skipped step satisfies it, too.
	AcceptsSkipped bool
}

// Retry says how often and when a failed step is tried again.
type Retry struct {
	// MaxAttempts counts the first attempt.
	MaxAttempts int
	// Backoff is none, fixed, linear or exponential.
	Backoff string
	// Base is the wait after the first failure, Max the longest wait.
	Base, Max time.Duration
	// Jitter is the share of the wait that is random, 0 to 1.
	Jitter float64
}

// Claim moves a row of the user's through its states around the work of a step.
type Claim struct {
	// Entity names a registered entity, ID is literal text with ${input.…} in it.
	Entity, ID string
	// From → Into by compare-and-swap at the start; then OnSuccess, or RevertTo.
	From, Into, RevertTo, OnSuccess string
	// OnBusy is fail or wait.
	OnBusy string
}
