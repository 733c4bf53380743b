package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/pawl-dev/pawl/client"
)

// LoadConfig of StartLoad. The zero value is the default.
type LoadConfig struct {
	Seed uint64
	// Rate is how many requests a second all clients send together. Default 20.
	Rate float64
	// Open is how many tasks may be open; beyond it the clients wait. Default 200.
	Open int
	// Limit ends the load after so many requests. Default: none.
	Limit int
	// History goes on from an earlier load. Default: an empty one.
	History *History
}

// Load is clients that send requests, each through the proxy of its member, and note every call.
type Load struct {
	History *History

	stage  *Stage
	config LoadConfig
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu     sync.Mutex
	sent   int       // guarded by mu
	looked time.Time // when look last saw what had ended; guarded by mu
}

// callTimeout of a client's call. What takes longer is unknown.
const callTimeout = 10 * time.Second

// StartLoad starts a client for each member of that kind. It runs until Stop.
func (s *Stage) StartLoad(config LoadConfig) (*Load, error) {
	if config.Rate == 0 {
		config.Rate = 20
	}
	if config.Open == 0 {
		config.Open = 200
	}
	if config.History == nil {
		config.History = NewHistory()
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Load{History: config.History, stage: s, config: config, cancel: cancel}
	members := s.Of(Client)
	for i, m := range members {
		c, err := client.New(client.Config{DatabaseURL: m.URL, NoListen: true, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			cancel()
			return nil, fmt.Errorf("starting the load: %w", err)
		}
		random := rand.New(rand.NewPCG(config.Seed, uint64(i)+100))
		l.ended.Go(func() {
			defer c.Close()
			l.run(ctx, c, random, time.Duration(float64(len(members))/config.Rate*float64(time.Second)))
		})
	}
	l.ended.Go(func() { l.watch(ctx) })
	return l, nil
}

// Sent is how many requests were made so far.
func (l *Load) Sent() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

// Stop ends the sending and waits for the calls under way.
func (l *Load) Stop() {
	l.cancel()
	l.ended.Wait()
}

func (l *Load) run(ctx context.Context, c *client.Client, random *rand.Rand, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var recent []*Asked
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if len(l.History.open()) >= l.config.Open {
			continue
		}
		l.mu.Lock()
		over := l.config.Limit > 0 && l.sent >= l.config.Limit
		if !over {
			l.sent++
		}
		l.mu.Unlock()
		if over {
			return
		}
		recent = append(recent, l.submit(c, random))
		if len(recent) > 20 {
			recent = recent[1:]
		}
		switch a := recent[random.IntN(len(recent))]; random.IntN(10) {
		case 0:
			l.cancelTask(c, a)
		case 1, 2, 3:
			l.get(c, a)
		}
	}
}

// submit sends one request, as the dice fall: with a key that others have too, twice, to fail, or one to be refused.
func (l *Load) submit(c *client.Client, random *rand.Rand) *Asked {
	input := map[string]any{"ms": 1 + random.IntN(40)}
	request := client.Request{ID: uuid.Must(uuid.NewV7()), Template: Diamond, Input: input}
	switch random.IntN(24) {
	case 0, 1, 2:
		request.Template = Fan
	case 3:
		request.Template, input["ms"] = Long, 2500
	}
	asked := Asked{ID: request.ID}
	dice, again := random.IntN(100), false
	switch {
	case dice < 10:
		asked.Key = l.History.key(random.IntN(2) == 0)
		request.Key, request.Template, request.Input = asked.Key, Diamond, map[string]any{"ms": 5}
	case dice < 20:
		again = true
	case dice < 30:
		input["fail"], input["ms"] = 1+random.IntN(2), 5
	case dice < 33:
		asked.Fail, input["fail"], input["permanent"], input["ms"] = true, 1, true, 5
	case dice < 35:
		asked.Invalid, request.Template = true, "fire/no_such_template"
	}
	a := l.History.ask(asked)
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	_, err := c.Submit(ctx, request)
	if again {
		if _, second := c.Submit(ctx, request); err != nil {
			err = second // one is enough
		}
	}
	o := outcome(err)
	l.History.note("submit", o)
	l.History.change(a, func() { a.Outcome = o })
	return a
}

func (l *Load) cancelTask(c *client.Client, a *Asked) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	l.History.change(a, func() {
		if a.Cancel == "" {
			a.Cancel = Unknown // from now on it may be
		}
	})
	said, err := c.Cancel(ctx, a.ID, client.By{Actor: "load", Reason: "as the dice fell"})
	o := outcome(err)
	operation := "cancel"
	var refused *client.CommandError
	if o == OK && said.Outcome == "unchanged" || errors.As(err, &refused) && refused.Code == "PW021" {
		operation = "cancel too late"
	}
	l.History.note(operation, o)
	l.History.change(a, func() { a.Cancelled = a.Cancelled || o == OK && said.Outcome == "cancelled" })
}

func (l *Load) get(c *client.Client, a *Asked) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	task, err := c.Get(ctx, a.ID)
	l.History.note("read", outcome(err))
	if err == nil {
		l.History.read(task)
	}
}

// watch notes when tasks end, until the load does; Settle goes on.
func (l *Load) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(250 * time.Millisecond):
		}
		_ = l.look(ctx) // the server may be away
	}
}

// look notes which requests have ended: their task did, or they were absorbed or refused. A request with an unknown
// outcome that is nowhere has ended, too: its message was never sent, or is still to be seen.
func (l *Load) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	open := l.History.open()
	now := time.Now()
	l.mu.Lock()
	last := l.looked
	l.mu.Unlock()
	rows, err := l.stage.Pool.Query(ctx, `
		select o.id, extract(epoch from clock_timestamp() - coalesce(t.finalized_at, a.absorbed_at, d.dead_at))::float8 from unnest($1::uuid[]) o(id)
		left join pawl.tasks t on t.task_id = o.id
		left join lateral (select x.absorbed_at from pawl.absorbed x where t.task_id is null
			and x.queue = 'orchestration_task_requests' and x.message->>'request_id' = o.id::text limit 1) a on true
		left join lateral (select x.dead_at from pawl.dead_letters x where t.task_id is null
			and x.queue = 'orchestration_task_requests' and x.message->>'request_id' = o.id::text limit 1) d on true
		where coalesce(t.finalized_at, a.absorbed_at, d.dead_at) is not null`, open)
	if err != nil {
		return fmt.Errorf("looking at the tasks: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id uuid.UUID
		var age float64 // by the server's clock, which may have jumped: it ended between two looks
		if err := rows.Scan(&id, &age); err != nil {
			return fmt.Errorf("looking at the tasks: %w", err)
		}
		at := now.Add(-time.Duration(max(age, 0) * float64(time.Second)))
		if at.Before(last) {
			at = last
		}
		l.History.end(id, at)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("looking at the tasks: %w", err)
	}
	l.mu.Lock()
	l.looked = now
	l.mu.Unlock()
	return nil
}

// Settle waits until all has ended: no message is left in any queue, and every task is final.
func (l *Load) Settle(ctx context.Context) error {
	var left string
	for {
		err := l.look(ctx)
		if err == nil {
			left, err = l.stage.left(ctx)
		}
		if err == nil && left == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the end of all work: left are %s (%w)", left, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// left says what is not done.
func (s *Stage) left(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var text []byte
	err := s.Pool.QueryRow(ctx, `
		select jsonb_build_object(
			'tasks', (select jsonb_object_agg(state, n) from (select state, count(*) n from pawl.tasks where finalized_at is null group by 1) t),
			'messages', (select jsonb_object_agg(q.queue, m.queue_length) from pawl.queues q, pgmq.metrics(q.queue) m where m.queue_length > 0))`).Scan(&text)
	if err != nil {
		return "", fmt.Errorf("looking for what is left: %w", err)
	}
	var found map[string]json.RawMessage
	if err := json.Unmarshal(text, &found); err != nil {
		return "", err
	}
	if string(found["tasks"]) == "null" && string(found["messages"]) == "null" {
		return "", nil
	}
	return string(text), nil
}
