package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-dev/pawl/test/faults"
)

// trapTimeout is how long a trap waits for its request.
const trapTimeout = 3 * time.Second

type action = func(context.Context, Event) (injected, effective bool)

// cut cuts connections of a member, when one is at work or nothing happens there.
func (f *Fire) cut(count int) action {
	return func(ctx context.Context, e Event) (bool, bool) {
		m := f.target(e)
		if m == nil {
			return false, false
		}
		for try := 0; try < 20*tries && m.Proxy.Look().Busy == 0 && ctx.Err() == nil; try++ {
			wait(ctx, 1)
		}
		effect := m.Proxy.Cut(count)
		return effect.Connections > 0, effect.Busy > 0
	}
}

// cutAtWork cuts a connection when the server has a request of it and has not answered; any connection when none comes.
func (f *Fire) cutAtWork(ctx context.Context, e Event) (bool, bool) {
	injected, effective := f.trap(func() *faults.Trap { return &faults.Trap{Early: true} })(ctx, e)
	if injected {
		return injected, effective
	}
	return f.cut(1)(ctx, e)
}

// trap waits for a request of a member and breaks it.
func (f *Fire) trap(make func() *faults.Trap) action {
	return func(ctx context.Context, e Event) (bool, bool) {
		m := f.target(e)
		if m == nil {
			return false, false
		}
		trap := make()
		hit := m.Proxy.Set(trap)
		select {
		case <-hit:
			return true, true
		case <-time.After(trapTimeout):
		case <-ctx.Done():
		}
		m.Proxy.Remove(trap)
		return false, false
	}
}

// window breaks a member's proxy for some time. It is effective when something was kept back.
func (f *Fire) window(begin, end func(*faults.Proxy)) action {
	return func(ctx context.Context, e Event) (bool, bool) {
		m := f.target(e)
		if m == nil {
			return false, false
		}
		before := m.Proxy.Counts().HeldBack
		begin(m.Proxy)
		wait(ctx, e.For)
		end(m.Proxy)
		return true, m.Proxy.Counts().HeldBack > before
	}
}

// dropNotifications is effective when notifications were dropped.
func (f *Fire) dropNotifications(ctx context.Context, e Event) (bool, bool) {
	m := f.target(e)
	if m == nil {
		return false, false
	}
	before := m.Proxy.Counts().NotificationsDropped
	m.Proxy.DropNotifications(1 + int(e.Dice%5))
	wait(ctx, 2000)
	dropped := m.Proxy.Counts().NotificationsDropped > before
	return dropped, dropped
}

// halfOpen is effective when somebody listened.
func (f *Fire) halfOpen(_ context.Context, e Event) (bool, bool) {
	m := f.target(e)
	if m == nil {
		return false, false
	}
	effect := m.Proxy.HalfOpen()
	return effect.Connections > 0, effect.Connections > 0
}

// process does something to a process, alone, and lets it run afterwards.
func (f *Fire) process(do func(m *Member, ctx context.Context, e Event) bool) action {
	return func(ctx context.Context, e Event) (bool, bool) {
		m := f.target(e)
		if m == nil || m.Process == nil || !f.reserve(m) {
			return false, false
		}
		defer f.release(m)
		effective := f.atWork(ctx, m)
		injected := do(m, ctx, e)
		m.Resume()
		f.fail(m.Start())
		return injected, injected && effective
	}
}

func freeze(m *Member, ctx context.Context, e Event) bool {
	frozen := m.Suspend()
	wait(ctx, e.For)
	return frozen
}

func (f *Fire) reserve(m *Member) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	free := !f.busy[m]
	f.busy[m] = true
	return free
}

func (f *Fire) release(m *Member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.busy, m)
}

// atWork says whether a process has a request, a handler, or a message in hand.
func (f *Fire) atWork(ctx context.Context, m *Member) bool {
	for range 20 * tries {
		if m.Proxy.Look().Busy > 0 {
			return true
		}
		wait(ctx, 1)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var n int
	err := f.stage.Pool.QueryRow(ctx, `
		select count(*) from pgmq.q_fire_queue q join pawl.steps s on s.task_id = pawl.as_uuid(q.message->>'task_id') and s.step = q.message->>'step'
		where q.vt > clock_timestamp() and q.read_ct > 0 and s.state = 'in_progress' and s.worker like $1 || '-%'`, m.Name).Scan(&n)
	return err == nil && n > 0
}

// statement is a fault that SQL makes; it is effective when it struck anything.
func (f *Fire) statement(do func(context.Context, Event) (int, error)) action {
	return func(ctx context.Context, e Event) (bool, bool) {
		times, err := do(ctx, e)
		var pgErr *pgconn.PgError
		if errors.As(err, &pgErr) && pgErr.Code[:2] == "42" {
			f.fail(fmt.Errorf("%s: %w", e.Fault, err)) // our own mistake
		}
		if err != nil {
			f.stage.Config.Log.Debug("making a fault", "fault", e.Fault, "error", err) // the server may be away
			return false, false
		}
		return true, times > 0
	}
}

func (f *Fire) killBouncer(_ context.Context, _ Event) (bool, bool) {
	if f.stage.Bouncer == nil {
		return false, false
	}
	killed := f.stage.Bouncer.Kill()
	f.fail(f.stage.Bouncer.Start())
	return killed, killed
}

// breakServer breaks Postgres, when it is whole again.
func (f *Fire) breakServer(ctx context.Context, e Event) (bool, bool) {
	if f.server == nil {
		return false, false
	}
	f.down.Lock()
	defer f.down.Unlock()
	busy := false
	for try := 0; try < 20*tries && !busy && ctx.Err() == nil; try++ {
		for _, m := range f.stage.Members {
			busy = busy || m.Proxy.Look().Busy > 0
		}
		wait(ctx, 1)
	}
	err := f.server.Break(ctx, e.Fault)
	f.fail(err)
	return err == nil, busy
}

// jumpClock moves the server's clock by the event's length for good. It is effective when a message was in flight: read, with
// its lease not ended. Forward, the jump ends that lease; back, it lengthens it, and hides what was waiting.
func (f *Fire) jumpClock(unit time.Duration) action {
	return func(ctx context.Context, e Event) (bool, bool) {
		clock := f.stage.Config.Clock
		if clock == nil {
			return false, false
		}
		looking, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		flying := false
		for try := 0; try < tries && !flying && looking.Err() == nil; try++ {
			err := f.stage.Pool.QueryRow(looking, "select exists (select from pgmq.q_fire_queue where read_ct > 0 and vt > clock_timestamp())").Scan(&flying)
			if err != nil || !flying {
				wait(looking, 20) // the server may be away
			}
		}
		err := clock.Jump(time.Duration(e.For) * unit)
		f.fail(err)
		f.noteClock(clock)
		return err == nil, flying
	}
}

// noteClock notes until when the clock tells times again.
func (f *Fire) noteClock(clock *faults.Clock) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	until := now.Add(clock.Behind())
	if last := len(f.again) - 1; last >= 0 && f.again[last].until.After(now) {
		f.again[last].until = until
		return
	}
	f.again = append(f.again, span{now, until})
}

// delayed says whether the server's clock told times again while something recovered: what was under way may have waited for
// that, whatever struck it.
func (f *Fire) delayed(s Strike) bool {
	for _, a := range f.again {
		if s.at.Before(a.until) && s.at.Add(s.Recovered).After(a.from) {
			return true
		}
	}
	return false
}
