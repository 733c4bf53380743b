package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/pawl-dev/pawl/test/faults"
)

// Server is a Postgres that may be broken.
type Server interface {
	// Break stops it at once, kills it, or kills one of its backends, and returns when it answers again.
	Break(ctx context.Context, how Fault) error
}

// Strike is an event that took place.
type Strike struct {
	Event
	Injected  bool          // it was possible
	Effective bool          // it hit an open transaction, a request or a handler at work, or a message in flight
	Service   time.Duration // until a request that was sent after it had ended
	Recovered time.Duration // until every request under way when it struck had ended

	at   time.Time
	open []uuid.UUID // requests under way when it struck
	seen bool        // its recovery is noted
}

// Fire is a plan at work.
type Fire struct {
	Strikes []Strike

	stage   *Stage
	history *History
	server  Server // nil: it is spared

	down   sync.Mutex // held while the server is broken
	mu     sync.Mutex
	copied map[StepName]bool // guarded by mu
	busy   map[*Member]bool  // guarded by mu: a process whose fault lasts
	failed []error           // guarded by mu
	again  []span            // in which the server's clock told times that it had told before; guarded by mu
	doing  map[Fault]func(context.Context, Event) (injected, effective bool)
}

// span of time.
type span struct{ from, until time.Time }

// NewFire is a fire that has not begun. Several plans may follow one another in it.
func (s *Stage) NewFire(history *History, server Server) *Fire {
	f := &Fire{stage: s, history: history, server: server, copied: make(map[StepName]bool), busy: make(map[*Member]bool)}
	f.doing = f.actions()
	return f
}

// Copied are the steps that were sent a second message.
func (f *Fire) Copied() map[StepName]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.copied
}

// Run strikes as the plan says, and returns when every fault is over: the proxies are healed and all processes run. The
// error says that the harness itself failed.
func (f *Fire) Run(ctx context.Context, plan *Plan) error {
	began := time.Now()
	var struck, kept sync.WaitGroup
	keeping, stop := context.WithCancel(ctx)
	defer stop()
	kept.Go(func() { f.keep(keeping) })
	var mu sync.Mutex
	for _, e := range plan.Events {
		wait(ctx, int(time.Until(began.Add(time.Duration(e.At)*time.Millisecond)).Milliseconds()))
		if ctx.Err() != nil {
			break
		}
		struck.Go(func() {
			s := Strike{Event: e, at: time.Now(), open: f.history.open()}
			s.Injected, s.Effective = f.doing[e.Fault](ctx, e)
			mu.Lock()
			defer mu.Unlock()
			f.Strikes = append(f.Strikes, s)
		})
	}
	wait(ctx, int(time.Until(began.Add(plan.Duration())).Milliseconds()))
	struck.Wait()
	stop()
	kept.Wait()
	f.fail(f.stage.Heal())
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.failed) > 0 {
		return fmt.Errorf("making faults: %w", f.failed[0])
	}
	return ctx.Err()
}

// keep starts processes again that have ended by themselves, as any supervisor does: one that meets a fault while it starts
// gives up.
func (f *Fire) keep(ctx context.Context) {
	for ctx.Err() == nil {
		wait(ctx, 300)
		for _, m := range f.stage.Members {
			if m.Process != nil && !m.Running() && f.reserve(m) {
				f.fail(m.Start())
				f.release(m)
			}
		}
	}
}

// Recover notes, when the load has settled, how long each strike's recovery took.
func (f *Fire) Recover() {
	for i := range f.Strikes {
		s := &f.Strikes[i]
		if s.seen {
			continue
		}
		if last, all := f.history.recovered(s.open); all {
			s.Recovered = max(last.Sub(s.at), 0)
		}
		if next, any := f.history.firstAfter(s.at); any {
			s.Service = next.Sub(s.at)
		}
		s.open, s.seen = nil, true
	}
}

func (f *Fire) fail(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = append(f.failed, err)
}

// target is the member that an event strikes; nil when there is none.
func (f *Fire) target(e Event) *Member {
	members := f.stage.Of(e.Target)
	if len(members) == 0 {
		return nil
	}
	return members[e.Index%len(members)]
}

// actions are what each fault does.
func (f *Fire) actions() map[Fault]func(context.Context, Event) (bool, bool) {
	actions := map[Fault]func(context.Context, Event) (bool, bool){
		CutOne:            f.cutAtWork,
		CutAll:            f.cut(0),
		SwallowCommit:     f.trap(func() *faults.Trap { return &faults.Trap{Commits: true} }),
		LoseCommit:        f.trap(func() *faults.Trap { return &faults.Trap{Commits: true, Request: true} }),
		SwallowReply:      f.trap(func() *faults.Trap { return &faults.Trap{} }),
		HangReply:         f.trap(func() *faults.Trap { return &faults.Trap{Hang: true} }),
		BlackHole:         f.window(func(p *faults.Proxy) { p.BlackHole() }, (*faults.Proxy).Open),
		Latency:           f.window(func(p *faults.Proxy) { p.Delay(20*time.Millisecond, 150*time.Millisecond) }, func(p *faults.Proxy) { p.Delay(0, 0) }),
		DropNotifications: f.dropNotifications,
		HalfOpenListener:  f.halfOpen,
		KillWorker: f.process(func(m *Member, ctx context.Context, e Event) bool {
			killed := m.Kill()
			wait(ctx, e.For)
			return killed
		}),
		FreezeWorker: f.process(freeze),
		CopyMessage:  f.statement(f.copyMessage),
		LockRows:     f.statement(f.lockRows),
		KillBouncer:  f.killBouncer,
		ClockForward: f.jumpClock(time.Millisecond),
		ClockBack:    f.jumpClock(-time.Millisecond),
	}
	actions[KillOrchestrator], actions[FreezeOrchestrator] = actions[KillWorker], actions[FreezeWorker]
	actions[ClockFarBack] = actions[ClockBack]
	for fault := range disturbances {
		actions[fault] = f.statement(f.disturb)
	}
	for _, fault := range []Fault{StopServer, KillServer, KillBackend} {
		actions[fault] = f.breakServer
	}
	return actions
}
