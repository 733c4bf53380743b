package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/internal/demo/handlers"
)

const template = "shop/fulfil_order"

// request is one message of the producer.
type request struct {
	Template  string         `json:"template"`
	Input     handlers.Order `json:"input"`
	Key       string         `json:"key,omitempty"`
	RequestID *uuid.UUID     `json:"request_id,omitempty"`

	again bool // the same message was sent before
}

// plan makes the requests of the orders: every tenth is sent twice, recognized in turn by its key or its request id. The
// repetition comes a few orders later, as from a producer that did not see the first one's answer.
func plan(orders []handlers.Order) []request {
	const late = 3
	var requests []request
	repeats := map[int][]request{}
	for i, o := range orders {
		r := request{Template: template, Input: o, Key: o.OrderID}
		if i%10 == 5 {
			if i%20 == 5 {
				id := uuid.Must(uuid.NewV7())
				r.Key, r.RequestID = "", &id
			}
			again := r
			again.again = true
			repeats[min(i+late, len(orders)-1)] = append(repeats[min(i+late, len(orders)-1)], again)
		}
		requests = append(requests, r)
		requests = append(requests, repeats[i]...)
	}
	return requests
}

func repeated(requests []request) int {
	n := 0
	for _, r := range requests {
		if r.again {
			n++
		}
	}
	return n
}

// send puts each request into the queue as any program could, at a steady pace, and counts them.
func send(ctx context.Context, pool *pgxpool.Pool, requests []request, perSecond int, sent *atomic.Int64) error {
	var pace <-chan time.Time
	if perSecond > 0 {
		ticker := time.NewTicker(max(time.Second/time.Duration(perSecond), 1))
		defer ticker.Stop()
		pace = ticker.C
	}
	for _, r := range requests {
		body, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("writing the request of order %s: %w", r.Input.OrderID, err)
		}
		if _, err := pool.Exec(ctx, "select pgmq.send('orchestration_task_requests', $1::jsonb)", string(body)); err != nil {
			return fmt.Errorf("sending the request of order %s: %w", r.Input.OrderID, err)
		}
		sent.Add(1)
		if pace != nil {
			select {
			case <-pace:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return nil
}
