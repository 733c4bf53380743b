package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

// rawPGMQ sends, reads and deletes messages with PGMQ's own functions: the limit of anything built on it. A completed step
// of an engine needs at least one message each way, so its bound is half of this rate.
type rawPGMQ struct {
	pool  *pgxpool.Pool
	batch int
}

const rawClients = 2

// limit is the cell that everything is compared with.
var (
	limit  = cell{group: "limit", label: "messages, batch 100, 2 connections", work: work{Shape: "single", Batch: 100}}
	rawKey = key(&rawPGMQ{}, limit)
)

func (r *rawPGMQ) Name() string              { return "raw PGMQ 1.11.1" }
func (r *rawPGMQ) Can(w work) (string, bool) { return "messages only", w.Shape == "single" }
func (r *rawPGMQ) PIDs() []int               { return nil }

func (r *rawPGMQ) Open(ctx context.Context, pool *pgxpool.Pool, w work) error {
	r.pool, r.batch = pool, w.Batch
	if err := installPGMQ(ctx, pool); err != nil {
		return err
	}
	_, err := pool.Exec(ctx, "select pgmq.create('raw')")
	return err
}

// Run moves n messages.
func (r *rawPGMQ) Run(ctx context.Context, n int) error {
	var left atomic.Int64
	left.Store(int64(n))
	group, ctx := errgroup.WithContext(ctx)
	for range rawClients {
		group.Go(func() error {
			for left.Add(-int64(r.batch)) > -int64(r.batch) {
				if err := r.cycle(ctx, r.batch); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (r *rawPGMQ) cycle(ctx context.Context, n int) error {
	if _, err := r.pool.Exec(ctx, `select pgmq.send_batch('raw', array(select jsonb_build_object('n', i, 'text', repeat('x', 250))
		from generate_series(1, $1::int) i))`, n); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	var ids []int64
	if err := r.pool.QueryRow(ctx, "select array_agg(msg_id) from pgmq.read('raw', 30, $1::int)", n).Scan(&ids); err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	_, err := r.pool.Exec(ctx, "select pgmq.delete('raw', $1::bigint[])", ids)
	return err
}

func (r *rawPGMQ) One(ctx context.Context) error { return r.cycle(ctx, 1) }
func (r *rawPGMQ) Close(ctx context.Context) error {
	_, err := r.pool.Exec(ctx, "select pgmq.drop_queue('raw')")
	return err
}
