package workflow

import "fmt"

// Entity is what a transition moves: a task or a step.
type Entity string

// The entities that have a state.
const (
	EntityTask Entity = "task"
	EntityStep Entity = "step"
)

// State is the state of one kind of entity.
type State interface {
	TaskState | StepState
	entity() Entity
}

// Transition is one legal change of state, a row of pawl.legal_transitions.
type Transition struct {
	Entity Entity
	// From is the state that is left; empty when the entity is created.
	From string
	To   string
	// Via is the state between the two hops when one UPDATE makes both. The audit
	// then has two rows, the first with the event of From → Via, the second with Event.
	Via string
	// Hops is 2 with Via, else 1: by so much the revision of the entity grows.
	Hops int
	// Event names the cause in the audit.
	Event string
	// OperatorOnly transitions are refused unless an operator's command makes them.
	OperatorOnly bool
}

type pair struct {
	entity   Entity
	from, to string
}

var legal = func() map[pair]Transition {
	m := make(map[pair]Transition)
	for _, t := range LegalTransitions() {
		m[pair{t.Entity, t.From, t.To}] = t
	}
	return m
}()

// LegalTransitions returns every legal transition, tasks first, each entity in
// the order of its states. There is one row for a pair of states.
func LegalTransitions() []Transition {
	return append(taskTransitions(), stepTransitions()...)
}

// CanTransition reports whether one statement may move an entity from one state
// to another. An empty from means creation. Whether the transition is reserved
// for operators is not asked here: see [FindTransition].
func CanTransition[S State](from, to S) bool {
	_, ok := FindTransition(from, to)
	return ok
}

// FindTransition returns the legal transition between two states, if there is one.
func FindTransition[S State](from, to S) (Transition, bool) {
	t, ok := legal[pair{to.entity(), string(from), string(to)}]
	return t, ok
}

// CheckTransition returns an [InvalidTransitionError] when [CanTransition] is
// false. It is for those who know a state and would rather not ask the database.
func CheckTransition[S State](from, to S) error {
	if CanTransition(from, to) {
		return nil
	}
	return &InvalidTransitionError{Entity: to.entity(), From: string(from), To: string(to)}
}

// InvalidTransitionError says that an entity may not go from one state to another.
// The database, which is the authority, refuses the same pairs, whoever tries, with
// the SQLSTATE PW001.
type InvalidTransitionError struct {
	Entity Entity
	// From is empty when the entity would have been created in To.
	From string
	To   string
}

// Error names the entity and the two states.
func (e *InvalidTransitionError) Error() string {
	if e.From == "" {
		return fmt.Sprintf("a %s cannot be created as %s", e.Entity, e.To)
	}
	return fmt.Sprintf("a %s cannot go from %s to %s", e.Entity, e.From, e.To)
}
