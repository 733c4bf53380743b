package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/messaging/pgmq"
)

// finished is the channel on which the database announces that tasks have ended.
const finished = "pawl_finished"

const (
	// minGap is the least time between two looks, however many wake-ups there are.
	minGap = 2 * time.Millisecond
	// slowLook is the time between looks when nothing happens; provenLook while announcements are proven to arrive and
	// every waiter's request is decided (decisions are not announced).
	slowLook   = time.Second
	provenLook = 5 * time.Second
)

// lookAgain is when to look after something happened: an announcement soon after another one is suppressed.
var lookAgain = []time.Duration{5 * time.Millisecond, 10 * time.Millisecond, 40 * time.Millisecond, 160 * time.Millisecond, 640 * time.Millisecond}

// waiter is one caller who waits.
type waiter struct {
	request uuid.UUID // as the caller knows it
	message int64     // the request's message, when the request's id alone does not say which it was; else 0
	soon    bool      // the decision is the answer, whose task is then empty
	fresh   bool      // the request has just been sent: there is nothing to see yet
	answer  chan answer

	// These belong to the hub's goroutine until it answers.
	task     uuid.UUID // whose end is waited for: the request's, or the one that it met
	decided  bool
	attached bool // the task is not the request's own, or was there before
}

type answer struct {
	task Task
	err  error
}

// hub looks for the ends of tasks, for all waiters at once. Its goroutine lives while there are any.
type hub struct {
	client   *Client
	log      *slog.Logger
	listener *pgmq.Listener // nil without one
	woken    <-chan struct{}
	joined   chan struct{} // room for one: there is a new waiter
	life     context.Context
	end      context.CancelFunc
	running  sync.WaitGroup
	failing  bool // the last look failed; the goroutine's

	mu sync.Mutex
	// These are guarded by mu.
	waiters map[*waiter]struct{}
	looking bool // the goroutine runs
	heard   bool // the listener was started
	closed  bool
}

func newHub(c *Client, log *slog.Logger) *hub {
	h := &hub{client: c, log: log, joined: make(chan struct{}, 1), waiters: make(map[*waiter]struct{})}
	h.life, h.end = context.WithCancel(context.Background())
	return h
}

func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	for w := range h.waiters {
		w.answer <- answer{err: ErrClosed}
	}
	clear(h.waiters)
	h.mu.Unlock()
	h.end()
	h.running.Wait()
	if h.listener != nil {
		h.listener.Stop()
	}
}

func (h *hub) wait(ctx context.Context, w *waiter) (Task, error) {
	w.answer = make(chan answer, 1)
	if err := h.join(w); err != nil {
		return Task{}, err
	}
	select {
	case a := <-w.answer:
		return a.task, a.err
	case <-ctx.Done():
		h.mu.Lock()
		delete(h.waiters, w)
		h.mu.Unlock()
		return Task{}, ended(ctx)
	}
}

// ended is how a context ended and, if somebody said so, why.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func (h *hub) join(w *waiter) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	if h.listener != nil && !h.heard {
		h.heard = true
		h.woken, _ = h.listener.Subscribe(finished)
		if err := h.listener.Start(h.life); err != nil {
			return err
		}
	}
	h.waiters[w] = struct{}{}
	if !h.looking {
		h.looking = true
		h.running.Add(1)
		go h.run(w.fresh)
		return nil
	}
	select {
	case h.joined <- struct{}{}:
	default:
	}
	return nil
}

// run looks at once, or when something happens, if the first waiter's request has just been sent.
func (h *hub) run(patient bool) {
	defer h.running.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	step := 0
	for {
		last := time.Now()
		waiting := h.current()
		if waiting == nil {
			return
		}
		undecided := patient || h.look(waiting)
		patient = false
		pause := slowLook
		switch {
		case step < len(lookAgain):
			pause = lookAgain[step]
			step++
		case !undecided && h.listener != nil && h.listener.Proven():
			pause = provenLook
		}
		timer.Reset(pause)
		select {
		case <-timer.C:
			continue
		case <-h.joined:
		case <-h.woken:
		case <-h.life.Done():
			return
		}
		step = 0
		timer.Reset(minGap - time.Since(last)) // negative: at once
		select {
		case <-timer.C:
		case <-h.life.Done():
			return
		}
	}
}

// current returns the waiters, or nil when there are none: the goroutine ends then.
func (h *hub) current() []*waiter {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiters) == 0 {
		h.looking = false
		return nil
	}
	waiting := make([]*waiter, 0, len(h.waiters))
	for w := range h.waiters {
		waiting = append(waiting, w)
	}
	return waiting
}

// look decides for the waiters what can be decided. A database that does not answer is asked again later.
func (h *hub) look(waiting []*waiter) (undecided bool) {
	ctx, cancel := context.WithTimeout(h.life, 30*time.Second)
	defer cancel()
	var open []*waiter
	for _, w := range waiting {
		if !w.decided {
			open = append(open, w)
		}
	}
	if len(open) > 0 {
		if err := h.decide(ctx, open); err != nil {
			h.failed(open, err)
			return true
		}
	}
	byTask := make(map[uuid.UUID][]*waiter)
	for _, w := range waiting {
		if w.decided {
			byTask[w.task] = append(byTask[w.task], w)
		} else {
			undecided = true
		}
	}
	if len(byTask) > 0 {
		if err := h.collect(ctx, byTask); err != nil {
			h.failed(waiting, err)
			return undecided
		}
	}
	h.client.met.Store(true)
	if h.failing {
		h.failing = false
		h.log.Info("waiting for tasks: the database answers again")
	}
	return undecided
}

// failed notes that looking failed. It is tried again, unless that will never work: that ends the waiting.
func (h *hub) failed(waiting []*waiter, err error) {
	if hopeless(err) {
		for _, w := range waiting {
			h.tell(w, answer{err: err})
		}
		return
	}
	if !h.failing && h.life.Err() == nil {
		h.failing = true
		h.log.Warn("waiting for tasks: the database cannot be asked, trying again", "error", err)
	}
}

// collect answers those whose task has ended, or is gone: its retention was over before anybody looked.
func (h *hub) collect(ctx context.Context, byTask map[uuid.UUID][]*waiter) error {
	ids := make([]string, 0, len(byTask))
	for id := range byTask {
		ids = append(ids, id.String())
	}
	read := func(row pgx.CollectableRow) (task Task, err error) {
		if row.RawValues()[1] != nil {
			return collectTask(row)
		}
		only := make([]any, len(row.RawValues())) // nil passes the others over
		only[0] = &task.ID
		return task, row.Scan(only...)
	}
	tasks, err := list(ctx, h.client, read, `select `+taskColumns+` from unnest($1::text[]::uuid[]) w(task_id)
		left join pawl.tasks t using (task_id) where t.task_id is null or t.finalized_at is not null`, ids)
	if err != nil {
		return err
	}
	for _, task := range tasks {
		for _, w := range byTask[task.ID] {
			switch {
			case task.Final():
				h.tell(w, answer{task: task})
			case w.attached:
				h.tell(w, answer{err: ErrResultExpired})
			default:
				h.tell(w, answer{err: ErrNotFound})
			}
		}
	}
	return nil
}

func (h *hub) tell(w *waiter, a answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, waits := h.waiters[w]; waits {
		delete(h.waiters, w)
		w.answer <- a
	}
}
