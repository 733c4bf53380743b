package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/pawl-dev/pawl/client"
)

// Outcome of a client's call.
type Outcome string

// Outcomes: the database answered, the database or the client refused, or nobody knows.
const (
	OK      Outcome = "ok"
	Failed  Outcome = "failed"
	Unknown Outcome = "unknown"
)

// outcome of a call by its error. Only what was refused before it was sent, or by an answer, is sure to have failed.
func outcome(err error) Outcome {
	var invalid *client.InvalidRequestError
	var command *client.CommandError
	switch {
	case err == nil:
		return OK
	case errors.As(err, &invalid), errors.As(err, &command), errors.Is(err, client.ErrNotFound):
		return Failed
	}
	return Unknown
}

// Asked is a request for a task, with what becomes of it.
type Asked struct {
	ID        uuid.UUID
	Key       string // several requests may have the same
	Fail      bool   // its input tells a handler to fail for good
	Invalid   bool   // it must be refused
	Outcome   Outcome
	Cancel    Outcome // of a cancel; empty: none was asked for
	Cancelled bool    // the cancel's answer said that it took effect

	at    time.Time
	ended time.Time // by this machine's clock; zero: not seen yet
	state string    // final one that somebody has read
}

// History is every call of every client.
type History struct {
	mu    sync.Mutex
	asked map[uuid.UUID]*Asked
	begun map[uuid.UUID]*Asked // those whose end nobody has seen
	order []*Asked             // as they were asked
	wrong []string
	calls map[string]int // by operation and outcome
	keys  int            // given out
}

// NewHistory is an empty one.
func NewHistory() *History {
	return &History{asked: make(map[uuid.UUID]*Asked), begun: make(map[uuid.UUID]*Asked), calls: make(map[string]int)}
}

// key is one that the request before may have had, too.
func (h *History) key(next bool) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if next {
		h.keys++
	}
	return fmt.Sprintf("key-%d", h.keys)
}

// note counts a call.
func (h *History) note(operation string, o Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[operation+" "+string(o)]++
}

func (h *History) ask(a Asked) *Asked {
	h.mu.Lock()
	defer h.mu.Unlock()
	a.at = time.Now()
	h.asked[a.ID], h.begun[a.ID] = &a, &a
	h.order = append(h.order, &a)
	return &a
}

// change changes what is known of a request.
func (h *History) change(a *Asked, how func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	how()
}

// read notes what a client read of a task: no client may see it go back.
func (h *History) read(task client.Task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.asked[task.ID]
	if a == nil {
		h.wrong = append(h.wrong, fmt.Sprintf("task %s was read, and nobody asked for it", task.ID))
		return
	}
	if a.state != "" && a.state != string(task.State) {
		h.wrong = append(h.wrong, fmt.Sprintf("task %s was %s, then %s", task.ID, a.state, task.State))
	}
	if task.Final() {
		a.state = string(task.State)
	}
}

// neverArrived is how long a request with an unknown outcome may be nowhere before it is not waited for any more. The
// verdict looks at it again.
const neverArrived = 20 * time.Second

// open are the requests whose end nobody has seen.
func (h *History) open() []uuid.UUID {
	h.mu.Lock()
	defer h.mu.Unlock()
	var open []uuid.UUID
	for id, a := range h.begun {
		if a.Outcome == Unknown && time.Since(a.at) > neverArrived {
			a.ended = a.at
			delete(h.begun, id)
			continue
		}
		open = append(open, id)
	}
	return open
}

func (h *History) end(id uuid.UUID, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.asked[id]
	if at.Before(a.at) {
		at = a.at
	}
	a.ended = at
	delete(h.begun, id)
}

// recovered returns when the last of some requests ended; false while one has not.
func (h *History) recovered(ids []uuid.UUID) (last time.Time, all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		ended := h.asked[id].ended
		if ended.IsZero() {
			return time.Time{}, false
		}
		if ended.After(last) {
			last = ended
		}
	}
	return last, true
}

// firstAfter is when the first of the requests sent after a time had ended.
func (h *History) firstAfter(at time.Time) (first time.Time, any bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	from := sort.Search(len(h.order), func(i int) bool { return h.order[i].at.After(at) })
	for _, a := range h.order[from:] {
		if any && a.at.After(first) {
			break
		}
		if a.ended.After(a.at) && (!any || a.ended.Before(first)) {
			first, any = a.ended, true
		}
	}
	return first, any
}

// EndedSince says whether that many requests sent after a time have ended, and when the last of them did.
func (h *History) EndedSince(at time.Time, count int) (last time.Time, yes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.order[sort.Search(len(h.order), func(i int) bool { return h.order[i].at.After(at) }):] {
		if a.ended.After(a.at) {
			count--
			last = a.ended
		}
	}
	return last, count <= 0
}

// facts are what the database knows in the end.
type facts struct {
	tasks    map[uuid.UUID]string // states
	absorbed map[uuid.UUID]bool   // requests that met another task, or themselves
	dead     map[uuid.UUID]bool   // requests that were refused
}

// facts reads what became of all requests.
func (s *Stage) facts(ctx context.Context) (f facts, err error) {
	f = facts{tasks: make(map[uuid.UUID]string), absorbed: make(map[uuid.UUID]bool), dead: make(map[uuid.UUID]bool)}
	rows, err := s.Pool.Query(ctx, `
		select 't', task_id, state::text from pawl.tasks
		union all select 'a', pawl.as_uuid(message->>'request_id'), '' from pawl.absorbed
			where queue = 'orchestration_task_requests' and message->>'request_id' is not null
		union all select 'd', pawl.as_uuid(message->>'request_id'), '' from pawl.dead_letters
			where queue = 'orchestration_task_requests' and message->>'request_id' is not null`)
	if err != nil {
		return f, fmt.Errorf("reading what became of the requests: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var what, state string
		var id *uuid.UUID
		if err := rows.Scan(&what, &id, &state); err != nil {
			return f, fmt.Errorf("reading what became of the requests: %w", err)
		}
		switch {
		case id == nil:
		case what == "t":
			f.tasks[*id] = state
		case what == "a":
			f.absorbed[*id] = true
		default:
			f.dead[*id] = true
		}
	}
	return f, rows.Err()
}

// compare says what of the history contradicts the database.
func (h *History) compare(f facts) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	wrong := slices.Clone(h.wrong)
	for id, a := range h.asked {
		state, there := f.tasks[id]
		switch {
		case a.Outcome == OK && !a.Invalid && !there && !f.absorbed[id]:
			wrong = append(wrong, fmt.Sprintf("request %s was accepted and is lost", id))
		case a.Outcome == OK && a.Invalid && !f.dead[id]:
			wrong = append(wrong, fmt.Sprintf("invalid request %s was not answered", id))
		case (a.Outcome == Failed || a.Invalid) && there:
			wrong = append(wrong, fmt.Sprintf("request %s was refused and has a task", id))
		case !there:
		case a.Cancelled && state != "cancelled":
			wrong = append(wrong, fmt.Sprintf("task %s was cancelled, and is %s", id, state))
		case state == "cancelled" && a.Cancel == "":
			wrong = append(wrong, fmt.Sprintf("task %s is cancelled, and nobody asked for it", id))
		case state == "error" && !a.Fail:
			wrong = append(wrong, fmt.Sprintf("task %s failed, and nobody told it to", id))
		case state == "complete" && a.Fail:
			wrong = append(wrong, fmt.Sprintf("task %s was told to fail, and is complete", id))
		case state != "complete" && state != "error" && state != "cancelled":
			wrong = append(wrong, fmt.Sprintf("task %s is %s", id, state))
		case a.state != "" && a.state != state:
			wrong = append(wrong, fmt.Sprintf("task %s was %s, and is %s", id, a.state, state))
		}
	}
	for id := range f.tasks {
		if h.asked[id] == nil {
			wrong = append(wrong, fmt.Sprintf("nobody asked for task %s", id))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// summary returns the calls by operation and outcome, and how many of the submits with an unknown outcome had arrived.
func (h *History) summary(f facts) (calls map[string]int, unknownArrived int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls = make(map[string]int, len(h.calls))
	for name, n := range h.calls {
		calls[name] = n
	}
	for id, a := range h.asked {
		if _, there := f.tasks[id]; a.Outcome == Unknown && (there || f.absorbed[id] || f.dead[id]) {
			unknownArrived++
		}
	}
	return calls, unknownArrived
}
