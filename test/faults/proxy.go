package faults

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"time"
)

// Config of Start.
type Config struct {
	// Target is the host:port of the server.
	Target string
	// Seed of what is left to chance: which connections are cut, how long each delay is.
	Seed uint64
	// Log takes what the proxy does to connections. Nil: none.
	Log *slog.Logger
}

// Proxy passes connections to one server. Its methods may be called from everywhere.
type Proxy struct {
	config   Config
	listener net.Listener
	ended    sync.WaitGroup

	mu sync.Mutex
	// These are guarded by mu.
	random        *rand.Rand
	sessions      []*session // open ones, the oldest first
	closed        bool
	hole          chan struct{} // nil: everything passes; closed when it does again
	delay, jitter time.Duration
	traps         []*Trap
	drop          int // notifications to drop

	tally  sync.Mutex // taken last, while others are held
	counts Counts     // guarded by tally
}

// Counts of what has happened.
type Counts struct {
	Connections          int // accepted
	Cut                  int
	NotificationsDropped int
	HeldBack             int // by a black hole or a delay
	// Unknown are commits whose outcome the client never heard. UnknownApplied of them took place, UnknownRefused did
	// not; of the rest the server did not tell either.
	Unknown, UnknownApplied, UnknownRefused int
}

// Effect says what a fault met.
type Effect struct {
	Connections int // it touched
	Busy        int // of them with a request under way or a transaction open
}

// Start starts a proxy on a free port of the loopback interface.
func Start(config Config) (*Proxy, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting a proxy to %s: %w", config.Target, err)
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	p := &Proxy{config: config, listener: listener, random: rand.New(rand.NewPCG(config.Seed, 1))}
	p.ended.Go(p.accept)
	return p, nil
}

// Target of a database's URL: its host and port.
func Target(databaseURL string) (string, error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return "", fmt.Errorf("reading the database's URL: %w", err)
	}
	return u.Host, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// URL leads through the proxy to the database that a URL names.
func (p *Proxy) URL(databaseURL string) (string, error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return "", fmt.Errorf("reading the database's URL: %w", err)
	}
	u.Host = p.Addr()
	query := u.Query()
	query.Set("sslmode", "disable") // the proxy reads along
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// Counts of what has happened so far.
func (p *Proxy) Counts() Counts {
	p.tally.Lock()
	defer p.tally.Unlock()
	return p.counts
}

func (p *Proxy) count(what func(*Counts)) {
	p.tally.Lock()
	defer p.tally.Unlock()
	what(&p.counts)
}

// Close cuts all connections and ends the proxy. It may be repeated, and waits.
func (p *Proxy) Close() error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	if p.hole != nil {
		close(p.hole)
		p.hole = nil
	}
	open := append([]*session(nil), p.sessions...)
	p.mu.Unlock()
	var err error
	if first {
		err = p.listener.Close()
	}
	for _, s := range open {
		s.end()
	}
	p.ended.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		s := newSession(p, client)
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			s.end()
			continue
		}
		p.count(func(c *Counts) { c.Connections++ })
		p.sessions = append(p.sessions, s)
		p.mu.Unlock()
		p.ended.Go(s.run)
	}
}

func (p *Proxy) forget(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.sessions {
		if p.sessions[i] == s {
			p.sessions = append(p.sessions[:i], p.sessions[i+1:]...)
			return
		}
	}
}

// pass waits while nothing passes, and for the delay if there is one. It is false when the session has ended meanwhile.
func (p *Proxy) pass(s *session, delayed bool) bool {
	for {
		p.mu.Lock()
		hole, wait := p.hole, time.Duration(0)
		if delayed && p.delay > 0 {
			wait = p.delay + time.Duration(p.random.Int64N(int64(p.jitter)+1))
		}
		p.mu.Unlock()
		if hole != nil || wait > 0 {
			p.count(func(c *Counts) { c.HeldBack++ })
		}
		if hole == nil {
			if wait > 0 {
				select {
				case <-time.After(wait):
				case <-s.over:
					return false
				}
			}
			return true
		}
		select {
		case <-hole:
		case <-s.over:
			return false
		}
	}
}
