package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"
)

// Fault is a kind of fault.
type Fault string

// Faults of a plan.
const (
	CutOne             Fault = "cut one connection"
	CutAll             Fault = "cut all connections"
	SwallowCommit      Fault = "swallow the reply of a commit"
	LoseCommit         Fault = "lose a commit"
	SwallowReply       Fault = "swallow a reply"
	HangReply          Fault = "keep a reply for ever"
	BlackHole          Fault = "black hole"
	Latency            Fault = "latency"
	DropNotifications  Fault = "drop notifications"
	HalfOpenListener   Fault = "half-open listener"
	TerminateBackend   Fault = "pg_terminate_backend"
	KillWorker         Fault = "kill -9 a worker"
	KillOrchestrator   Fault = "kill -9 an orchestrator"
	FreezeWorker       Fault = "suspend a worker"
	FreezeOrchestrator Fault = "suspend an orchestrator"
	RepeatDelivery     Fault = "deliver messages again"
	CopyMessage        Fault = "copy a step message"
	RepeatResult       Fault = "repeat a result"
	RepeatEngine       Fault = "repeat finalizations and enqueues"
	Garbage            Fault = "garbage"
	LockRows           Fault = "lock tasks"
	KillBouncer        Fault = "kill -9 PgBouncer"
	StopServer         Fault = "stop Postgres at once"
	KillServer         Fault = "kill -9 Postgres"
	KillBackend        Fault = "kill -9 a backend"
	ClockForward       Fault = "clock of Postgres forward"
	ClockBack          Fault = "clock of Postgres back"
	ClockFarBack       Fault = "clock of Postgres far back"
)

// kind says how often a fault strikes beside others, whom, and for how long.
type kind struct {
	fault    Fault
	weight   int
	target   string // kind of member; any: of all; empty: none
	from, to int    // milliseconds that it lasts, or by which a clock jumps
}

const anyMember = "any"

var kinds = []kind{
	{CutOne, 200, anyMember, 0, 0}, {CutAll, 40, anyMember, 0, 0}, {SwallowCommit, 140, anyMember, 0, 0}, {LoseCommit, 100, anyMember, 0, 0},
	{SwallowReply, 60, anyMember, 0, 0}, {HangReply, 4, Worker, 0, 0}, {BlackHole, 10, anyMember, 300, 5000}, {Latency, 20, anyMember, 500, 4000},
	{DropNotifications, 30, Worker, 0, 0}, {HalfOpenListener, 10, Orchestrator, 0, 0}, {TerminateBackend, 100, "", 0, 0},
	{KillWorker, 20, Worker, 0, 2000}, {KillOrchestrator, 20, Orchestrator, 0, 2000},
	{FreezeWorker, 12, Worker, 3500, 6000}, {FreezeOrchestrator, 8, Orchestrator, 3000, 7000},
	{RepeatDelivery, 70, "", 0, 0}, {CopyMessage, 15, "", 0, 0}, {RepeatResult, 30, "", 0, 0}, {RepeatEngine, 20, "", 0, 0},
	{Garbage, 40, "", 0, 0}, {LockRows, 15, "", 100, 1500},
	{KillBouncer, 4, bouncerTarget, 0, 0}, {StopServer, 3, serverTarget, 0, 0}, {KillServer, 2, serverTarget, 0, 0}, {KillBackend, 2, serverTarget, 0, 0},
	{ClockForward, 4, clockTarget, 5_000, 180_000}, {ClockBack, 3, clockTarget, 500, 10_000}, {ClockFarBack, 1, clockTarget, 10_000, 60_000},
}

// Targets that a plan may do without.
const (
	bouncerTarget = "pgbouncer"
	serverTarget  = "server"
	clockTarget   = "clock"
)

// Event is one fault at its time.
type Event struct {
	At     int    `json:"at_ms"`
	Fault  Fault  `json:"fault"`
	Target string `json:"target,omitempty"` // kind of member
	Index  int    `json:"index"`            // of the target
	For    int    `json:"for_ms,omitempty"`
	Dice   uint64 `json:"dice"` // what is left to chance
}

// Plan says which faults strike, and whom. Its JSON is a line for its head and one for each event.
type Plan struct {
	Seed          uint64  `json:"seed"`
	DurationMS    int     `json:"duration_ms"`
	Rate          float64 `json:"rate"` // of events, a second
	Orchestrators int     `json:"orchestrators"`
	Workers       int     `json:"workers"`
	Clients       int     `json:"clients"`
	Bouncer       bool    `json:"pgbouncer"` // before the last Go worker
	Server        bool    `json:"server"`    // Postgres itself is stopped and killed
	Clock         bool    `json:"clock"`     // its clock jumps
	Events        []Event `json:"-"`
}

// Draw fills a plan with events, by its seed alone. Every kind strikes at least once.
func (p *Plan) Draw() {
	random := rand.New(rand.NewPCG(p.Seed, 7))
	var possible []kind
	total := 0
	for _, k := range kinds {
		if k.target == bouncerTarget && !p.Bouncer || k.target == serverTarget && !p.Server || k.target == clockTarget && !p.Clock {
			continue
		}
		possible = append(possible, k)
		total += k.weight
	}
	draw := func(k kind) Event {
		e := Event{At: random.IntN(max(p.DurationMS, 1)), Fault: k.fault, Target: k.target, Dice: random.Uint64()}
		if e.Target == anyMember {
			n := random.IntN(p.Orchestrators + p.Workers + p.Clients)
			e.Target, e.Index = p.member(n)
		} else {
			e.Index = random.IntN(max(1, map[string]int{Orchestrator: p.Orchestrators, Worker: p.Workers}[e.Target]))
		}
		if k.to > k.from {
			e.For = k.from + random.IntN(k.to-k.from)
		}
		return e
	}
	p.Events = nil
	for _, k := range possible {
		p.Events = append(p.Events, draw(k))
	}
	for range int(p.Rate*float64(p.DurationMS)/1000) - len(possible) {
		n := random.IntN(total)
		for _, k := range possible {
			if n -= k.weight; n < 0 {
				p.Events = append(p.Events, draw(k))
				break
			}
		}
	}
	slices.SortStableFunc(p.Events, func(a, b Event) int { return a.At - b.At })
}

func (p *Plan) member(n int) (target string, index int) {
	switch {
	case n < p.Orchestrators:
		return Orchestrator, n
	case n < p.Orchestrators+p.Workers:
		return Worker, n - p.Orchestrators
	}
	return Client, n - p.Orchestrators - p.Workers
}

// Duration of the fire.
func (p *Plan) Duration() time.Duration { return time.Duration(p.DurationMS) * time.Millisecond }

// Write writes a plan.
func (p *Plan) Write(w io.Writer) error {
	encoder := json.NewEncoder(w)
	if err := encoder.Encode(p); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	for _, e := range p.Events {
		if err := encoder.Encode(e); err != nil {
			return fmt.Errorf("writing the plan: %w", err)
		}
	}
	return nil
}

// ReadPlans reads what Write wrote, one plan or several after one another.
func ReadPlans(r io.Reader) ([]*Plan, error) {
	decoder := json.NewDecoder(bufio.NewReader(r))
	var plans []*Plan
	for {
		var line struct {
			Plan
			Event
		}
		err := decoder.Decode(&line)
		switch {
		case errors.Is(err, io.EOF) && len(plans) > 0:
			return plans, nil
		case err != nil:
			return nil, fmt.Errorf("reading the plan: %w", err)
		case line.Fault == "":
			plans = append(plans, &line.Plan)
		case len(plans) == 0:
			return nil, errors.New("reading the plan: it begins with an event instead of its head")
		default:
			last := plans[len(plans)-1]
			last.Events = append(last.Events, line.Event)
		}
	}
}
