package faults

import (
	"regexp"
	"slices"
	"sync"
	"time"
)

// Cut ends connections with a reset, at most count of them (0: all), chosen by the seed, those at work first.
func (p *Proxy) Cut(count int) Effect {
	p.mu.Lock()
	var busy, idle []*session
	for _, i := range p.random.Perm(len(p.sessions)) {
		switch s := p.sessions[i]; {
		case s.isGone():
		case s.busy():
			busy = append(busy, s)
		default:
			idle = append(idle, s)
		}
	}
	chosen := append(busy, idle...)
	if count > 0 && count < len(chosen) {
		chosen = chosen[:count]
	}
	p.count(func(c *Counts) { c.Cut += len(chosen) })
	p.mu.Unlock()
	effect := Effect{Connections: len(chosen), Busy: min(len(busy), len(chosen))}
	for _, s := range chosen {
		s.cut()
	}
	return effect
}

// BlackHole keeps everything back in both directions, new connections too, until Open, Heal or Close.
func (p *Proxy) BlackHole() Effect {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hole == nil && !p.closed {
		p.hole = make(chan struct{})
	}
	return p.met()
}

// Open ends BlackHole: what was kept back goes through.
func (p *Proxy) Open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hole != nil {
		close(p.hole)
		p.hole = nil
	}
}

// Look says which connections there are, without touching them.
func (p *Proxy) Look() Effect {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.met()
}

// Delay keeps every reply back for a time, and up to jitter longer. Zeroes end it.
func (p *Proxy) Delay(by, jitter time.Duration) Effect {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay, p.jitter = by, jitter
	return p.met()
}

// Heal ends black hole and delay, and forgets traps and notifications to drop. What was cut stays cut.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hole != nil {
		close(p.hole)
	}
	p.hole, p.delay, p.jitter, p.traps, p.drop = nil, 0, 0, nil, 0
}

// DropNotifications drops the next notifications that the server sends to anybody.
func (p *Proxy) DropNotifications(count int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop += count
}

// HalfOpen leaves the connections that have sent LISTEN half open: they stay, and nothing comes through any more.
func (p *Proxy) HalfOpen() Effect {
	p.mu.Lock()
	defer p.mu.Unlock()
	var effect Effect
	for _, s := range p.sessions {
		if s.deafen() {
			effect.Connections++
		}
	}
	return effect
}

// met counts the open connections; the caller holds mu.
func (p *Proxy) met() Effect {
	var effect Effect
	for _, s := range p.sessions {
		if s.isGone() {
			continue
		}
		effect.Connections++
		if s.busy() {
			effect.Busy++
		}
	}
	return effect
}

// Trap waits for one request and breaks it.
type Trap struct {
	// Match chooses requests by their SQL. Nil: all that run something.
	Match *regexp.Regexp
	// Commits chooses only requests that commit something when they succeed.
	Commits bool
	// After chooses only requests of a transaction in which such SQL was run, by this request or before it. Nil: any.
	After *regexp.Regexp
	// Request loses the request itself, before the server has it. Otherwise the server works it, and its reply is lost.
	Request bool
	// Early cuts the connection as soon as the server has the request, and does not wait for the reply.
	Early bool
	// Hang leaves the connection open and silent. Otherwise it is cut.
	Hang bool

	once sync.Once
	hit  chan struct{}
}

// Set waits for a request as the trap says. The channel is closed when it was lost, or answered to nobody.
func (p *Proxy) Set(trap *Trap) <-chan struct{} {
	trap.hit = make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = append(p.traps, trap)
	return trap.hit
}

// Remove forgets a trap that nothing fell into.
func (p *Proxy) Remove(trap *Trap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = slices.DeleteFunc(p.traps, func(t *Trap) bool { return t == trap })
}

func (t *Trap) spring() { t.once.Do(func() { close(t.hit) }) }

// trapped takes the trap that a request falls into.
func (p *Proxy) trapped(r *request) *Trap {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, trap := range p.traps {
		if !r.executes || trap.Commits && !r.commits || trap.Match != nil && !trap.Match.MatchString(r.sql) ||
			trap.After != nil && !trap.After.MatchString(r.transaction) {
			continue
		}
		p.traps = append(p.traps[:i:i], p.traps[i+1:]...)
		return trap
	}
	return nil
}

// unknown counts a commit whose outcome the client never heard.
func (p *Proxy) unknown(applied, refused bool) {
	p.count(func(c *Counts) {
		c.Unknown++
		switch {
		case applied:
			c.UnknownApplied++
		case refused:
			c.UnknownRefused++
		}
	})
}

// dropNotification says whether a notification is one to drop.
func (p *Proxy) dropNotification() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drop == 0 {
		return false
	}
	p.drop--
	p.count(func(c *Counts) { c.NotificationsDropped++ })
	return true
}
