package handlers

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/worker"
)

type charged struct {
	ChargeID    int64 `json:"charge_id"`
	AmountCents int64 `json:"amount_cents"`
}

// charge commits its row together with the step's completion: exactly once, without a unique key or a token.
func (s *Shop) charge(ctx context.Context, step worker.Step[Order]) (charged, error) {
	var p priced
	if err := step.Dependency("price", &p); err != nil {
		return charged{}, err
	}
	if err := s.work(ctx); err != nil {
		return charged{}, err
	}
	c := charged{AmountCents: p.TotalCents}
	err := pgx.BeginFunc(ctx, s.DB, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, "insert into shop.charges (order_id, amount_cents, payment) values ($1, $2, $3) returning charge_id",
			step.Input.OrderID, p.TotalCents, step.Input.Payment).Scan(&c.ChargeID)
		if err != nil {
			return fmt.Errorf("charging order %s: %w", step.Input.OrderID, err)
		}
		return step.CompleteTx(ctx, tx, c)
	})
	return c, err
}
