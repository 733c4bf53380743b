package worker_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/worker"
)

// ledger makes a table that handlers write to and a worker whose handler completes in a transaction.
func ledger(k *kit, end func(ctx context.Context, tx pgx.Tx, step worker.Step[int]) error) {
	_, err := k.pool.Exec(k.Context(), `create table ledger (n int)`)
	require.NoError(k, err)
	k.queue("tx_queue")
	w := k.worker(worker.Config{}, "tx_queue")
	worker.Handle(w, "book", func(ctx context.Context, step worker.Step[int]) (any, error) {
		tx, err := k.pool.Begin(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = tx.Rollback(ctx) }()
		if _, err := tx.Exec(ctx, `insert into ledger values ($1)`, step.Input); err != nil {
			return nil, err
		}
		if err := step.CompleteTx(ctx, tx, step.Input*2); err != nil {
			return nil, err
		}
		return "not used", end(ctx, tx, step)
	})
	k.start(w)
}

func TestCompleteTxCompletesTheStepWithTheTransaction(t *testing.T) {
	k := newKit(t)
	ledger(k, func(ctx context.Context, tx pgx.Tx, _ worker.Step[int]) error { return tx.Commit(ctx) })
	r := k.await(k.submit("book", "tx_queue", 21)[0], "complete")
	require.Equal(t, `42`, r.Result)
	require.Equal(t, 1, k.count(`select count(*) from ledger`))
	require.Zero(t, k.count(`select count(*) from pgmq.q_tx_queue`))
	require.Zero(t, k.count(`select count(*) from pawl.absorbed`))
}

func TestCompleteTxRolledBackLeavesNothingBehind(t *testing.T) {
	k := newKit(t)
	ledger(k, func(_ context.Context, _ pgx.Tx, step worker.Step[int]) error {
		if step.Input == 1 {
			return errors.New("changed my mind")
		}
		return nil // forgets to commit
	})
	r := k.await(k.submit("book", "tx_queue", 1)[0], "waiting_for_retry")
	require.Equal(t, "changed my mind", r.Error.Message)
	r = k.await(k.submit("book", "tx_queue", 2)[0], "waiting_for_retry")
	require.Equal(t, "transaction_not_committed", r.Error.Type)
	require.True(t, r.Error.Retryable)
	require.Zero(t, k.count(`select count(*) from ledger`))
}

func TestCompleteTxIsRefusedWithoutTheLease(t *testing.T) {
	k := newKit(t)
	_, err := k.pool.Exec(t.Context(), `create table ledger (n int)`)
	require.NoError(t, err)
	task := k.submit("book", "tx_queue", 1)[0]
	w := k.worker(worker.Config{}, "tx_queue")
	refused := make(chan error, 1)
	worker.Handle(w, "book", func(ctx context.Context, step worker.Step[int]) (any, error) {
		ctx = context.WithoutCancel(ctx)                          // a beat may find out first
		err := pgx.BeginFunc(ctx, k.pool, func(tx pgx.Tx) error { // at once, or this worker claims it again
			_, err := tx.Exec(ctx, `update pgmq.q_tx_queue set vt = clock_timestamp()`)
			if err == nil {
				_, err = tx.Exec(ctx, `select pawl.claim_steps('tx_queue', 1, 'second')`)
			}
			return err
		})
		if err == nil {
			err = pgx.BeginFunc(ctx, k.pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, `insert into ledger values (1)`); err != nil {
					return err
				}
				return step.CompleteTx(ctx, tx, nil)
			})
		}
		refused <- err
		return nil, err
	})
	k.start(w)
	require.ErrorIs(t, receive(k, refused, "the refusal"), worker.ErrLeaseLost)
	require.NoError(t, w.Stop(t.Context()))
	require.Zero(t, k.count(`select count(*) from ledger`))
	require.Equal(t, "second", k.step(task, "run").Worker)
}
